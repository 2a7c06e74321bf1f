"""The page of a manipulation in a real browser: sliders for ε and the factors, three pictures, both sides' codes."""

import shutil
from collections.abc import Iterator

import pytest
from browsing import chromium, served
from playwright.sync_api import expect

from unweave.cli import main
from unweave.recipes.perturb import Attack, base_of, perturb

pytestmark = pytest.mark.browser
SMALL = ["--network", "mlp", "--network.encoder-widths", "6", "--network.decoder-widths", "6", "--latents", "3"]
QUICK = ["--steps", "4", "--batch-size", "8", "--plan.threads", "1", "--plan.device", "cpu", "--quiet"]
PIXELS = "c => [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].join()"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a manipulation's page."""
    store = tmp_path_factory.mktemp("manipulations") / "runs"
    low, high = store / "low", store / "high"
    for seed, folder in enumerate((low, high)):
        assert main(["train", "micro", *SMALL, *QUICK, "--seed", str(seed), "--folder", str(folder)]) == 0
    made = perturb(base_of([low]), Attack(perturb_steps=4, epsilon=0.2), store, foster=[low], diminish=[high])
    shutil.rmtree(high)
    with served(store) as address:
        yield f"{address}/run/{made.folder.name}"


def test_pictures_follow_the_sliders(place: str) -> None:
    troubles: list[str] = []
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 800})
        page.set_default_timeout(60_000)
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.goto(place)
        original, altered = page.locator("canvas.original"), page.locator("canvas.altered[data-took]")
        expect(altered).to_be_visible(timeout=60_000)
        expect(page.locator("#codes")).to_contain_text("fostered: low")
        expect(page.locator("#codes")).to_contain_text("there is no run 'high' in this store")
        before = altered.evaluate(PIXELS)
        assert before != original.evaluate(PIXELS)
        page.locator("#epsilon").fill("0")
        expect(page.locator(".took")).to_contain_text("no pixel moves by more than 0 ·")
        assert altered.evaluate(PIXELS) == original.evaluate(PIXELS)
        page.locator("#factor-0").fill("3")
        page.get_by_role("button", name="ε as trained: 0.200").click()
        page.wait_for_url("**values=3*")
        page.reload()
        expect(altered).to_be_visible(timeout=60_000)
        expect(page.locator("#factor-0")).to_have_value("3")
        assert altered.evaluate(PIXELS) != before
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
        ends = page.locator("#codes svg .tick").all_text_contents()
        assert float(ends[0].replace("−", "-")) <= -4
        page.locator("#training").scroll_into_view_if_needed()
        expect(page.locator("#training figure")).to_have_count(3, timeout=60_000)
        expect(page.locator("#training")).to_contain_text("loss of the fostered side")
    assert troubles == []
