"""A long study in portions: train and measure what fits into some minutes, and carry what was found, not the weights.

A portion is a folder of at most eight files of at most 16 MiB: ``portion.json`` and the finished runs of the studies,
each run a line of JSON with its config, measures, cost and history. The next portion begins by taking these runs into
its store, wherever that is, so that it trains only what is missing. Only runs that others are made from bring their
weights along; where these are needed and were left behind, such a run is trained again.
"""

import base64
import dataclasses
import gzip
import hashlib
import io
import json
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unweave.data.altered import Perturbed
from unweave.files import parse_json, write_atomically, write_text
from unweave.models.method import Given
from unweave.runs.folder import LEFT_WEIGHTS, WEIGHTS, RunFolder
from unweave.runs.names import check_name
from unweave.studies.executors.executor import Executor
from unweave.studies.executors.here import Here
from unweave.studies.failures import is_outage
from unweave.studies.measures.measure import Measure
from unweave.studies.pack import Pack, measuring
from unweave.studies.plan import plan
from unweave.studies.results import Results
from unweave.studies.run import forget_ends, run_study
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.train_and_measure import missing_measures, settled
from unweave.training.experiment import Experiment
from unweave.training.running import GpuFailed, Interrupted, RunOptions

FORMAT = 1
RECORD = "portion.json"
MOST_FILES, LARGEST = 8, 16 * 2**20
"""What may be brought back: files, and bytes of each."""

FIRST = 16
"""Models of the first portion, before it is known how long one takes."""

TRAINING, MEASURING = 0.75, 0.95
"""Shares of the time after which training and measuring stop."""

CARRIED = ("config.json", "environment.json", "cost.json", "failure.json", LEFT_WEIGHTS)
ENDS = ("failure.json", LEFT_WEIGHTS, WEIGHTS)
FOLDERS = ("measures/", "failures/")
HISTORY = "history."


@dataclass(frozen=True)
class Portion:
    """What a portion has come to."""

    settled: int
    """Runs that are trained and measured, or failed, of all that are asked for so far."""
    asked: int
    new: int
    """Of these, the ones of this portion."""
    seconds: float
    left_out: int
    """Runs that did not fit into the files, or that lack measures of another study."""


def run_portion(
    studies: Sequence[Study],
    root: Path | str,
    folder: Path | str,
    *,
    minutes: float | int,
    models: int | None = None,
    execute: Executor = Here(),
    how: RunOptions = RunOptions(),
) -> Portion:
    """Take in what earlier portions found, train and measure what fits into ``minutes``, and write all to ``folder``.

    ``models`` is how many are trained at a time; else as many as fit by what finished models took, 16 at first. A model
    that is not finished in time stays in the store alone, where the next portion on the same disk goes on with it.
    """
    begin, store = time.monotonic(), Store(root).prepare()
    take_in(folder, store)
    for study in studies:
        forget_ends(store, _asked(study, store).values(), study.measures)
    before = {run_id for study in studies for run_id in _settled(study, store)}

    def until(share: float) -> RunOptions:
        return replace(how, stop=lambda: how.stop() or time.monotonic() - begin >= 60 * minutes * share)

    fault = None
    try:
        for study in studies:
            while (todo := _ready(study, store)) and not until(TRAINING).stop():
                left = 60 * minutes * TRAINING - (time.monotonic() - begin)
                some = todo[: models or _fitting(study, store, left)]
                went_on = _work(replace(study, experiments=tuple(some), follow_up=None), store, execute, until)
                _write_found(studies, folder, store)  # now, for the machine may not be ours until the end
                if not went_on:
                    break
    except GpuFailed as error:
        fault = error  # what was found before is kept
    asked = {run_id for study in studies for run_id in _asked(study, store)}
    found, left_out = _write_found(studies, folder, store)
    if fault is not None:
        raise fault
    return Portion(len(found), len(asked), len(found - before), time.monotonic() - begin, left_out)


def _write_found(studies: Sequence[Study], folder: Path | str, store: Store) -> tuple[set[str], int]:
    """Write all that is settled so far; which runs these are, and how many were left out."""
    asked = [(study, _asked(study, store)) for study in studies]
    found = {run_id for study, own in asked for run_id in _settled_of(study, store, own)}
    needed = [(run_id, study.measures) for study, own in asked for run_id in own]
    whole = {name for _, own in asked for one in own.values() for name in runs_named(one)}
    return found, write_portion(folder, store, sorted(found), needed=needed, whole=whole)


