"""Writes docs/results: judges again what runs are kept of, and makes the page of all claims from the CSV files.

python docs/make_results.py            # the page of all claims and the table of README.md, from every results.csv
python docs/make_results.py --judge    # first judges k-1 to k-3 and z-table-3.3 again, from their runs.csv
"""

import argparse
import csv
import html
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unweave
from unweave.recipes.reproductions import REPRODUCTIONS

RESULTS = Path(__file__).parent / "results"
STYLES = Path(unweave.__file__).parent / "pages" / "page.css"
KEPT = {"k-1": "k-runs.csv", "k-2": "k-runs.csv", "k-3": "k-runs.csv", "z-table-3.3": "z-table-3.3-runs.csv"}
"""Reproductions whose runs are kept as a table, from which they can be judged again."""

MADE = {"size": "small", "date": "2026-11-15", "card": "H200"}
"""Of folders without ``made.json``."""

PARTS = ("", "-shapes", "-paper")
"""What may follow an id in a folder's name: nothing, the imitation of Shapes3D alone, a part at the published size."""

REASONS = json.loads((RESULTS / "reasons.json").read_text(encoding="utf-8"))
"""Why a claim differs, in two sentences: of a folder and a claim, both as regular expressions."""

SUPERSEDED = (
    '<p style="margin:16px 0;padding:12px 16px;border:2px solid #c95400;border-radius:8px"><b>Superseded.</b> Judged by'
    " the rules of version 0.1.0, without controls: its verdicts do not count any more, and its numbers and figures"
    ' stand. What counts is <a href="../index.html">the page of all claims</a>.</p>'
)

THEME = (
    "<style>:root{--ink:#1d2733;--muted:#5b6773;--line:#dde2e7;--surface:#fff;--active:#0072b2;--mixed:#c95400;"
    "--passive:#7d868f}@media(prefers-color-scheme:dark){:root{--ink:#e8edf2;--muted:#a3afbb;--line:#313b46;"
    "--surface:#1a2129;--active:#5ab4ec;--mixed:#ff9d57;--passive:#98a3ae}}"
    "text{font-family:system-ui,sans-serif!important}</style>"
)
"""The colours of a page's figures, for a figure that stands alone."""

COLUMNS = ("verdict", "claim", "published", "ours", "95 % interval", "n", "control, which must not agree")
WORDS = ("agrees", "differs", "not evidence", "cannot tell", "runs", "not run")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", action="store_true")
    if parser.parse_args().judge:
        for name, table in KEPT.items():
            judge_again(name, RESULTS / table)
    for folder in (folder for name in REPRODUCTIONS for folder in folders(name)):
        restyle(RESULTS / folder / "index.html")
        mark_superseded(RESULTS / folder)
        for drawn in figures(folder):
            (RESULTS / folder / drawn.file).write_text(drawn.svg, encoding="utf-8")
    rows = claims()
    write_csv(rows)
    (RESULTS / "index.html").write_text(page(rows), encoding="utf-8")
    readme = RESULTS / "README.md"
    readme.write_text(with_table(readme.read_text(encoding="utf-8"), rows), encoding="utf-8")
    counts = Counter(row["verdict"] for row in rows)
    print(", ".join(f"{counts[word]} {word}" for word in WORDS if counts[word]))


def judge_again(name: str, table: Path) -> None:
    """Judge a reproduction by today's rules from the table of its runs, and write its page."""
    import polars as pl

    from unweave.pages.result_folder import write_result_page
    from unweave.recipes.controls import judged
    from unweave.recipes.reproduce import lead_of
    from unweave.recipes.reproductions import find_reproduction
    from unweave.studies.results import Results
    from unweave.studies.store import Store

    one, size = find_reproduction(name), made_of(name)["size"]
    study = one.study(size)
    results = Results(study, Store("nowhere"), study.experiments)
    results.__dict__["table"] = pl.read_csv(table, infer_schema_length=None)
    outcome = judged(one, results, size)
    meta = {"published in": one.source, "size": size, "models": results.table.height, "judged from": table.name}
    command = f"python docs/make_results.py --judge    # {name}, from docs/results/{table.name}"
    lead = lead_of(outcome, size)
    write_result_page(RESULTS / name, one.title, outcome, results, command=command, meta=meta, lead=lead)
    for path in sorted((RESULTS / name).rglob("*"), reverse=True):
        # figures and tables stand on the page, runs beside the folder
        if path.name not in ("index.html", "results.csv", "made.json") and path.suffix != ".svg":
            path.rmdir() if path.is_dir() else path.unlink()


