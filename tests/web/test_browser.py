"""The page in a real browser: open, filter, slide, drag, compare, reload; by mouse, by keyboard, on a small screen."""

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import PATIENCE
from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, expect

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    """A fresh page. Whatever it complains about, or asks another host for, fails the test."""
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    found, troubles = context.new_page(), []
    found.on("pageerror", lambda error: troubles.append(str(error)))
    found.on("console", lambda said: troubles.append(said.text) if _is_trouble(said) else None)
    found.on("request", lambda asked: troubles.append(asked.url) if not _own(asked.url, address) else None)
    yield found
    context.close()
    assert troubles == []


def _is_trouble(said: ConsoleMessage) -> bool:
    """A refused request is noted by the browser itself; some of ours are meant to be refused."""
    return said.type == "error" and "the server responded with a status of 4" not in said.text


def _own(url: str, address: str) -> bool:
    return url.startswith((address, "data:", "blob:"))


def pixels(canvas: Locator) -> list[int]:
    return canvas.evaluate("c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data]")


def ready(page: Page) -> Locator:
    """The live picture, once it shows something."""
    live = page.locator(".stage canvas.live")
    expect(live).to_have_attribute("data-took", re.compile(r"^[0-9.]+$"), timeout=PATIENCE)
    return live


def changed(canvas: Locator, before: list[int]) -> list[int]:
    """The picture after it has changed."""
    end = time.monotonic() + PATIENCE / 1000
    while (now := pixels(canvas)) == before:
        assert time.monotonic() < end, "the picture did not change"
        canvas.page.wait_for_timeout(30)
    return now


def test_open_filter_sort_and_select(page: Page, searched: list[str]) -> None:
    page.goto("/")
    rows = page.locator(".body .row")
    expect(rows).to_have_count(6 + len(searched))
    page.fill("#filter", "micro objective=beta_vae state=done latents=4")
    expect(rows).to_have_count(2)
    assert "filter=micro" in page.url
    page.reload()
    expect(rows).to_have_count(2)
    page.get_by_role("columnheader", name="seed").click()
    expect(rows.first).to_have_attribute("data-run", "two")
    page.get_by_role("columnheader", name="seed").click()
    expect(rows.first).to_have_attribute("data-run", "one")
    expect(page.locator('[data-spark="one"] polyline')).to_have_count(1)
    page.fill("#filter", "nothing-like-it")
    expect(page.get_by_text("No run fits this filter")).to_be_visible()
    page.fill("#filter", "")
    page.locator(".runs-scroll").focus()
    page.keyboard.press("End")
    page.keyboard.press("Space")
    page.keyboard.press("Home")
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Compare these two")).to_be_enabled()
    page.keyboard.press("Enter")
    page.wait_for_url("**/run/*")


def test_a_slider_moves_the_picture_and_the_address_remembers(page: Page) -> None:
    page.goto("/run/one")
    live = ready(page)
    before = pixels(live)
    slider = page.locator(".slider input").first
    slider.focus()
    for _ in range(30):
        page.keyboard.press("ArrowRight")
    after = changed(live, before)
    page.wait_for_url("**code=**")
    value = slider.input_value()
    page.wait_for_timeout(400)
    settled = pixels(live)
    page.reload()
    live = ready(page)
    expect(page.locator(".slider input").first).to_have_value(value)
    page.wait_for_timeout(300)
    # the address holds three digits of every number
    assert max(abs(now - then) for now, then in zip(pixels(live), settled)) <= 3
    assert after != before


def test_start_from_an_example_and_an_own_image(page: Page, tmp_path: Path) -> None:
    from PIL import Image, ImageDraw

    page.goto("/run/one")
    live = ready(page)
    started = page.locator(".stage .screens canvas").nth(1)
    before = pixels(started)
    page.locator(".example").nth(3).click()
    first = changed(started, before)
    own = Image.new("RGB", (200, 200), "black")
    ImageDraw.Draw(own).ellipse((20, 20, 90, 90), fill="white")
    own.save(tmp_path / "own.png")
    page.set_input_files("#own", tmp_path / "own.png")
    changed(started, first)
    expect(page.get_by_text("this is how the model sees it")).to_be_visible()
    page.set_input_files("#own", {"name": "x.png", "mimeType": "image/png", "buffer": b"no image"})
    expect(page.get_by_text("not an image that can be read")).to_be_visible()
    assert len(pixels(live)) == 32 * 32 * 4


def test_drag_the_pad(page: Page) -> None:
    page.goto("/run/one")
    live = ready(page)
    pad = page.locator(".pad")
    pad.scroll_into_view_if_needed()
    expect(pad.locator(".ground canvas")).to_have_count(1)
    before = pixels(live)
    box = pad.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.95 * box["width"], box["y"] + 0.05 * box["height"], steps=8)
    page.mouse.up()
    changed(live, before)
    assert float(pad.locator(".dot-handle").evaluate("d => parseFloat(d.style.left)")) == pytest.approx(95, abs=1.5)
    page.wait_for_timeout(300)
    moved = pixels(live)
    pad.focus()
    for _ in range(12):
        page.keyboard.press("Shift+ArrowLeft")
    changed(live, moved)


