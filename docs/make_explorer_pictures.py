"""The pictures of docs/explorer.md: every view of a store in a real browser.

    python docs/make_explorer_pictures.py STORE --search dimension-micro-…      # needs chromium and playwright

STORE holds at least the runs `demo` and `demo-1` (unweave demo, unweave demo --seed 1).
"""

import argparse
import io
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Page, sync_playwright

IMAGES, PORT = Path(__file__).parent / "images", 8797
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--no-first-run"]


def main() -> None:
    """Serve the store, visit every view, keep a picture of each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--search", help="the name of a dimension search in it")
    given = parser.parse_args()
    words = ["-m", "unweave", "explore", given.store, "--no-browser", "--port", str(PORT)]
    server = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL)
    try:
        wait()
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
            take_all(browser, given.search)
    finally:
        server.terminate()
        server.wait()


def take_all(browser: Any, search: str | None) -> None:
    """Light and dark, large and small."""
    take(browser, "explorer_runs", "/", height=640)
    take(browser, "explorer_run", "/run/demo?code=0.9,-1.1,1.2,0,0,0", height=800, part="#steer")
    take(browser, "explorer_pad", "/run/demo", height=1180, part="#pad", dark=True)
    take(browser, "explorer_compare", "/compare?left=demo&right=demo-1", height=1500)
    take(
        browser, "explorer_small", "/run/demo?code=0.9,-1.1,1.2,0,0,0", width=390, height=844, part="#steer", dark=True
    )
    if search:
        take(browser, "explorer_search", f"/search/{search}", height=900, dark=True)


def take(
    browser: Any, name: str, path: str, *, width: int = 1280, height: int, part: str = "", dark: bool = False
) -> None:
    """One view as a PNG of few colours."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page: Page = context.new_page()
    page.goto(f"http://127.0.0.1:{PORT}{path}")
    settle(page)
    if part:
        page.evaluate("name => document.querySelector(name).scrollIntoView()", part)
        settle(page)
    with Image.open(io.BytesIO(page.screenshot())) as picture:
        picture.convert("RGB").quantize(224, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
    print(name, (IMAGES / f"{name}.png").stat().st_size // 1000, "kB")
    context.close()


def settle(page: Page) -> None:
    """Until nothing is loading, and a little longer."""
    page.wait_for_selector("main h1")
    page.wait_for_selector(".loading", state="detached", timeout=120_000)
    page.wait_for_timeout(6000)


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
