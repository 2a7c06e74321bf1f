"""How the explorer looks: every view in a real browser, wide and narrow, light and dark, and to a screen reader."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import BARE, CUT, PATIENCE, TINY, all_seen, serious, served
from playwright.sync_api import Browser, Page, expect

from unweave.pages.column_names import column_names

pytestmark = pytest.mark.browser
VIEWS = {
    "runs": "/",
    "a run": "/run/one",
    "points": "/run/flat",
    "failed": "/run/failed",
    "two runs": "/compare?left=one&right=two",
    "all": "/study/all",
    "study": "/study/pair",
    "search": "/search/{search}",
    "nothing": "/run/nowhere",
}


@pytest.fixture
def page(browser: Browser, address: str) -> Iterator[Page]:
    context = browser.new_context(base_url=address, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    yield context.new_page()
    context.close()


@contextmanager
def opened(browser: Browser, address: str, path: str, width: int, scheme: Any) -> Iterator[Page]:
    """A view in one form, all of it drawn."""
    context = browser.new_context(base_url=address, viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(PATIENCE)
    page = context.new_page()
    page.goto(path)
    all_seen(page)
    yield page
    context.close()


def wrong(page: Page, width: int) -> dict[str, Any]:
    """What does not fit on a page; nothing is an empty answer."""
    found = {
        "too wide": max(0, page.evaluate("document.documentElement.scrollWidth") - width),
        "cut": page.evaluate(CUT),
        "without numbers or names": page.evaluate(BARE),
        "too small": page.evaluate(TINY),
    }
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_fits_and_can_be_read_aloud(browser: Browser, address: str, search_name: str, view: str) -> None:
    path = VIEWS[view].format(search=search_name)
    with opened(browser, address, path, 1280, "light") as page:
        assert wrong(page, 1280) == {}
        assert serious(page) == []
        page.emulate_media(color_scheme="dark")
        assert serious(page, "color-contrast") == []
    with opened(browser, address, path, 390, "dark") as page:
        assert wrong(page, 390) == {}


@pytest.mark.slow
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_every_form(browser: Browser, address: str, search_name: str, view: str) -> None:
    for width in (390, 1280):
        for scheme in ("light", "dark"):
            with opened(browser, address, VIEWS[view].format(search=search_name), width, scheme) as page:
                assert wrong(page, width) == {}
                assert serious(page) == []


def test_an_empty_store(browser: Browser, tmp_path: Path) -> None:
    with served(tmp_path) as address, opened(browser, address, "/", 390, "dark") as page:
        expect(page.get_by_role("heading", name="No runs yet")).to_be_visible()
        assert wrong(page, 390) == {}
        assert serious(page) == []


def test_many_settings_keep_their_names_readable_on_a_phone(browser: Browser, address: str) -> None:
    with opened(browser, address, "/", 390, "light") as page:
        page.evaluate(
            """async () => { const { violins } = await import('/static/charts/points.js');
            const { figure } = await import('/static/lib/figure.js');
            const group = (_, at) => ({ name: `objective ${at}`, values: [at, 1], ids: ['a', 'b'], colour: 'red' });
            const groups = Array.from({ length: 24 }, group);
            const drawn = violins({ groups, yName: 'score', label: 'scores', onpick: () => 0 });
            document.querySelector('main').append(figure(drawn, { name: 'many', wide: true })); }"""
        )
        assert page.locator("svg.chart text").count() > 24
        assert wrong(page, 390) == {}


def test_columns_that_most_runs_have_come_first(page: Page) -> None:
    page.goto("/")
    found = page.evaluate(
        """async () => { const { Runs } = await import('/static/lib/table.js');
        const table = new Runs();
        table.ids = ['a', 'b', 'c'];
        table.columns = new Map([['one', [1, null, null]], ['two', [null, 0, 0]], ['none', [null, null]]]);
        return table.mostKnown(['none', 'one', 'two', 'shared']); }"""
    )
    assert found == ["shared", "two", "one", "none"]


def test_both_ends_of_every_axis_carry_a_number(page: Page) -> None:
    page.goto("/")
    draw = np.random.default_rng(0)
    low = draw.normal(size=60) * 10 ** draw.uniform(-4, 4, 60)
    ranges = [[float(a), float(a + abs(a) * 10**b)] for a, b in zip(low, draw.uniform(-3, 2, 60))]
    found = page.evaluate(
        """async (ranges) => { const { rounded, scale, ticks } = await import('/static/charts/axes.js');
        return ranges.map(([low, high]) => [false, true].filter((log) => !log || low > 0).map((log) => {
          const domain = rounded([low, high], { log });
          return { domain, ticks: ticks(scale(domain, [0, 300], log)) };
        })); }""",
        ranges,
    )
    for (least, most), scales in zip(ranges, found):
        for one in scales:
            assert one["domain"][0] <= least * (1 + 2e-3 * np.sign(least))
            assert one["domain"][1] >= most * (1 - 2e-3 * np.sign(most))
            assert 2 <= len(one["ticks"]) <= 22
            assert one["ticks"][0] == pytest.approx(one["domain"][0], rel=1e-6, abs=1e-9)
            assert one["ticks"][-1] == pytest.approx(one["domain"][1], rel=1e-6, abs=1e-9)


def test_names_beside_traversals_are_whole(page: Page) -> None:
    page.goto("/")
    page.evaluate(
        """async () => { const { stripSheet } = await import('/static/views/strips.js');
        const pictures = { n: 11, width: 8, height: 8, channels: 1, bytes: new Uint8Array(11 * 64) };
        document.querySelector('main').append(stripSheet(pictures, [{ latent: 10, type: 'passive', kl: 0.017 }])); }"""
    )
    expect(page.get_by_text("passive · 0.017 nats")).to_be_visible()
    assert page.evaluate(CUT) == []


def test_a_value_lies_inside_its_rounded_interval(page: Page) -> None:
    page.goto("/")
    draw = np.random.default_rng(1)
    middle = draw.normal(size=300) * 10 ** draw.uniform(-3, 3, 300)
    half = np.abs(middle) * 10 ** draw.uniform(-5, 0, 300)
    given = [[1.97, 1.962, 1.978], *np.stack([middle, middle - half, middle + half], 1).tolist()]
    found = page.evaluate(
        """async (given) => { const { within } = await import('/static/lib/format.js');
        return given.map((one) => within(...one)); }""",
        given,
    )
    assert found[0] == ["1.970", "1.962", "1.978"]
    for value, low, high in found:
        low, value, high = (float(text.replace("−", "-").replace(",", "")) for text in (low, value, high))
        assert low <= value <= high


def test_columns_have_the_names_that_reports_give_them(page: Page) -> None:
    page.goto("/")
    names = ["scores.mean.mig", "scores@699e.mean.dci.disentanglement", "scores@20b7.mean.dci.disentanglement"]
    names += ["scores@1.sampled.mle", "objective.beta", "objective.n_negatives", "cost.seconds", "polarised.n_active"]
    names += ["polarised.kl_sum", "fondue.trace.first", "network.hidden", "seed", "batch_size", "world.called"]
    found = page.evaluate(
        "async (names) => { const { columns } = await import('/static/lib/format.js'); return [...columns(names)]; }",
        names,
    )
    assert dict(found) == column_names(names)
    told = page.evaluate(
        "async (names) => { const { columns } = await import('/static/lib/format.js'); "
        "return [...columns(names, { '20b7aabb': '200 samples' }).values()]; }",
        names[1:3],
    )
    assert told == ["DCI-D (other settings, 699e)", "DCI-D (200 samples)"]
    assert dict(found)["scores.mean.mig"] == "MIG"
    assert dict(found)["scores@699e.mean.dci.disentanglement"] == "DCI-D (699e)"
    assert not any("_" in words for words in dict(found).values())


def table(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows as the server sends them."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        words = sorted({value for value in values if isinstance(value, str)}) if name != "id" else []
        places = [-1 if value is None else words.index(value) for value in values] if words else values
        columns.append({"name": name, "words": words or None, "values": places})
    told = {"version": 1, "whole": True, "complete": True, "n_found": len(rows), "n_rows": len(rows), "gone": []}
    return told | {"columns": columns, "shared": {}}


def studied(page: Page, n_seeds: int) -> None:
    """A store with runs of two worlds at three strengths, more of the first world; SAP follows the strength."""
    draw = np.random.default_rng(0)
    rows = [
        {
            "id": f"{world}-{beta}-{seed}",
            "state": "done",
            "world.name": "micro",
            "world.width": width,
            "objective.name": "beta_vae",
            "objective.beta": beta,
            "seed": seed,
            "cost.seconds": 1000.0 * beta + seed,
            "scores.mean.mig": float(draw.normal()),
            "scores.mean.sap_score": 1.0 / beta + 0.01 * float(draw.normal()) + 10 * (world == "narrow"),
            "modified": 1.7e9,
        }
        for world, width, seeds in (("round", None, n_seeds), ("narrow", 0.4, n_seeds - 1))
        for beta in (1.0, 4.0, 16.0)
        for seed in range(seeds)
    ]
    page.route("**/api/runs?*", lambda route: route.fulfill(json=table(rows)))


def test_a_study_opens_on_the_score_that_follows_what_was_varied(page: Page) -> None:
    studied(page, 4)
    page.goto("/study/all")
    expect(page.locator("#violins h2")).to_have_text("SAP by setting")
    expect(page.locator("#choose-x")).to_have_value("objective.beta")
    expect(page.locator("#choose-y")).to_have_value("scores.mean.sap_score")
    expect(page.locator("#violins text.tick", has_text="β 16")).to_have_count(1)
    names = page.locator("#correlations text.tick").all_text_contents()
    assert "SAP" in names
    assert not any("cost" in name for name in names)


def test_worlds_are_never_mixed_in_a_correlation(page: Page) -> None:
    studied(page, 4)
    page.goto("/study/all")
    expect(page.locator("#choose-world")).to_have_value("micro")
    assert page.locator("#choose-world option").all_text_contents() == [
        "micro (12)",
        "micro, width 0.4 (9)",
        "all of them",
    ]
    expect(page.locator("#correlations")).to_contain_text("over the 12 runs of micro.")
    expect(page.locator("#scatter .dot")).to_have_count(12)
    page.locator("#choose-world").select_option("micro, width 0.4")
    expect(page.locator("#correlations")).to_contain_text("over the 9 runs of micro, width 0.4.")
    page.locator("#choose-world").select_option("*")
    expect(page.locator("#correlations")).to_contain_text("Runs of several worlds are not correlated")
    expect(page.locator("#correlations .heat")).to_have_count(0)
    expect(page.locator("#scatter figcaption")).to_contain_text("21 runs. A click")
    assert "world=" in page.url


def test_a_few_runs_are_points_without_a_shape(page: Page) -> None:
    studied(page, 8)
    page.goto("/study/all")
    expect(page.locator("#violins .violin")).to_have_count(3)
    page.locator("#choose-world").select_option("micro, width 0.4")
    expect(page.locator("#violins .dot")).to_have_count(21)
    expect(page.locator("#violins .violin")).to_have_count(0)


def test_points_are_one_stop_for_the_keyboard_and_stand_in_a_table(page: Page) -> None:
    studied(page, 4)
    page.goto("/study/all")
    dots = page.locator("#scatter .dot")
    expect(dots).to_have_count(12)
    assert dots.evaluate_all("dots => dots.filter((dot) => dot.tabIndex === 0).length") == 1
    dots.first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == dots.nth(1).get_attribute("aria-label")
    page.locator("#scatter .behind summary").click()
    expect(page.locator("#scatter tbody tr")).to_have_count(12)
    page.locator("#correlations .behind summary").click()
    expect(page.locator("#correlations th[scope=row]")).to_have_count(2)
    assert serious(page) == []


def test_lines_and_histograms_stand_in_tables_that_the_keyboard_opens(page: Page) -> None:
    page.goto("/run/one")
    all_seen(page)
    for part, head in [("#training", ["step", "latent 0"]), ("#histograms", ["from", "to", "mean codes"])]:
        first = page.locator(f"{part} .behind").first
        assert first.locator("summary").get_attribute("aria-label").endswith(", as a table")
        first.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(first.locator("tbody tr").first).to_be_visible()
        assert first.locator("thead th").all_text_contents()[: len(head)] == head
    recorded = page.evaluate("fetch('/api/runs/one/history').then((answer) => answer.json())")
    rows = page.locator("#training .behind").first.locator("tbody tr")
    expect(rows).to_have_count(len(recorded["steps"]))
    assert (
        float(rows.last.locator("td").first.text_content().replace("\u202f", "").replace(",", ""))
        == recorded["steps"][-1]
    )
    assert serious(page) == []


def test_a_long_line_is_a_short_table_with_both_ends(page: Page) -> None:
    page.goto("/")
    told = page.evaluate(
        """async () => { const { linesTable } = await import('/static/charts/lines.js');
        const x = Array.from({ length: 1000 }, (_, i) => i);
        return [...linesTable({ x, series: [{ name: 'loss', values: x }] }).querySelectorAll('tbody tr')]
            .map((row) => row.textContent); }"""
    )
    assert len(told) == 50
    assert (told[0], told[-1]) == ("00", "999999")


def test_a_long_name_of_a_number_does_not_widen_a_phones_page(browser: Browser, address: str) -> None:
    with opened(browser, address, "/study/all", 390, "light") as page:
        page.locator("#choose-y").evaluate(
            "select => select.append(new Option('a number with a long name '.repeat(9)))"
        )
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_numbers_of_a_few_runs_are_not_correlated(page: Page) -> None:
    rows = [
        {"id": f"r{n}", "state": "done", "world.name": "micro", "objective.name": "vae", "seed": n}
        | {"scores.mean.mig": n % 3, "scores.mean.sap_score": n * n % 5}
        | ({"scores.mean.irs": n} if n < 2 else {"scores.mean.irs": None})
        for n in range(6)
    ]
    page.route("**/api/runs?*", lambda route: route.fulfill(json=table(rows)))
    page.goto("/study/all")
    page.locator("#correlations .behind summary").click()
    expect(page.locator("#correlations th[scope=row]")).to_have_text(["MIG", "SAP"])


def test_names_and_states_are_whole_where_there_is_room(page: Page) -> None:
    page.goto("/")
    expect(page.locator(".body .row").first).to_be_visible()
    cut = "cells => cells.filter((cell) => cell.scrollWidth > cell.clientWidth + 1).map((cell) => cell.textContent)"
    assert page.locator(".row .cell").evaluate_all(cut) == []
    assert page.locator(".runs-scroll").evaluate("grid => grid.scrollWidth - grid.clientWidth") <= 0


def test_scores_say_which_way_is_better_only_where_one_is_and_what_was_left_out_once(page: Page) -> None:
    one = {"representation": "mean", "value": 1.97, "low": 1.962, "high": 1.978, "paper": ""}
    scores = [one | {"metric": "mle", "higher_is_better": None}, one | {"metric": "mig", "higher_is_better": True}]
    left_out = {f"metric_{place}": "needs factors" for place in range(14)}
    told = {
        "kept": True,
        "n_samples": 9,
        "protocol": "9 examples",
        "matrices": [],
        "left_out": left_out,
        "trivial": ["mig"],
    }
    page.route("**/scores", lambda route: route.fulfill(json=told | {"scores": scores}))
    page.goto("/run/one")
    page.locator("#scores").scroll_into_view_if_needed()
    rows = page.locator("#scores tbody tr")
    expect(rows.first).to_contain_text("describes, does not judge")
    expect(rows.first).not_to_contain_text("better")
    expect(rows.nth(1)).to_contain_text("higher is better")
    expect(rows.first).to_contain_text("1.970 1.962 … 1.978")
    expect(page.locator("#scores").get_by_text("needs factors")).to_have_count(1)
    expect(page.locator("#scores")).to_contain_text("is 1 for any code that varies: MIG.")


def test_dots_stand_out_from_their_ground(browser: Browser, address: str) -> None:
    for scheme in ("light", "dark"):
        with opened(browser, address, "/", 1280, scheme) as page:
            found = page.evaluate(
                """async () => { const { COLOURS } = await import('/static/charts/points.js');
                const probe = document.body.appendChild(document.createElement('i'));
                return ['var(--surface)', ...COLOURS].map((one) => { probe.style.color = one;
                  return getComputedStyle(probe).color.match(/[\\d.]+/g).slice(0, 3).map(Number); }); }"""
            )
        ground, *dots = (luminance(colour) for colour in found)
        # 3 : 1 is what WCAG 2.1 asks of graphics (1.4.11); on a dark ground, from which the eye takes less, more
        least = 3.0 if scheme == "light" else 6.0
        assert min((max(ground, dot) + 0.05) / (min(ground, dot) + 0.05) for dot in dots) >= least


def luminance(colour: list[float]) -> float:
    """The relative luminance of an sRGB colour in bytes (WCAG 2.1)."""
    share = np.array(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_pictures_keep_their_proportions(page: Page) -> None:
    page.goto("/")
    drawn = page.evaluate(
        """async () => { const { stripSheet } = await import('/static/views/strips.js');
        const pictures = { n: 11, width: 60, height: 30, channels: 1, bytes: new Uint8Array(11 * 1800) };
        const image = stripSheet(pictures, [{ latent: 0, type: 'active', kl: 1 }]).querySelector('image');
        return [image.getAttribute('width') / 11, Number(image.getAttribute('height'))]; }"""
    )
    assert drawn == [60, 30]


def test_names_of_columns_stand_upright_where_they_do_not_fit(browser: Browser, address: str) -> None:
    names = [f"a number with a long name {place}" for place in range(9)]
    for width, angle in ((390, "rotate(-90)"), (1280, "rotate(-40)")):
        with opened(browser, address, "/", width, "light") as page:
            found = page.evaluate(
                """async (names) => { const { heat } = await import('/static/charts/heat.js');
                const svg = heat({ values: names.map(() => names.map(() => 0.5)), rows: ['a'], columns: names });
                document.querySelector('main').append(svg);
                return [...svg.querySelectorAll('text[transform]')].map((text) => text.getAttribute('transform')); }""",
                names,
            )
            assert len(found) == 9
            assert all(one.endswith(angle) for one in found)
            assert page.evaluate(CUT) == []


def test_a_study_may_be_typed_as_its_name_is_shown(page: Page) -> None:
    page.goto("/study/inner/name")
    expect(page.get_by_role("alert")).to_contain_text("inner:name")