def restyle(page: Path) -> None:
    """Give a kept page, whose runs may be gone, the styles of today's pages."""
    if page.exists():
        text = page.read_text(encoding="utf-8")
        style = f"<style>{STYLES.read_text(encoding='utf-8')}</style>"
        page.write_text(
            re.sub(r"<style>.*?</style>", lambda _: style, text, count=1, flags=re.DOTALL), encoding="utf-8"
        )


def mark_superseded(folder: Path) -> None:
    """Say on a page that was judged before controls were asked for that its verdicts no longer count."""
    path = folder / "index.html"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if text and "control" not in (folder / "results.csv").read_text(encoding="utf-8") and SUPERSEDED not in text:
        path.write_text(text.replace("<body>", f"<body>{SUPERSEDED}", 1), encoding="utf-8")


def claims() -> list[dict[str, Any]]:
    """Every claim of every reproduction that was run, and a line for each that was not."""
    rows: list[dict[str, Any]] = []
    for name, listed in REPRODUCTIONS.items():
        about = {"id": name, "title": listed.title, "source": listed.source}
        judged = [about | {"folder": folder} | row for folder in folders(name) for row in claims_in(folder)]
        rows += judged or [about | {"claim": "", "verdict": "not run"}]
    return rows


def folders(name: str) -> list[str]:
    """Where a reproduction's results are kept: by its id, and where it was run in other parts or at other sizes too."""
    return [name + part for part in PARTS if (RESULTS / f"{name}{part}" / "results.csv").exists()]


def claims_in(folder: str) -> list[dict[str, Any]]:
    """The claims that one folder judges."""
    rows: list[dict[str, Any]] = []
    for row in csv.DictReader((RESULTS / folder / "results.csv").read_text(encoding="utf-8").splitlines()):
        verdict, note = row["verdict"], row.get("note", "")
        if not row.get("control") and verdict in ("agrees", "differs"):
            verdict, note = "cannot tell", "; ".join(filter(None, (note, "judged before controls were asked for")))
        told = {key: row.get(key, "") for key in ("published", "ours", "low", "high", "n")}
        controls = {key: row.get(key, "") for key in ("control", "control_ours", "control_agrees")}
        why = {"why": reason(folder, row["what"]) if verdict == "differs" else ""}
        rows.append({"claim": row["what"], "verdict": verdict, "note": note} | told | controls | made_of(folder) | why)
    return rows


def reason(folder: str, claim: str) -> str:
    """Why it differs."""
    found = (one["why"] for one in REASONS if re.fullmatch(one["folder"], folder) and re.search(one["claim"], claim))
    return str(next(found, ""))


def made_of(name: str) -> dict[str, str]:
    """Size, date and card of a folder."""
    path = RESULTS / name / "made.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else MADE