def take_in(folder: Path | str, store: Store) -> int:
    """Write the runs of a portion into a store; those that are there stay as they are. How many were new.

    Runs that failed because of a GPU alone, as earlier versions carried them, are left behind.
    """
    folder, count = Path(folder), 0
    if not (folder / RECORD).exists():
        return 0
    for line in _lines(folder):
        run_id = check_name(str(line["id"]))
        to = store.folder(run_id)
        known = to.trained and (to.has(WEIGHTS) or WEIGHTS not in line["files"])
        if known or to.has("failure.json") or _was_outage(line["files"]):
            continue
        to.remove(*to.names(LEFT_WEIGHTS))
        # what says that a run has come to its end is written last
        for name, content in sorted(line["files"].items(), key=lambda pair: pair[0] in ENDS):
            if not _carried(name):
                raise ValueError(f"{folder} holds {name!r} for {run_id}, which no portion has")
            to.write(name, base64.b64decode(content["base64"]) if isinstance(content, dict) else content)
        count += 1
    return count


def _was_outage(files: Mapping[str, Any]) -> bool:
    return "failure.json" in files and is_outage(json.loads(files["failure.json"]))


def write_portion(
    folder: Path | str,
    store: Store,
    ids: Sequence[str],
    *,
    histories: bool = True,
    needed: Sequence[tuple[str, Sequence[Measure]]] = (),
    whole: Collection[str] = (),
) -> int:
    """Write runs as a portion: new files aside, then the record that names them. How many runs were left out.

    Histories are left behind where there is no room for them; runs in ``whole`` bring their weights along. A run that
    lacks a measure which is ``needed`` of it is left out: without its weights nobody could take it.
    """
    folder, n_given = Path(folder), len(ids)
    folder.mkdir(parents=True, exist_ok=True)
    lacking = {run_id for run_id, measures in needed if _lacks(store.folder(run_id), measures)}
    ids = [run_id for run_id in ids if run_id not in lacking]
    blocks = _blocks(store, ids, whole, histories=histories)
    if len(blocks) > MOST_FILES - 1:
        blocks = _blocks(store, ids, whole, histories=False)
    kept = blocks[: MOST_FILES - 1]
    files = {f"runs-{hashlib.sha256(one.content).hexdigest()[:12]}.jsonl.gz": one for one in kept}
    for name, one in files.items():
        write_atomically(folder / name, lambda aside, content=one.content: aside.write_bytes(content))  # type: ignore[misc]
    listed = {name: hashlib.sha256(one.content).hexdigest() for name, one in files.items()}
    n_runs = sum(one.n_runs for one in kept)
    write_text(folder / RECORD, json.dumps({"format": FORMAT, "runs": n_runs, "files": listed}, indent=2) + "\n")
    for stale in folder.glob("runs-*.jsonl.gz"):
        if stale.name not in files:
            stale.unlink()
    return n_given - n_runs


def _lacks(folder: RunFolder, measures: Sequence[Measure]) -> bool:
    return folder.trained and bool(missing_measures(folder, measures))


@dataclass(frozen=True)
class _Block:
    content: bytes
    n_runs: int


def _work(study: Study, store: Store, execute: Executor, until: Any) -> bool:
    """Train some models, then measure those that are finished; False where time was up."""
    try:
        run_study(replace(study, measures=()), store.root, execute=execute, how=until(TRAINING))
    except Interrupted as stopped:
        print(stopped, file=sys.stderr, flush=True)
    planned = plan(study.experiments, needs_data=False)
    trained = [one for run_id, one in planned.items() if store.folder(run_id).trained]
    todo = [one for one in trained if not settled(store.folder(one.id), Pack((one,), study.measures))]
    try:
        if todo and study.measures:
            execute(measuring(todo, study.measures), store.root, until(MEASURING), lambda pack: None)
    except Interrupted as stopped:
        print(stopped, file=sys.stderr, flush=True)
        return False
    return all(settled(store.folder(run_id), Pack((one,), study.measures)) for run_id, one in planned.items())


def _asked(study: Study, store: Store) -> dict[str, Experiment]:
    """All that a study asks for, as far as what is measured tells."""
    asked = plan(study.experiments, needs_data=False)
    while study.follow_up is not None:
        results = Results(study, store, tuple(asked.values()))
        more = plan(study.follow_up(results), needs_data=False)
        if not more.keys() - asked.keys():
            break
        asked |= more
    return asked


