"""The actions of ``unweave study`` that only look: status, report, export, SQL, and clearing away."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from unweave.cli.console import print_json, print_table, say
from unweave.cli.options import command, parse, real
from unweave.files import as_typed, write_atomically
from unweave.studies.record import DamagedRecord, Record, names, read_record
from unweave.studies.status import Status, status_of
from unweave.studies.store import Store
from unweave.studies.sweep import sweep
from unweave.words import number_of


def look(action: str, argv: Sequence[str]) -> int:
    """Do one of these actions."""
    parser = command(f"unweave study {action}")
    ADD[action](parser)
    parser.add_argument("--store", default="runs", metavar="DIR", help="folder of all runs (runs)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    given = vars(parse(parser, argv))
    store = Store(given["store"])
    if not store.root.is_dir():
        raise FileNotFoundError(f"there is no store {store.root}; say where with --store")
    DO[action](store, given)
    return 0


def tell_status(status: Status, store: Store) -> None:
    """A study's counts as a table."""
    pace = "" if status.models_per_day is None else f"{status.models_per_day:,.0f}"
    left = "" if status.seconds_left is None else _span(status.seconds_left)
    row = (status.done, status.running, status.failed, status.waiting, status.total, pace, left)
    columns = ("done", "running", "failed", "waiting", "in all", "models/day", "time left")
    print_table(f"{status.name}  {status.title}".strip(), columns, [row], _note(status, store))


def _note(status: Status, store: Store) -> str:
    lines = [f"failed: {run_id}: {reason}" for run_id, reason in status.failures[:5]]
    if len(status.failures) > 5:
        lines.append(f"… and {len(status.failures) - 5} more failed runs")
    if status.failed_measures:
        lines.append(f"{status.failed_measures} measures failed: see the columns that end in .failure")
    if status.failures or status.failed_measures:
        lines.append(f"try them again with: unweave study retry {_which(status.name, store)}")
    if status.unchecked:
        lines.append(f"the weights of {status.unchecked} finished runs are unchecked as yet: ask again to read on")
    if status.share is not None:
        lines.append(f"{status.share:.0%} of the card in use: what the steps had to move beside what it could copy")
    if status.workers:
        lines.append(f"working: {', '.join(status.workers)}")
    elif status.waiting:
        lines.append(f"nobody works on it now; go on with: unweave study resume {_which(status.name, store)}")
    return "\n".join(lines)


def _which(name: str, store: Store) -> str:
    """A study, its store and the file that runs when it goes on."""
    recipe = str(read_record(store.home, name).options.get("recipe") or "")
    trusted = f" --trust {Path(recipe).stem}" if recipe.endswith(".py") else ""
    return f"{as_typed(name)} --store {as_typed(store.root)}{trusted}"


def _span(seconds: float) -> str:
    hours, rest = divmod(round(seconds), 3600)
    minutes, rest = divmod(rest, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def _status(store: Store, given: dict[str, Any]) -> None:
    chosen = [given["study"]] if given["study"] else names(store.home) or [""]
    while True:
        found, damaged = _statuses(store, chosen)
        if given["json"]:
            print_json([status.to_plain() for status in found] if len(chosen) > 1 else found[0].to_plain())
        else:
            for status in found:
                tell_status(status, store)
        if damaged is not None:
            raise damaged
        if not given["watch"] or not any(status.active for status in found):
            return
        time.sleep(given["every"])


def _statuses(store: Store, chosen: Sequence[str]) -> tuple[list[Status], DamagedRecord | None]:
    """Every study whose record can be read, and what is wrong with one that cannot; raised where none can."""
    found, damaged = [], None
    for name in chosen:
        try:
            found.append(status_of(store, read_record(store.home, name)))
        except DamagedRecord as error:
            damaged = error
    if damaged is not None and not found:
        raise damaged
    return found, damaged


def _export(store: Store, given: dict[str, Any]) -> None:
    path = Path(given["file"])
    if path.suffix not in (".parquet", ".csv"):
        raise ValueError(f"the file must end in .parquet or .csv, not {path.name}")
    record = read_record(store.home, given["study"]) if given["study"] else None
    table = store.table(record.experiments, measures=record.measures or None) if record else store.table()
    if path.suffix == ".parquet":
        write_atomically(path, lambda aside: table.write_parquet(aside))
    else:
        write_atomically(path, lambda aside: _flat(table).write_csv(aside))
    told = {"file": str(path), "runs": table.height, "columns": table.width}
    print_json(told) if given["json"] else say(f"{number_of(table.height, 'run')} × {table.width} columns: {path}")


def _flat(table: Any) -> Any:
    """CSV has no lists: they are written as JSON text."""
    import json

    import polars as pl

    nested = [name for name, kind in table.schema.items() if kind.is_nested()]
    texts = [
        pl.Series(name, [None if value is None else json.dumps(value) for value in table[name].to_list()], pl.String)
        for name in nested
    ]
    return table.with_columns(texts)


def _sql(store: Store, given: dict[str, Any]) -> None:
    found = store.sql(given["query"])
    if given["json"]:
        print_json(found.to_dicts())
    else:
        print_table(number_of(found.height, "row"), found.columns, found.rows())


def _gc(store: Store, given: dict[str, Any]) -> None:
    swept = sweep(store, dry_run=given["dry_run"])
    paths = [str(path) for path in swept.paths]
    if given["json"]:
        print_json({"removed": not given["dry_run"], "paths": paths, "bytes": swept.n_bytes})
        return
    for path in paths[:20]:
        say(f"  {path}")
    verb = "would be removed" if given["dry_run"] else "removed"
    say(f"{len(paths)} files and folders {verb}, {swept.n_bytes / 1e6:.1f} MB")


def _report(store: Store, given: dict[str, Any]) -> None:
    from unweave.pages.study import write_study_page

    record = read_record(store.home, given["study"] or "")
    recipe = record.options.get("recipe", "")
    path = write_study_page(store, record) if recipe.endswith(".py") or not recipe else _judged(store, record)
    print_json({"file": str(path)}) if given["json"] else say(f"written: {path}")


def _judged(store: Store, record: Record) -> Path:
    """The page of a reproduction, from the runs that are there."""
    from unweave.recipes.reproduce import reproduce
    from unweave.studies.results import Results

    done = [store.run(run_id) for run_id in record.experiments if store.folder(run_id).has("model.safetensors")]
    experiments = tuple(run.experiment for run in done)
    name, size = record.options["recipe"], record.options["size"]
    return reproduce(name, size, store.root, lambda study: Results(study, store, experiments)).page


def _name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", nargs="?", help="its name; not needed where there is only one")


def _add_status(parser: argparse.ArgumentParser) -> None:
    _name(parser)
    parser.add_argument("--watch", action="store_true", help="show it again and again while it runs")
    parser.add_argument("--every", type=real(above=0), default=5.0, metavar="SECONDS", help="between two looks (5)")


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="to write: .parquet or .csv")
    parser.add_argument("--study", metavar="NAME", help="only the runs of one study")


def _add_gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")


def _add_sql(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("query", metavar="SQL", help="""such as: select state, count(*) from runs group by all""")


ADD = {"status": _add_status, "report": _name, "export": _add_export, "sql": _add_sql, "gc": _add_gc}
DO = {"status": _status, "report": _report, "export": _export, "sql": _sql, "gc": _gc}
