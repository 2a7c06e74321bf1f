"""The page is one file, well formed, fetches nothing, runs nothing hostile, and says what it was given."""

import base64
import hashlib
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unweave as uw
from unweave.pages.html import Html, chart, element, facts, picture, table, text
from unweave.pages.page import Page, Section, page
from unweave.pages.run import CodeSamples, LatentTable, Pictures, TrainingCurves, run_page
from unweave.pages.run_folder import write_run_page
from unweave.pages.sliders import latent_sliders, pixel_change
from unweave.plots.latents import kl_bars
from unweave.plots.save import to_png

VOID = {"meta", "img", "input", "br"}
HOSTILE = "<script>alert(1)</script>\"'&</title><img src=x onerror=alert(2)> $\\frac{"
TYPES = ["passive", "active", "mixed"]


class Tree(HTMLParser):
    """Elements in order, refusing a page whose tags do not match."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def some_pictures(n_steps: int = 5) -> Pictures:
    drawn = np.zeros((3, n_steps, 1, 8, 8))
    drawn[1, :, 0, 2, 3] = np.linspace(0, 1, n_steps)
    drawn[2, :, 0, 5, 5] = np.linspace(0.2, 0.45, n_steps)
    examples = np.random.default_rng(0).uniform(size=(4, 1, 8, 8))
    return Pictures(drawn, np.linspace(-2, 2, n_steps), examples, examples)


def some_report(**changes: Any) -> Page:
    generator = np.random.default_rng(0)
    given: dict[str, Any] = {
        "title": "A small run",
        "experiment": {"world": {"name": "micro"}, "latents": 3, "objective": {"name": "beta_vae", "beta": 6.0}},
        "latent_table": LatentTable(TYPES, [0.001, 2.5, 0.75], [1.0, 0.01, 0.5], [0.0, 1e-5, 0.2], [0.0, 1.0, 0.4]),
        "curves": TrainingCurves(
            [0, 10, 20], {"loss": [9.0, 5.0, 4.0], "reconstruction": [8.0, 4.0, 3.25]}, generator.uniform(size=(3, 3))
        ),
        "shown": some_pictures(),
        "codes": CodeSamples(generator.normal(size=(50, 3)), generator.normal(size=(50, 3))),
        "findings": ["One latent is active."],
        "summary": {"world": "Micro"},
        "environment": {"python": "3.11", "gpu": None},
        "command": "unweave demo --seed 0",
    }
    return run_page(**given | changes)


@pytest.fixture(scope="module")
def report() -> Page:
    return some_report()


def test_the_page_needs_nothing_else(report: Page) -> None:
    assert "http://" not in report.html
    assert "https://" not in report.html
    assert "url(//" not in report.html
    assert "@import" not in report.html
    tree = Tree(report.html)
    assert not tree.all("link")
    assert not tree.all("iframe")
    for _, attributes in tree.elements:
        for name in ("src", "href", "xlink:href", "action", "srcset"):
            place = attributes.get(name)
            assert place is None or place.startswith(("data:image/png;base64,", "#"))


def test_the_page_is_well_formed(report: Page) -> None:
    tree = Tree(report.html)
    assert report.html.startswith("<!DOCTYPE html>")
    assert tree.all("html")[0]["lang"] == "en"
    assert len(tree.all("h1")) == 1
    identities = [attributes["id"] for _, attributes in tree.elements if attributes.get("id")]
    assert len(identities) == len(set(identities))
    wanted = set(re.findall(r"url\(#([^)]*)\)", report.html)) | {
        (a.get("xlink:href") or "#")[1:] for a in tree.all("use")
    }
    assert wanted - {""} <= set(identities)
    assert all(image.get("alt") for image in tree.all("img"))
    assert all(drawn.get("aria-label") for drawn in tree.all("svg"))


def test_only_our_script_may_run(report: Page) -> None:
    scripts = re.findall(r"<script>(.*?)</script>", report.html, flags=re.DOTALL)
    assert len(scripts) == 1
    summed = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    policy = next(meta["content"] for meta in Tree(report.html).all("meta") if "http-equiv" in meta)
    assert policy is not None
    assert f"script-src 'sha256-{summed}'" in policy
    assert "default-src 'none'" in policy


def test_the_page_says_what_it_was_given(report: Page) -> None:
    words = " ".join(Tree(report.html).words)
    for expected in (
        "A small run",
        "One latent is active.",
        "unweave demo --seed 0",
        "objective.beta",
        "3.25",
        "2.50",
        "1.0×10⁻⁵",
    ):
        assert expected in words
    assert "It uses 1 of them fully and has switched 1 off; 1 latent hangs between the two" in words


def test_pictures_come_with_the_page(report: Page) -> None:
    from PIL import Image

    names = {"kl", "variances", "kl_history", "losses", "traversals", "reconstructions", "histograms"}
    assert set(report.pictures) == {f"{name}.png" for name in names}
    for content in report.pictures.values():
        shown = np.asarray(Image.open(io.BytesIO(content)).convert("L"))
        assert min(shown.shape) > 80
        assert shown.std() > 5


def test_the_report_is_a_function_of_its_arrays(report: Page) -> None:
    assert some_report() == report


def test_hostile_words_stay_words() -> None:
    report = some_report(
        title=HOSTILE,
        findings=[HOSTILE],
        experiment={HOSTILE: {"name": HOSTILE}},
        summary={HOSTILE: HOSTILE},
        environment={"python": HOSTILE},
        command=HOSTILE,
        curves=TrainingCurves([0, 1], {HOSTILE: [1.0, 2.0]}, np.zeros((2, 3))),
    )
    tree = Tree(report.html)
    assert len(tree.all("script")) == 1
    assert not [a for _, a in tree.elements if "onerror" in a]
    assert all(image["src"] != "x" for image in tree.all("img"))
    assert tree.words.count(HOSTILE) >= 6


def test_data_without_images_has_a_report_too() -> None:
    report = some_report(shown=None, codes=None)
    tree = Tree(report.html)
    assert not tree.all("input")
    assert "What the three types mean" in tree.words
    assert set(report.pictures) == {"kl.png", "variances.png", "kl_history.png", "losses.png"}


def test_tables_that_do_not_match_are_refused(report: Page) -> None:
    good = LatentTable(TYPES, [0.001, 2.5, 0.75], [1.0, 0.01, 0.5], [0.0, 1e-5, 0.2], [0.0, 1.0, 0.4])
    with pytest.raises(ValueError, match="variance_of_mean must have 3 entries"):
        some_report(latent_table=replace(good, variance_of_mean=[1.0]))
    with pytest.raises(ValueError, match="one type for each of 3"):
        some_report(latent_table=replace(good, types=["active"]))


def test_sliders_stand_in_the_order_of_kl_and_hold_every_frame() -> None:
    from PIL import Image

    given = some_pictures(21)
    tree = Tree(latent_sliders(given.traversals, TYPES, [0.001, 2.5, 0.75], given.values))
    sliders = tree.all("input")
    assert [slider["id"] for slider in sliders] == ["latent-1", "latent-2", "latent-0"]
    assert [slider["aria-label"] for slider in sliders] == ["latent 1, active", "latent 2, mixed", "latent 0, passive"]
    for slider in sliders:
        assert (slider["type"], slider["min"], slider["max"], slider["value"]) == ("range", "0", "20", "10")
        values = (slider["data-values"] or "").split(" ")
        assert (len(values), values[0], values[10], values[-1]) == (21, "−2", "0", "2")
    for image, latent in zip(tree.all("img"), (1, 2, 0)):
        content = base64.b64decode((image["src"] or "").partition(",")[2])
        strip = np.asarray(Image.open(io.BytesIO(content)))
        frames = strip.reshape(8, 21, 8).transpose(1, 0, 2)
        np.testing.assert_array_equal(frames, (255 * np.asarray(given.traversals)[latent, :, 0]).round())


def test_colour_strips_keep_their_colours() -> None:
    from PIL import Image

    frames = np.random.default_rng(0).uniform(size=(1, 3, 3, 4, 6))
    tree = Tree(latent_sliders(frames, ["active"], [1.0], [-1, 0, 1]))
    strip = np.asarray(Image.open(io.BytesIO(base64.b64decode((tree.all("img")[0]["src"] or "").partition(",")[2]))))
    expected = (255 * np.concatenate(list(frames[0]), axis=-1).transpose(1, 2, 0)).round()
    np.testing.assert_array_equal(strip, expected)


def test_pixel_change_is_the_mean_range_of_a_pixel() -> None:
    np.testing.assert_allclose(pixel_change(some_pictures().traversals), [0.0, 1.0 / 64, 0.25 / 64])


def test_tables_align_numbers_only() -> None:
    tree = Tree(table(["name", "value"], [["a", 1.5], ["<b>", 2]]))
    assert [head.get("class") for head in tree.all("th")] == [None, "number"]
    assert [cell.get("class") for cell in tree.all("td")] == [None, "number", None, "number"]
    assert "1.50" in tree.words
    with pytest.raises(ValueError, match="every row must have 2 cells"):
        table(["name", "value"], [["a"]])


def test_charts_follow_the_theme_and_keep_their_ids_apart() -> None:
    both = [chart(kl_bars([1.0], ["active"]), name, 'a "chart"') for name in ("one", "two")]
    tree = Tree("".join(both))
    identities = [attributes["id"] for _, attributes in tree.elements if attributes.get("id")]
    assert len(identities) == len(set(identities))
    assert "var(--active)" in both[0]
    assert "xmlns" not in both[0]
    assert tree.all("svg")[0]["aria-label"] == 'a "chart"'


def test_pieces_escape() -> None:
    assert text("<&\"'>") == "&lt;&amp;&quot;&#x27;&gt;"
    assert text(Html("<br>")) == "<br>"
    assert element("p", "a<b", title='"') == '<p title="&quot;">a&lt;b</p>'
    assert "world.name" in facts({"world": {"name": "x"}})
    png = to_png(kl_bars([1.0], ["active"]))
    assert base64.b64encode(png).decode() in picture(png, "bars", "caption")


def test_a_plain_body_is_escaped() -> None:
    assert "<p>&lt;b&gt;plain&lt;/b&gt;</p>" in page("title", [Section("heading", "<b>plain</b>")])


@pytest.mark.parametrize("odd", [[], {}, {"command": "unweave"}, {"command": [1]}])
def test_an_odd_environment_is_named(tmp_path: Path, odd: object) -> None:
    small = {"network": uw.MLP((4,), (4,)), "latents": 2, "steps": 1, "plan": uw.Plan("cpu", 1)}
    run = uw.train("micro", tmp_path / "run", quiet=True, **small)
    run.files.write_json("environment.json", odd)
    with pytest.raises(ValueError, match=r"environment\.json should hold an object"):
        write_run_page(run)
