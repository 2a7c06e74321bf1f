"""Words on pages stand out from what is behind them, by light and by dark, as WCAG asks: 4.5 to 1."""

import re
from pathlib import Path

import pytest

import unweave

CSS = (Path(unweave.__file__).parent / "pages" / "page.css").read_text(encoding="utf-8")
THEMES = [
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.S)
]
KINDS = ("active", "mixed", "passive")
SHARE = int(re.findall(r"\.chip \{.*?color-mix\(in srgb, var\(--kind\) (\d+)%, var\(--ink\)\)", CSS, re.S)[0]) / 100


def parts(colour: str) -> list[float]:
    digits = "".join(2 * one for one in colour[1:]) if len(colour) == 4 else colour[1:]
    return [int(digits[place : place + 2], 16) for place in (0, 2, 4)]


def light(colour: list[float]) -> float:
    shares = [one / 255 for one in colour]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: list[float], other: list[float]) -> float:
    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_known_where_it_is_certain() -> None:
    assert contrast(parts("#000"), parts("#ffffff")) == pytest.approx(21.0)
    assert contrast(parts("#777777"), parts("#fff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark", "print"])
def test_words_can_be_read(theme: dict[str, str]) -> None:
    for kind in KINDS:
        mixed = [SHARE * one + (1 - SHARE) * ink for one, ink in zip(parts(theme[kind]), parts(theme["ink"]))]
        assert contrast(mixed, parts(theme[f"{kind}-soft"])) >= 4.5, kind
    for words in ("ink", "muted"):
        for behind in ("ground", "surface"):
            assert contrast(parts(theme[words]), parts(theme[behind])) >= 4.5, (words, behind)