def write_csv(rows: list[dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with (RESULTS / "claims.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def page(rows: list[dict[str, Any]]) -> str:
    """One page of all claims: a count at the top, filters, and result by result its figures and claims."""
    counts = Counter(row["verdict"] for row in rows)
    run = [row for row in rows if row["verdict"] != "not run"]
    lead = (
        f"{len(run)} claims of {len({row['id'] for row in run})} results were judged; {counts['not run']} results of"
        " the list have no run that is kept here. Count again: <code>python docs/make_results.py</code>."
    )
    parts = [[row for row in run if row["folder"] == name] for name in dict.fromkeys(map(_folder, run))]
    filters = "".join(
        f'<label><input type="checkbox" value="{word}" checked> {word} <b>{counts[word]}</b></label>'
        for word in WORDS
        if counts[word]
    )
    judged = "".join(result(part[0]["folder"], part) for part in parts)
    missing = "".join(
        f'<tr class="not-run" data-v="not run" data-id="{html.escape(row["id"])}">'
        '<td><span class="v">not run</span></td>'
        f'<td colspan="6">{html.escape(row["id"])}: {html.escape(row["title"])}</td></tr>\n'
        for row in rows
        if row["verdict"] == "not run"
    )
    end = f"<tbody>{missing}</tbody>\n" if missing else ""
    columns = "".join(f'<th scope="col" class="w{place}">{name}</th>' for place, name in enumerate(COLUMNS, 1))
    short_of_it = overview(parts, [row for row in rows if row["verdict"] == "not run"])
    return TEMPLATE.format(lead=lead, overview=short_of_it, filters=filters, columns=columns, body=judged + end)


def overview(parts: list[list[dict[str, Any]]], missing: list[dict[str, Any]]) -> str:
    """What holds, what differs and why, what is open: a line a result."""
    groups: dict[str, list[str]] = {
        "What holds, as far as it was judged": [],
        "What differs, and why": [],
        "What a control does too": [],
        "What these sizes cannot tell": [],
    }
    for part in parts:
        counts = Counter(row["verdict"] for row in part)
        word = next((word for word in ("differs", "not evidence", "agrees") if counts[word]), "cannot tell")
        place = ("agrees", "differs", "not evidence", "cannot tell").index(word)
        [*groups.values()][place].append(_brief(part, counts))
    shown = "".join(
        f"<section><h2>{title}</h2><ul>{''.join(lines)}</ul></section>" for title, lines in groups.items() if lines
    )
    left = ", ".join(f'<span title="{html.escape(row["title"])}">{html.escape(row["id"])}</span>' for row in missing)
    return shown + (f"<section><h2>Not run yet</h2><p>{left}</p></section>" if missing else "")


def _brief(part: list[dict[str, Any]], counts: Counter[str]) -> str:
    """A result in a line, and why what differs does."""
    first = part[0]
    told = " · ".join(
        f'<b class="{word.replace(" ", "-")}">{counted(counts, word)}</b>' for word in WORDS if counts[word]
    )
    why: dict[str, list[str]] = {}
    for row in part:
        if row["verdict"] == "differs":
            numbers = f"{short(row['ours'])} for {short(row['published'])}"
            why.setdefault(row["why"], []).append(f"<b>{html.escape(row['claim'])}</b>: {numbers}")
    reasons = "".join(f"<p>{'; '.join(of)}. {html.escape(words)}</p>" for words, of in why.items())
    name = html.escape(first["folder"])
    return (
        f'<li><span><a href="#{name}">{html.escape(first["id"])}</a> {html.escape(titled(first))}</span>'
        f" <small>{told} · {first['size']} size</small>{reasons}</li>"
    )


def titled(row: dict[str, Any]) -> str:
    """The title of a result, and which part of it was run."""
    return f"{row['title']} ({row['part']})" if row.get("part") else str(row["title"])


def counted(counts: Counter[str], word: str) -> str:
    """How many have a verdict: 1 agrees, 2 agree."""
    plural = {"agrees": "agree", "differs": "differ"} if counts[word] > 1 else {}
    return f"{counts[word]} {plural.get(word, word)}"


def with_table(text: str, rows: list[dict[str, Any]]) -> str:
    """README.md with the table of all results that were run, made anew."""
    lines = ["| what | size | models | verdicts | made on |", "|---|---|---|---|---|"]
    judged = [row for row in rows if row["verdict"] != "not run"]
    for name in dict.fromkeys(map(_folder, judged)):
        part = [row for row in judged if row["folder"] == name]
        counts = Counter(row["verdict"] for row in part)
        told = ", ".join(counted(counts, word) for word in WORDS if counts[word])
        models = re.search(r"<dt>models</dt><dd>([\d,]+)", (RESULTS / name / "index.html").read_text(encoding="utf-8"))
        what = f"[{part[0]['id']}]({name}/index.html): {titled(part[0])}"
        made = f"{part[0].get('card', '')}, {part[0].get('date', '')}"
        lines.append(f"| {what} | {part[0]['size']} | {models[1] if models else 'none'} | {told} | {made} |")
    table = "\n".join(lines)
    begin, end = "<!-- the table begins; made by make_results.py -->\n", "\n<!-- the table ends -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}{table}{end}", text, flags=re.DOTALL)


def _folder(row: dict[str, Any]) -> str:
    return str(row["folder"])


def result(name: str, rows: list[dict[str, Any]]) -> str:
    """A result: its name and how it was made, its figures, its claims."""
    made = ", ".join(filter(None, (f"{rows[0]['size']} size", rows[0].get("card"), rows[0].get("date"))))
    shown = html.escape(rows[0]["id"])
    if (RESULTS / name / "index.html").exists():
        shown = f'<a href="{html.escape(name)}/index.html">{shown}</a>'
    about = f"<h2>{shown} {html.escape(titled(rows[0]))}</h2><p>{html.escape(rows[0]['source'])} · {made}</p>"
    drawn = "".join(
        f'<a href="{html.escape(name)}/index.html"><img loading="lazy" src="{html.escape(name)}/{one.file}"'
        f' width="{one.width}" height="{one.height}" alt="{html.escape(one.words)}"></a>'
        for one in figures(name)
    )
    gallery = f'<div class="figures">{drawn}</div>' if drawn else ""
    head = f'<tr class="head"><th colspan="7" scope="rowgroup">{about}{gallery}</th></tr>\n'
    return f'<tbody id="{html.escape(name)}">{head}{"".join(map(line, rows))}</tbody>\n'


@dataclass(frozen=True)
class Drawn:
    """A figure of a result's page: the file that it becomes beside it, its content, its words and its size."""

    file: str
    svg: str
    words: str
    width: int
    height: int


def figures(name: str) -> list[Drawn]:
    """The figures of a result's page, to stand alone."""
    path = RESULTS / name / "index.html"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = []
    for place, drawn in enumerate(re.findall(r"<figure.*?</figure>", text, re.DOTALL), 1):
        svg = re.search(r'<svg viewBox="0 0 ([\d.]+) ([\d.]+)"[^>]*>(.*?)</svg>', drawn, re.DOTALL)
        if svg is None:
            continue
        words = html.unescape(re.sub(r"<[^>]+>", "", "".join(re.findall(r"<figcaption>(.*?)</figcaption>", drawn))))
        inner = re.sub(r' data-tip="[^"]*"', "", svg[3])
        size = f'width="{svg[1]}" height="{svg[2]}" viewBox="0 0 {svg[1]} {svg[2]}"'
        names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        alone = f"<svg {names} {size}>{THEME}{inner}</svg>\n"
        width, height = (round(float(side)) for side in svg.group(1, 2))
        found.append(Drawn(f"figure-{place}.svg", alone, words or f"{name}, figure {place}", width, height))
    return found


def line(row: dict[str, Any]) -> str:
    said = html.escape(row["claim"] or row["title"])
    note = "".join(f"<small>{html.escape(row[key])}</small>" for key in ("note", "why") if row.get(key))
    control = "; ".join(
        f"{control}: {short(ours) or 'no number'}, {agrees} agree"
        for control, ours, agrees in zip(
            *(str(row.get(key, "")).split("; ") for key in ("control", "control_ours", "control_agrees"))
        )
        if control
    )
    interval = f"{short(row.get('low'))} to {short(row.get('high'))}" if row.get("low") else ""
    cells = [f'<span class="v">{row["verdict"]}</span>', said + note, short(row.get("published"))]
    cells += [short(row.get("ours")), interval, str(row.get("n") or ""), html.escape(control)]
    kind, name = row["verdict"].replace(" ", "-"), html.escape(row["id"])
    opened = f'<tr class="{kind}" data-v="{row["verdict"]}" data-id="{name}">'
    named = (f'<td data-name="{name}">{cell}</td>' for name, cell in zip(COLUMNS, cells))
    return opened + "".join(named) + "</tr>\n"


def short(value: Any) -> str:
    text = "" if value is None else str(value)
    return (
        f"{float(text):.3g}".replace("-", "−") if re.fullmatch(r"-?\d+(\.\d+)?(e-?\d+)?", text) else html.escape(text)
    )


TEMPLATE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><title>What holds: every claim and our verdict</title><style>
:root {{ --ground: #f6f7f9; --surface: #fff; --ink: #1d2733; --muted: #5b6773; --line: #dde2e7;
  --a: #0072b2; --d: #c95400; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ground: #12171d; --surface: #1a2129; --ink: #e8edf2; --muted: #a3afbb; --line: #313b46;
    --a: #5ab4ec; --d: #ff9d57; }}
}}
body {{ margin: 0 auto; padding: 24px clamp(12px, 3vw, 32px); max-width: 1400px; background: var(--ground);
  color: var(--ink); font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }}
h1 {{ font-size: 1.6rem; margin: 0 0 8px; }} p {{ color: var(--muted); margin: 0 0 16px; }}
form {{ display: flex; flex-wrap: wrap; gap: 8px 20px; margin-bottom: 16px; }}
form input[type=search] {{ font: inherit; padding: 4px 8px; min-width: 220px; }}
:focus-visible {{ outline: 3px solid var(--a); outline-offset: 2px; }}
.scroll {{ overflow-x: auto; }} table {{ border-collapse: collapse; width: 100%; table-layout: fixed; }}
th, td {{ text-align: left; vertical-align: top; padding: 6px 10px; border-bottom: 1px solid var(--line); }}
thead th {{ color: var(--muted); font-weight: 600; }}
th, td {{ overflow-wrap: break-word; box-sizing: border-box; }}
.w1 {{ width: 9%; }} .w3 {{ width: 10%; }} .w4 {{ width: 8%; }} .w5 {{ width: 14%; }} .w6 {{ width: 5%; }}
.w7 {{ width: 23%; }}
.head th {{ padding: 28px 10px 10px; font-weight: 400; border-bottom: 2px solid var(--line); }}
.head h2 {{ font-size: 1.1rem; margin: 0 0 2px; }} .head p {{ margin: 0; font-size: .88rem; }}
.figures {{ display: flex; gap: 12px; overflow-x: auto; margin-top: 12px; }}
.figures img {{ display: block; height: 220px; width: auto; background: var(--surface);
  border: 1px solid var(--line); border-radius: 8px; }}
section h2 {{ font-size: 1.1rem; margin: 24px 0 4px; }} section ul {{ list-style: none; margin: 0; padding: 0; }}
section li {{ display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 24px; padding: 4px 0;
  border-bottom: 1px solid var(--line); }}
section li p {{ flex-basis: 100%; margin: 2px 0 6px; max-width: 90ch; }}
section li p b {{ color: var(--ink); font-weight: 600; }}
li small {{ font-size: .88rem; }} li small b {{ font-weight: 600; }}
small {{ display: block; color: var(--muted); }} a {{ color: var(--a); }}
b.agrees {{ color: var(--a); }} b.differs, b.not-evidence {{ color: var(--d); }}
.agrees .v {{ color: var(--a); font-weight: 650; }}
.differs .v, .not-evidence .v {{ color: var(--d); font-weight: 650; }}
.cannot-tell .v, .runs .v, .not-run .v {{ color: var(--muted); }}
@media (max-width: 760px) {{
  table, tbody, tr, th, td {{ display: block; }} [hidden] {{ display: none !important; }}
  thead {{ position: absolute; clip-path: inset(50%); }}
  .head th, td {{ padding-inline: 0; }} td {{ border: 0; padding-block: 1px; }} td:empty {{ display: none; }}
  [data-v] {{ border-bottom: 1px solid var(--line); padding: 8px 0; }}
  td:nth-child(n + 3)::before {{ color: var(--muted); content: attr(data-name) ": "; }}
  .figures img {{ height: auto; max-width: 84vw; max-height: 260px; }}
}}
</style></head><body>
<h1>What holds: every claim and our verdict</h1><p>{lead} <a href="#claims">Every claim</a>,
with filters, stands below.</p>
{overview}
<h2 id="claims">Every claim</h2>
<form><input type="search" placeholder="id or words of a claim" aria-label="search">{filters}</form>
<div class="scroll" tabindex="0" role="region" aria-label="Every claim"><table>
<thead><tr>{columns}</tr></thead>
{body}</table></div>
<script>
const search = document.querySelector("input[type=search]"), boxes = [...document.querySelectorAll("[type=checkbox]")];
function filter() {{
  const words = search.value.toLowerCase(), shown = new Set(boxes.filter(b => b.checked).map(b => b.value));
  for (const part of document.querySelectorAll("tbody")) {{
    const title = part.querySelector(".head")?.textContent ?? "";
    for (const row of part.querySelectorAll("[data-v]"))
      row.hidden = !shown.has(row.dataset.v)
        || !`${{row.dataset.id}} ${{title}} ${{row.textContent}}`.toLowerCase().includes(words);
    part.hidden = !part.querySelector("[data-v]:not([hidden])");
  }}
}}
search.addEventListener("input", filter);
boxes.forEach(box => box.addEventListener("change", filter));
document.querySelector("form").addEventListener("submit", event => event.preventDefault());
</script></body></html>
"""


if __name__ == "__main__":
    main()
