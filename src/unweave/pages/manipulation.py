"""The page of a manipulation: what it does to images, both sides' losses, and the models that it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.data.world import called
from unweave.pages.html import Html, chart, element, facts, joined, paragraphs, picture, table
from unweave.pages.page import Page, Section, page
from unweave.plots.images import named_rows
from unweave.plots.save import to_png
from unweave.plots.training import loss_curves
from unweave.shapes import Float, Tensor
from unweave.training.experiment import Experiment, experiment_to
from unweave.training.run import Run

if TYPE_CHECKING:
    import matplotlib.figure

TERMS = ("foster", "diminish", "gap")


@dataclass(frozen=True)
class AlteredImages:
    """Examples, m(w) of each in [−1, 1], and the altered examples."""

    originals: Float[Tensor, "image channel height width"]
    changes: Float[Tensor, "image channel height width"]
    altered: Float[Tensor, "image channel height width"]
    epsilon: float

    def plot(self) -> "matplotlib.figure.Figure":
        """One row each; the change is amplified to the full range, grey where nothing changes."""
        amplified = 0.5 + 0.5 * self.changes
        rows = np.stack([part.cpu().numpy() for part in (self.originals, amplified, self.altered)])
        return named_rows(rows, ("original", f"change × {0.5 / self.epsilon:.3g}", "altered"))


@dataclass(frozen=True)
class Losses:
    """The terms of a manipulation's history, and their means over its first row and its last tenth."""

    steps: tuple[int, ...]
    terms: Mapping[str, Float[np.ndarray, " row"]]

    @property
    def first(self) -> dict[str, float]:
        return {name: float(values[0]) for name, values in self.terms.items()}

    def late(self, name: str) -> dict[int, float]:
        """One term in the last third of the rows, by step."""
        first = 2 * len(self.steps) // 3
        return dict(zip(self.steps[first:], self.terms[name][first:].tolist()))

    @property
    def last(self) -> dict[str, float]:
        n = max(1, len(self.steps) // 10)
        return {name: float(values[-n:].mean()) for name, values in self.terms.items()}


def losses_of(run: Run) -> Losses:
    """Both sides' losses over the training of a manipulation."""
    history = run.history
    return Losses(tuple(history.steps), {name: history.column(name).double().numpy() for name in TERMS})


def manipulation_page(
    run: Run, shown: AlteredImages, sentences: Sequence[str], models: Sequence[Mapping[str, Any]] = ()
) -> Page:
    """The page and its pictures. ``models`` are rows of those that could be chosen."""
    losses = losses_of(run)
    drawn = {
        "perturbation": shown.plot(),
        "losses": loss_curves(np.array(losses.steps), losses.terms),
    }
    pictures = {f"{name}.png": to_png(figure) for name, figure in drawn.items()}
    experiment = run.experiment
    sections = [
        Section("In short", element("ul", *(element("li", one) for one in sentences))),
        Section("What is done to images", _images(pictures["perturbation.png"], shown.epsilon)),
        Section("Losses", _losses(drawn["losses"])),
    ]
    if models:
        rows = [list(row.values()) for row in models]
        sections.append(Section("The models to choose from", table(list(models[0]), rows, "candidates")))
    sections.append(Section("How this was made", facts(_plain(experiment))))
    title = f"A manipulation of {called(experiment.world)}"
    return Page(page(title, sections, {"steps": experiment.steps}, sentences[-1], "unweave perturb"), pictures)


def _plain(experiment: Experiment) -> dict[str, Any]:
    """The config, with runs by their names alone."""
    plain = dict(experiment_to(experiment))
    named = {side: [Path(one["run"]).name for one in plain["objective"][side]] for side in ("foster", "diminish")}
    return plain | {"objective": plain["objective"] | named}


def _images(png: bytes, epsilon: float) -> Html:
    words = paragraphs(
        "Above the original images, below what models on the altered world are given. Between them what the"
        f" manipulation says, −1 black, 0 grey, 1 white; images are moved by {epsilon:g} times that, and what would"
        " leave [0, 1] is reflected back into it."
    )
    return joined(words, picture(png, "original images, changes and altered images", wide=True))


def _losses(figure: "matplotlib.figure.Figure") -> Html:
    words = paragraphs(
        "How badly the two sides' decoders show altered images from codes of the original ones. The decoders learn to"
        " do it better; the manipulation learns to make it easy for the fostered side and hard for the other: the gap"
        " falls where it succeeds."
    )
    alt = "Lines: reconstruction losses of both sides and their gap over training."
    return joined(words, chart(figure, "losses", alt, wide=True))
