"""The pictures of docs/explorer.md and the README's: every view of a store in a real browser, and a short film.

    python docs/make_explorer_pictures.py STORE --search dimension-… --manipulation micro-perturbation-…
    python docs/make_explorer_pictures.py STORE --film        # only docs/images/explorer.gif

Needs chromium and playwright. STORE holds at least the runs `demo` and `demo-1` (unweave demo, unweave demo --seed 1).
The study is that of k-1 at small size: its 96 runs are not kept, so their table (docs/results/k-runs.csv) is shown in
place of the store's.
"""

import argparse
import csv
import io
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

HERE = Path(__file__).parent
IMAGES, PORT = HERE / "images", 8797
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]
CODE = "/run/demo?code=0.9,-1.1,1.2,0,0,0"
BOTH = "/compare?left=demo&right=demo-1"
STUDY = "/study/all"
FILM, SHOWN = (1120, 720), (840, 540)


def main() -> None:
    """Serve the store, visit every view, keep a picture of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--search", help="the name of a dimension search in it")
    parser.add_argument("--manipulation", help="the name of a manipulation in it")
    parser.add_argument("--film", action="store_true", help="only the film")
    given = parser.parse_args()
    words = ["-m", "unweave", "explore", given.store, "--no-browser", "--port", str(PORT)]
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    try:
        wait()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            if not given.film:
                take_all(browser, given.search, given.manipulation)
            film(browser)
    finally:
        server.terminate()
        server.wait()


def take_all(browser: Any, search: str | None, manipulation: str | None) -> None:
    """Light and dark, large and small."""
    take(browser, "explorer_runs", "/", height=640)
    take(browser, "explorer_run", CODE, height=800, part="#steer")
    take(browser, "explorer_pad", "/run/demo", height=1180, part="#pad", dark=True)
    take(browser, "explorer_compare", BOTH, height=1500)
    take(browser, "explorer_study", STUDY, height=1520)
    take(browser, "explorer_small", CODE, width=390, height=844, part="#steer", dark=True)
    if search:
        take(browser, "explorer_search", f"/search/{search}", height=900, dark=True)
    if manipulation:
        take(browser, "explorer_manipulation", f"/run/{manipulation}", height=900)


def take(
    browser: Any, name: str, path: str, *, width: int = 1280, height: int, part: str = "", dark: bool = False
) -> None:
    """One view as a PNG of few colours."""
    page = opened(browser, path, width, height, dark)
    if part:
        page.evaluate("name => document.querySelector(name).scrollIntoView()", part)
        settle(page)
    picture(page).quantize(224, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
    print(name, (IMAGES / f"{name}.png").stat().st_size // 1000, "kB")
    page.context.close()


def film(browser: Any) -> None:
    """Sliders move, a study, two runs side by side: docs/images/explorer.gif."""
    frames: list[tuple[Image.Image, int]] = []
    for path, scenes in ((CODE, sliding), (STUDY, studying), (BOTH, comparing)):
        page = opened(browser, path, *FILM)
        frames += [(picture(page), milliseconds) for milliseconds in scenes(page)]
        page.context.close()
    small = [frame.resize(SHOWN, Image.Resampling.LANCZOS) for frame, _ in frames]
    every = Image.new("RGB", (SHOWN[0], SHOWN[1] * len(small)))
    for place, frame in enumerate(small):
        every.paste(frame, (0, place * SHOWN[1]))
    palette = Image.new("P", (1, 1))
    # grounds that fill the page as they are, and dots that fill next to nothing
    palette.putpalette(colours(every, Image.Quantize.MEDIANCUT) + colours(every, Image.Quantize.MAXCOVERAGE))
    drawn = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in small]
    path = IMAGES / "explorer.gif"
    told: dict[str, Any] = {"duration": [milliseconds for _, milliseconds in frames], "loop": 0, "optimize": True}
    drawn[0].save(path, save_all=True, append_images=drawn[1:], disposal=1, **told)
    print("explorer.gif", path.stat().st_size // 1000, "kB,", len(frames), "frames")


def colours(image: Image.Image, method: Image.Quantize) -> list[int]:
    """128 colours of an image, one after the other."""
    found = image.quantize(128, method=method, dither=Image.Dither.NONE).getpalette()
    assert found is not None
    return found[: 3 * 128]


def sliding(page: Page) -> Iterator[int]:
    """Three latents in use, then one that is not: how long the frame after each move stays."""
    page.evaluate("document.querySelector('#steer').scrollIntoView()")
    yield 900
    sliders = page.locator(".slider input")
    for which, values in enumerate((SWING, SWING, SWING, SWING)):
        for value in values:
            move(page, sliders.nth(which), value)
            yield 90
        yield 300


SWING = (0.7, 1.4, 2.1, 1.4, 0.7, 0.0, -0.7, -1.4, -2.1, -1.4, -0.7, 0.0)


def studying(page: Page) -> Iterator[int]:
    """Scores of 96 models by setting, another score, and one against the other."""
    yield 1800
    page.locator("#choose-y-here").select_option("scores.mean.mig")
    page.wait_for_function("document.querySelector('#violins h2').textContent.startsWith('MIG')")
    yield 1600
    page.evaluate("document.querySelector('#scatter').scrollIntoView()")
    yield 1600
    page.evaluate("document.querySelector('#correlations').scrollIntoView()")
    yield 1800


def comparing(page: Page) -> Iterator[int]:
    """The same walk through two seeds, and their layers."""
    yield 1200
    page.evaluate("document.querySelector('#walk').scrollIntoView()")
    yield 600
    for value in SWING:
        move(page, page.locator("#walk-slider"), value)
        yield 100
    page.evaluate("document.querySelector('#layers').scrollIntoView()")
    yield 2200


def move(page: Page, slider: Any, value: float) -> None:
    """Move a slider and wait until its picture has been drawn."""
    with page.expect_response(lambda answer: answer.url.endswith("/decode")):
        slider.evaluate("(s, value) => { s.value = value; s.dispatchEvent(new Event('input')); }", value)
    page.wait_for_timeout(80)


def opened(browser: Any, path: str, width: int, height: int, dark: bool = False) -> Page:
    """A view, all of it drawn."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page: Page = context.new_page()
    if path == STUDY:
        page.route("**/api/runs?*", lambda route: route.fulfill(body=json.dumps(table_of_k_1())))
        title = "k-1 at small size: six objectives, four strengths, four seeds"
        told = {"name": "k-1", "title": title, "ids": None, "marks": []}
        told |= {"protocols": [], "note": "", "place": ""}
        page.route("**/api/studies/*", lambda route: route.fulfill(body=json.dumps(told)))
    page.goto(f"http://127.0.0.1:{PORT}{path}")
    settle(page)
    return page