def test_every_part_of_a_run_is_drawn(page: Page) -> None:
    page.goto("/run/one")
    ready(page)
    for name, inside in {
        "traversals": "image",
        "rebuilt": "image",
        "diagnosis": "table",
        "histograms": "path.area",
        "training": "polyline",
        "scores": "rect",
        "about": "dt",
    }.items():
        page.locator(f"#{name}").scroll_into_view_if_needed()
        expect(page.locator(f"#{name} {inside}").first).to_be_attached()
    with page.expect_download() as saved:
        page.locator("#training .saves button").first.click()
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as saved:
        page.locator("#traversals .saves button").nth(1).click()
    text = Path(saved.value.path()).read_text()
    assert text.startswith("<svg")
    assert "data:image/png" in text
    with page.expect_download() as saved:
        page.get_by_role("link", name="codes as npz").click()
    assert Path(saved.value.path()).read_bytes().startswith(b"PK")


def test_compare_two_runs(page: Page) -> None:
    page.goto("/")
    page.get_by_label("Select one").check()
    page.get_by_label("Select two").check()
    page.get_by_role("button", name="Compare these two").click()
    page.wait_for_url("**/compare?left=one&right=two")
    expect(page.locator("#layers .heat")).to_have_count(2)
    left = page.locator(".screens.two canvas").first
    expect(page.locator("#walk image")).to_have_count(2)
    before = pixels(left)
    page.locator("#walk-slider").focus()
    for _ in range(25):
        page.keyboard.press("ArrowRight")
    changed(left, before)
    page.reload()
    expect(page.locator("#matched .heat")).to_be_visible()
    page.goto("/compare?left=one&right=flat")
    expect(page.get_by_role("alert")).to_contain_text("two runs of one world")


def test_a_study_and_a_search_lead_to_runs(page: Page, search_name: str) -> None:
    page.goto("/study/pair?y=scores.mean.mig")
    expect(page.get_by_role("heading", name="Two seeds")).to_be_visible()
    page.locator("#scatter .dot").first.click()
    page.wait_for_url("**/run/*")
    page.go_back()
    expect(page.locator("#correlations")).to_contain_text("No two numbers are known of 5 runs or more.")
    page.goto(f"/search/{search_name}")
    expect(page.locator("#path .visit").first).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="answers")).to_be_visible()
    page.locator("#path .visit").first.click()
    page.wait_for_url("**/run/micro-beta_vae-*")
    ready(page)


def test_a_small_screen_dark_and_unfinished_runs(browser: Browser, address: str) -> None:
    context = browser.new_context(base_url=address, viewport={"width": 390, "height": 844}, color_scheme="dark")
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto("/")
    expect(page.locator("main h1").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(16, 21, 27)"
    page.goto("/run/failed")
    expect(page.get_by_text("kl became nan at step 7")).to_be_visible()
    page.goto("/run/unfinished")
    expect(page.get_by_text("Interrupted: nothing is saved yet")).to_be_visible()
    expect(page.get_by_text("Nothing was recorded before it stopped.")).to_be_visible()
    expect(page.locator("#about")).to_contain_text("batch_size")
    page.goto("/run/nowhere")
    expect(page.get_by_role("alert")).to_contain_text("There is no run 'nowhere'")
    page.goto("/no/such/page")
    expect(page.get_by_role("alert")).to_contain_text("There is no such page.")
    context.close()


def test_new_runs_appear_by_themselves(page: Page, made: Path, searched: list[str]) -> None:
    page.goto("/")
    expect(page.locator(".body .row")).to_have_count(6 + len(searched))
    try:
        shutil.copytree(made / "two", made / "late")
        expect(page.locator('[data-run="late"]')).to_be_visible()
    finally:
        shutil.rmtree(made / "late")
    expect(page.locator('[data-run="late"]')).to_have_count(0)


def test_the_pages_own_statistics(page: Page) -> None:
    import numpy as np
    from scipy import stats

    page.goto("/")
    draw = np.random.default_rng(0)
    x, y = draw.integers(0, 6, 40).astype(float), draw.normal(size=40)
    points = np.linspace(-2, 2, 5)
    found = page.evaluate(
        """async ([x, y, points]) => { const own = await import('/static/lib/statistics.js');
        const gaps = own.spearman([1, null, 2, 4], [2, 9, 4, 1]), few = own.spearman([1, 2], [1, 2]);
        const median = own.quantile([...y].sort((a, b) => a - b), 0.5), density = own.density(y, points);
        return {spearman: own.spearman(x, y), gaps, few, median, density, ranks: own.ranks(x)}; }""",
        [x.tolist(), y.tolist(), points.tolist()],
    )
    assert found["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found["gaps"] == pytest.approx(stats.spearmanr([1, 2, 4], [2, 4, 1]).statistic)
    assert found["few"] is None
    assert found["ranks"] == pytest.approx(stats.rankdata(x) - 1)
    width = 0.9 * min(y.std(ddof=1), stats.iqr(y) / 1.34) * len(y) ** -0.2
    smooth = stats.norm.pdf(points[:, None], y, width).mean(1)
    assert found["density"] == pytest.approx(smooth, rel=1e-6)
    assert found["median"] == pytest.approx(np.median(y))
