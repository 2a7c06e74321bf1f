"""A server and a browser for tests that look at pages, and what they find wrong with one."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from unweave.web.app import create_app
from unweave.web.serve import listen

FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PATIENCE = 60_000
expect.set_options(timeout=PATIENCE)

CUT = """() => [...document.querySelectorAll("svg.chart")].flatMap((svg) => {
  const around = svg.getBoundingClientRect();
  const outside = (inner) => inner.width && (inner.left < around.left - 1 || inner.right > around.right + 1
    || inner.top < around.top - 1 || inner.bottom > around.bottom + 1);
  return [...svg.querySelectorAll("text")].filter((text) => outside(text.getBoundingClientRect()))
    .map((text) => text.textContent);
})"""
"""Words of charts that reach over the edge of their chart."""

BARE = """() => [...document.querySelectorAll("svg.chart")].filter((svg) => svg.querySelector(".axis")
  && (svg.querySelectorAll(".tick.y").length < 2 || !svg.querySelector(".name")))
  .map((svg) => svg.getAttribute("aria-label"))"""
"""Charts with axes that have fewer than two numbers upwards, or no name."""

TINY = """() => [...document.querySelectorAll("svg.chart")].flatMap((svg) => {
  const zoom = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
  const size = (text) => zoom * parseFloat(getComputedStyle(text).fontSize);
  return [...svg.querySelectorAll("text")].filter((text) => size(text) < 8.5)
    .map((text) => `${text.textContent}: ${size(text).toFixed(1)} px`);
})"""
"""Words of charts that are drawn too small to be read."""


@contextmanager
def served(store: Path) -> Iterator[str]:
    """The address of an explorer of a store, on a free port, in a thread."""
    import uvicorn

    listening = listen("127.0.0.1", 0)
    told = uvicorn.Config(create_app(store), log_level="error", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(told)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=10)
    listening.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; without one the test is skipped, visibly."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("no chromium on this machine: the page was not tested in a browser")
    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=path, args=[*FLAGS, "--no-first-run"])
        yield found
        found.close()


def all_seen(page: Page) -> None:
    """Scroll through a page until everything that is drawn when it is seen is drawn."""
    page.wait_for_selector("main h1")
    page.wait_for_function(
        """() => { const step = innerHeight / 2, end = document.documentElement.scrollHeight;
        if (scrollY + innerHeight < end - 2) { scrollBy(0, step); return false; }
        return !document.querySelector(".loading"); }""",
        polling=60,
    )


def serious(page: Page, *rules: str) -> list[dict[str, Any]]:
    """What axe-core calls serious or critical on a page, by some of its rules or by all."""
    from axe_playwright_python.sync_playwright import Axe

    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found = Axe().run(page, options=only | {"resultTypes": ["violations"]}).response["violations"]
    return [
        {"rule": one["id"], "where": [node["html"][:200] for node in one["nodes"][:3]]}
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