def _settled(study: Study, store: Store) -> list[str]:
    return _settled_of(study, store, _asked(study, store))


def _settled_of(study: Study, store: Store, asked: Mapping[str, Experiment]) -> list[str]:
    return [run_id for run_id, one in asked.items() if settled(store.folder(run_id), Pack((one,), study.measures))]


def _missing(study: Study, store: Store) -> list[Experiment]:
    asked = _asked(study, store)
    done = set(_settled_of(study, store, asked))
    return [one for run_id, one in asked.items() if run_id not in done]


def _ready(study: Study, store: Store) -> list[Experiment]:
    """What is missing and can be trained now: all that it is made from is there, weights included.

    A run whose weights are needed and were left behind is missing again.
    """
    missing = _missing(study, store)
    for name in {name for one in missing for name in runs_named(one)}:
        if not store.folder(name).has(WEIGHTS):
            store.folder(name).remove(LEFT_WEIGHTS)
    return [one for one in _missing(study, store) if all(store.folder(n).has(WEIGHTS) for n in runs_named(one))]


def runs_named(value: Any) -> set[str]:
    """The folders of runs whose weights an experiment begins with or sees its images through."""
    if isinstance(value, tuple):
        return {name for one in value for name in runs_named(one)}
    if not dataclasses.is_dataclass(value):
        return set()
    own = {Path(value.run).name} if isinstance(value, Perturbed | Given) and value.run else set()
    return own | {name for field in dataclasses.fields(value) for name in runs_named(getattr(value, field.name))}


def _fitting(study: Study, store: Store, seconds: float) -> int:
    """How many models fit into so many seconds, by what those of the study took."""
    folders = [store.folder(run_id) for run_id in _settled(study, store)]
    costs = [float(one.read_json("cost.json")["seconds"]) for one in folders if one.has("cost.json")]
    return max(1, int(seconds / (sum(costs) / len(costs)))) if costs and sum(costs) > 0 else FIRST


def _blocks(store: Store, ids: Sequence[str], whole: Collection[str], *, histories: bool) -> list[_Block]:
    """The runs as compressed blocks, each small enough for a file."""
    blocks: list[_Block] = []
    buffer, written, count = _opened()
    for run_id in ids:
        line = {"id": run_id, "files": _files(store.folder(run_id), histories, run_id in whole)}
        content = f"{json.dumps(line, sort_keys=True)}\n".encode()
        # what is not flushed yet may come out as large as it went in
        if count and buffer.tell() + len(content) + 2**16 > LARGEST:
            written.close()
            blocks.append(_Block(buffer.getvalue(), count))
            buffer, written, count = _opened()
        written.write(content)
        written.flush()
        count += 1
    written.close()
    return [*blocks, *([_Block(buffer.getvalue(), count)] if count else [])]


def _opened() -> tuple[io.BytesIO, gzip.GzipFile, int]:
    buffer = io.BytesIO()
    return buffer, gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0), 0


def _files(folder: RunFolder, histories: bool, whole: bool) -> dict[str, Any]:
    """What is carried of a run: its weights by their checksum alone, unless it is to be whole and can be."""
    whole = whole and folder.has(WEIGHTS) and (folder.path / WEIGHTS).stat().st_size <= LARGEST // 2
    names = [name for name in folder.names() if _carried(name) and (histories or not name.startswith(HISTORY))]
    files: dict[str, Any] = {name: _text(folder.read(name)) for name in names if name != WEIGHTS or whole}
    if folder.has(WEIGHTS) and not whole:
        files[LEFT_WEIGHTS] = json.dumps(folder.weights_note()) + "\n"
    return files


def _text(content: bytes) -> str | Mapping[str, str]:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _carried(name: str) -> bool:
    return name in (*CARRIED, WEIGHTS) or name.startswith((HISTORY, *FOLDERS))


def _lines(folder: Path) -> Iterator[Mapping[str, Any]]:
    record = parse_json((folder / RECORD).read_bytes(), folder / RECORD)
    if not isinstance(record, dict) or record.get("format") != FORMAT or not isinstance(record.get("files"), dict):
        raise ValueError(f"{folder / RECORD} is no record of a portion of format {FORMAT}; leave the folder out")
    for name, expected in record["files"].items():
        content = (folder / check_name(str(name))).read_bytes()
        if hashlib.sha256(content).hexdigest() != expected:
            raise ValueError(f"{folder / name} is damaged: its checksum differs from the one in {RECORD}")
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as lines:
            for line in lines:
                yield json.loads(line)
