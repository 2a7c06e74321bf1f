"""Latents to move by hand: one slider each, over frames that were rendered beforehand."""

import io
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from unweave.pages.html import Html, chip, data_address, element
from unweave.plots.arrays import checked, checked_names, checked_types, pictures
from unweave.plots.format import number, short

SHOWN = 144
"""Width of a picture on the page, in CSS pixels, unless the picture itself is wider."""


def latent_sliders(
    images: ArrayLike,
    types: Sequence[str],
    kl: ArrayLike,
    values: ArrayLike,
    latents: Sequence[int] | None = None,
) -> Html:
    """One card a latent, the largest KL first: images [latent, step, channel, height, width], values [step].

    Works by mouse, touch and keyboard; without scripts and on paper every card shows its middle frame.
    """
    frames = pictures("images", images, "latent step")
    kinds = checked_types(types, len(frames))
    kl = checked("kl", kl, "latent", latent=len(frames))
    values = checked("values", values, "step", step=frames.shape[1])
    names = checked_names("latents", latents, len(frames))
    words = [short(float(value)) for value in values]
    changes = pixel_change(images)
    order = np.argsort(-kl, kind="stable")
    cards = (_card(frames[i], names[i], kinds[i], float(kl[i]), float(changes[i]), words) for i in order)
    return element(
        "div",
        _controls(),
        element("div", *cards, class_="cards", style=_layout(len(frames), frames.shape[3])),
        class_="explorer",
        data_explorer=True,
    )


def pixel_change(images: ArrayLike) -> np.ndarray:
    """Per latent, how far a pixel changes along its traversal, averaged over pixels: from 0 (nothing moves) to 1."""
    frames = pictures("images", images, "latent step")
    return np.ptp(frames, axis=1).mean(axis=(1, 2, 3))


def sprite(frames: np.ndarray) -> bytes:
    """Frames [step, height, width, 3] in [0, 1] side by side in one PNG."""
    from PIL import Image

    steps, height, width = frames.shape[:3]
    strip = frames.transpose(1, 0, 2, 3).reshape(height, steps * width, 3)
    coded = (255.0 * strip).round().astype(np.uint8)
    if (coded == coded[..., :1]).all():
        coded = coded[..., 0]
    content = io.BytesIO()
    Image.fromarray(coded).save(content, format="PNG", optimize=True)
    return content.getvalue()


def _controls() -> Html:
    return element(
        "div",
        element("button", "▶ Move all latents", type="button", data_sweep=True, aria_pressed="false"),
        element("button", "Back to the middle", type="button", data_centre=True),
        class_="controls",
    )


def _card(frames: np.ndarray, name: str, kind: str, kl: float, change: float, values: Sequence[str]) -> Html:
    middle = len(values) // 2
    place = f"latent-{name}"
    return element(
        "div",
        element("div", element("strong", f"latent {name}"), chip(kind), class_="name"),
        _frame(frames, middle, f"Picture for latent {name} at {values[middle]}; the slider below changes it."),
        element("label", "value ", element("output", values[middle], for_=place), for_=place),
        element(
            "input",
            type="range",
            id=place,
            min=0,
            max=len(values) - 1,
            value=middle,
            data_values=" ".join(values),
            aria_valuetext=values[middle],
            aria_label=f"latent {name}, {kind}",
        ),
        element(
            "p",
            f"KL {number(kl, 3 if kl >= 0.1 else 2)} nats",
            element("br"),
            f"the picture changes by {_percent(change)}",
            class_="note",
        ),
        class_=f"card {kind}",
    )


def _frame(frames: np.ndarray, middle: int, alt: str) -> Html:
    steps, height, width = frames.shape[:3]
    place = 100.0 * middle / max(1, steps - 1)
    size = f"width:{_scale(width) * width}px;aspect-ratio:{width}/{height};object-position:{place:.4f}% 0"
    return element("img", src=data_address(sprite(frames)), alt=alt, style=size)


def _scale(width: int) -> int:
    """Screen pixels for every image pixel, a whole number: no frame shows the edge of its neighbour."""
    return max(1, SHOWN // width)


def _layout(n_latents: int, width: int) -> str:
    """As many cards in a row as leave the fewest places empty in the last one, six at most, none too narrow."""
    columns = min(range(6, 2, -1), key=lambda columns: -n_latents % columns) if n_latents > 6 else n_latents
    return f"--columns:{columns};--card:{max(160, _scale(width) * width + 18)}px"


def _percent(share: float) -> str:
    return "less than 1\u00a0%" if share < 0.01 else f"{100 * share:.0f}\u00a0%"