def table_of_k_1() -> dict[str, Any]:
    """The table of k-1's runs as the explorer's server would send it."""
    rows = list(csv.DictReader((HERE / "results" / "k-runs.csv").read_text(encoding="utf-8").splitlines()))
    columns = []
    for name in rows[0]:
        values = [number(row[name]) for row in rows]
        words = sorted({value for value in values if isinstance(value, str)}) if name != "id" else []
        places = [-1 if value is None else words.index(str(value)) for value in values] if words else values
        columns.append({"name": name, "words": words or None, "values": places})
    told = {"version": 1, "whole": True, "complete": True, "n_found": len(rows), "n_rows": len(rows), "gone": []}
    return told | {"columns": columns, "shared": {}}


def number(text: str) -> float | str | None:
    """A cell of a CSV file."""
    try:
        return float(text) if text else None
    except ValueError:
        return text


def picture(page: Page) -> Image.Image:
    """What the browser shows."""
    with Image.open(io.BytesIO(page.screenshot())) as found:
        return found.convert("RGB")


def settle(page: Page) -> None:
    """Until nothing is loading, and a little longer."""
    page.wait_for_selector("main h1")
    page.wait_for_selector(".loading", state="detached", timeout=120_000)
    page.wait_for_timeout(3000)


def wait() -> None:
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/api/store", timeout=2).read()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError("the explorer did not start")


if __name__ == "__main__":
    main()
