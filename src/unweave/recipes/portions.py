"""A long study in portions: train and measure what fits into some minutes, and carry what was found, not the weights.

A portion is a folder of at most eight files of at most 16 MiB: ``portion.json`` and the finished runs of the studies,
each run a line of JSON with its config, measures, cost and history. The next portion begins by taking these runs into
its store, wherever that is, so that it trains only what is missing; what another device trained is not missing. Only
runs that others are made from, or that a page opens, bring their weights along; where these are needed and were left
behind, such a run is trained again.
"""

import base64
import dataclasses
import gzip
import hashlib
import io
import itertools
import json
import sys
import time
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from unweave.data.altered import Perturbed
from unweave.files import parse_json, write_atomically, write_text
from unweave.models.method import Given
from unweave.runs.failures import OF_MEASURES
from unweave.runs.folder import LEFT_WEIGHTS, WEIGHTS, RunFolder, signature
from unweave.runs.names import check_name
from unweave.studies.between import kept_by, ready
from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.executors.here import Here
from unweave.studies.failures import is_machines, is_outage
from unweave.studies.identity import identity
from unweave.studies.measures.measure import Measure
from unweave.studies.pack import Pack, measuring, pack
from unweave.studies.plan import resolved_each
from unweave.studies.results import Results
from unweave.studies.run import begun_fleets, forget_ends
from unweave.studies.seen import SeenStore
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.studies.train_and_measure import missing_measures, settled
from unweave.training.experiment import Experiment, read_experiment, usable_cores
from unweave.training.loop import say
from unweave.training.running import GpuFailed, Interrupted, RunOptions

FORMAT = 1
RECORD = "portion.json"
MOST_FILES, LARGEST = 8, 16 * 2**20
"""What may be brought back: files, and bytes of each."""

FIRST = 16
"""Models of the first portion, before it is known how long one takes."""

MOST_WEIGHTS = 40 * 10**6
"""Bytes of weights that travel."""

TRAINING, MEASURING = 0.85, 0.95
"""Shares of the time after which training and measuring stop."""

WRITE_EVERY = 30.0
"""Seconds between two writings of what was found so far."""

CARRIED = ("config.json", "environment.json", "cost.json", "failure.json", LEFT_WEIGHTS)
ENDS = ("failure.json", LEFT_WEIGHTS, WEIGHTS)
FOLDERS = ("measures/", "between/", "failures/")
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
    """Runs that did not fit into the files."""


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
    begin, store = time.monotonic(), SeenStore(root).prepare()
    for study in studies:
        for measure in study.measures:
            measure.check()
    work = _Work(studies, store, Path(folder), execute, models, begin + 60 * minutes * TRAINING)
    known, fault = {*work.found(work.latest)}, None

    def until(share: float) -> RunOptions:
        return replace(how, stop=lambda: how.stop() or time.monotonic() - begin >= 60 * minutes * share)

    for part, share in ((work.train, TRAINING), (work.measure, MEASURING)):
        try:
            part(until(share))
        except GpuFailed as error:
            fault = error  # what was found before is kept
    asked = work.look()
    left_out = work.write()
    if fault is not None:
        raise fault
    found = work.found(asked)
    return Portion(len(found), len(asked), len({*found} - known), time.monotonic() - begin, left_out)


@dataclass(frozen=True)
class _Asked:
    """An experiment, and all that is measured of it in any study."""

    experiment: Experiment
    measures: tuple[Measure, ...]


class _Work:
    """What studies lack, handed out to an executor as it becomes ready; and what they have, written as it grows."""

    def __init__(
        self, studies: Sequence[Study], store: Store, folder: Path, execute: Executor, models: int | None, end: float
    ) -> None:
        self.studies, self.store, self.folder, self.execute, self.models = studies, store, folder, execute, models
        self.between: dict[str, tuple[Measure, ...]] = {}
        """Measures of several runs at once, by what the run is an example of that keeps them."""
        for study in studies:
            for name, measures in kept_by(study).items():
                self.between[name] = tuple(dict.fromkeys((*self.between.get(name, ()), *measures)))
        self.end = end
        """When training stops, on the monotonic clock."""
        self.before = {str(line["id"]): line for line in _lines(folder)}
        """What earlier portions found: it stays as it was until something newer takes its place."""
        self.handed: set[str] = set()
        """Ids of all that was handed out to be trained."""
        self.training = 0
        """Packs that are trained now."""
        self.together: list[set[str]] = []
        """Ids of models that were trained together, as far as they are still to be measured."""
        self.comparing: set[str] = set()
        """Ids of runs of which a measure between runs is taken now."""
        self.written = time.monotonic()
        self.planned: dict[Hashable, Experiment] = {}
        """What was asked for so far: it is looked at whenever something has ended."""
        take_in(folder, store)
        brought = (read_experiment(store.folder(run_id)) for run_id in self.before if store.folder(run_id).trained)
        self.elsewhere = {identity(one): one for one in brought}
        """What earlier portions trained, perhaps on other devices."""
        self.latest: dict[str, _Asked] = {}
        """What was asked for when somebody last looked."""
        self.looked: dict[str, str] | None = None
        """The signatures of the folders of all that was known before that look."""
        for one in map(self.store.folder, self.look()):
            one.remove(*_of_this_machine(one))  # tried again: what was missing may be here by now

    def train(self, how: RunOptions) -> None:
        """Train what is ready, measure it, and go on with what follows, until time is up or nothing is left."""

        def ended(pack: Pack) -> list[Pack]:
            if not pack.trains:
                self.comparing -= {one.id for one in pack.experiments}
                self._write_if_due()
                # what follows from models of one fleet is one fleet again, and not one for each of them
                following = self._ready() if self._is_last(pack) and not how.stop() else []
                return following + ([] if how.stop() else self._compared())
            self.training -= 1
            following = self._unmeasured(pack.experiments)
            if following:
                self.together.append({one.id for some in following for one in some.experiments})
            return following + self._compared() + ([] if how.stop() else self._ready())

        packs = [] if how.stop() else self._ready()
        self._perform(packs + self._unmeasured() + self._compared(), how, ended)

    def measure(self, how: RunOptions) -> None:
        """Measure what is trained and was not measured in time."""

        def ended(pack: Pack) -> list[Pack]:
            self.comparing -= {one.id for one in pack.experiments}
            self._write_if_due()
            return [] if how.stop() else self._compared()

        self.comparing.clear()  # what was stopped is begun again
        self._perform(self._unmeasured() + self._compared(), how, ended)

    def look(self) -> dict[str, _Asked]:
        """All that is asked for by id, as far as what is measured tells now."""
        # what somebody writes during a look is looked at in the next one
        now = {run_id: signature(self.store.folder(run_id).path) for run_id in self.latest}
        if now == self.looked:
            return self.latest
        asked: dict[str, _Asked] = {}
        for study in self.studies:
            for run_id, one in self._asked(study).items():
                others = asked[run_id].measures if run_id in asked else ()
                asked[run_id] = _Asked(one, tuple(dict.fromkeys((*others, *study.measures))))
        self.latest, self.looked = asked, now if asked.keys() <= now.keys() else None
        return asked

    def _asked(self, study: Study) -> dict[str, Experiment]:
        """All that a study asks for, as far as what is measured tells."""
        asked = self._plan(study.experiments)
        while study.follow_up is not None:
            more = self._plan(study.follow_up(Results(study, self.store, tuple(asked.values()))))
            if not more.keys() - asked.keys():
                break
            asked |= more
        return asked

    def _plan(self, experiments: Sequence[Experiment]) -> dict[str, Experiment]:
        """Resolved experiments by id; each is resolved once, and again when a run that it is made from was."""
        keys = [(one, *map(self._weights, _names(one))) for one in experiments]
        new = {key: one for key, one in zip(keys, experiments) if key not in self.planned}
        for key, one in zip(new, resolved_each([*new.values()], needs_data=False)):
            self.planned[key] = one
        return {one.id: one for one in (self._as_found(self.planned[key]) for key in keys)}

    def _as_found(self, one: Experiment) -> Experiment:
        """The run of an earlier portion that is the same but for its plan, once it is trained; else the one asked."""
        other = self.elsewhere.get(identity(one), one)
        if other.id == one.id or self.store.folder(one.id).trained:
            return one
        return other if self.store.folder(other.id).trained else one

    def _weights(self, run_id: str) -> str:
        """The checksum of a run's weights, here or left behind; empty where it has none yet."""
        return self.store.folder(run_id).weights_checksum

    def found(self, asked: Mapping[str, _Asked]) -> list[str]:
        """Ids of what is settled of it: trained and measured, or failed."""
        return [run_id for run_id, one in asked.items() if self._is_settled(one)]

    def write(self) -> int:
        """Write all that is settled, beside what earlier portions found; how many runs were left out."""
        made_from = [name for one in self.latest.values() for name in _names(one.experiment)]
        carried = [run_id for run_id, line in self.before.items() if WEIGHTS in line["files"]]
        # what is measured by itself is carried, also where others are not trained yet that it is to be held against
        whole = [*made_from, *self._opened(), *carried]
        found = sorted(run_id for run_id, one in self.latest.items() if self._is_measured(one))
        left_out = write_portion(self.folder, self.store, found, whole=whole, before=self.before)
        self.written = time.monotonic()
        return left_out

    def _write_if_due(self) -> None:
        # now and then, for the machine may not be ours until the end
        if time.monotonic() - self.written >= WRITE_EVERY:
            self.write()

    def _perform(self, packs: Sequence[Pack], how: RunOptions, ended: Ended) -> None:
        try:
            if packs:
                self.execute(packs, self.store.root, how, ended)
        except Interrupted as stopped:
            print(stopped, file=sys.stderr, flush=True)

    def _ready(self) -> list[Pack]:
        """What can be trained now, for every place that is free; first what others are made from."""
        if self.training >= self._places():
            return []
        missing = self._missing()
        ready = [one for one in missing if all(self._has_weights(name) for name in _names(one))]
        # whole seeds of every setting first: a study that is cut short then lacks seeds, and no setting lacks all
        ready.sort(key=lambda one: (one.objective.encodes, one.seed))
        ready = ready[: self.models or _fitting(self._costs(), self.end - time.monotonic())]
        begun, n_gpus = begun_fleets(self.store), self.execute.n_gpus()
        packs = pack(ready, workers=self._workers, gpus=n_gpus, begun=begun)[: self._places() - self.training]
        self.training += len(packs)
        self.handed |= {one.id for some in packs for one in some.experiments}
        return packs

    def _missing(self) -> list[Experiment]:
        """What is neither settled nor handed out; runs whose weights are needed and were left behind are missing."""
        forget_ends(self.store, [one.experiment for one in self.look().values()], ())
        while True:
            missing = {run_id: one for run_id, one in self.look().items() if not self._is_settled(one)}
            needed = {name for one in missing.values() for name in _names(one.experiment)}
            others = {name for one in missing.values() for lacking in self._between(one) for name in lacking.others}
            needed |= {run_id for run_id, one in self.look().items() if identity(one.experiment) in others}
            asked = sorted({*needed, *self._opened(), *missing})
            behind = [folder for folder in map(self.store.folder, asked) if folder.has(LEFT_WEIGHTS)]
            if not behind:
                begun = {run_id for run_id in missing if run_id in self.handed or self._has_weights(run_id)}
                return [one.experiment for run_id, one in missing.items() if run_id not in begun]
            say(f"{len(behind)} runs came without weights that are needed: trained again")
            for folder in behind:  # other weights would have other measures
                folder.remove(LEFT_WEIGHTS, *(name for name in folder.names() if name.startswith(FOLDERS)))

    def _unmeasured(self, some: Sequence[Experiment] | None = None) -> list[Pack]:
        """Packs that measure what is trained and not measured, of some runs or of all."""
        ids = [*self.look()] if some is None else [one.id for one in some]
        groups: dict[tuple[Measure, ...], list[Experiment]] = {}
        for one in (self.latest[run_id] for run_id in ids if run_id in self.latest):
            if self._has_weights(one.experiment.id) and not self._is_measured(one):
                groups.setdefault(one.measures, []).append(one.experiment)
        return [made for key, group in groups.items() for made in measuring(group, key, workers=self._workers)]

    def _is_last(self, pack: Pack) -> bool:
        """Whether a pack was the last to be measured of those that trained together."""
        ids, n_before = {one.id for one in pack.experiments}, len(self.together)
        self.together = [left for known in self.together if (left := known - ids)]
        return len(self.together) < n_before or not self.together

    def _compared(self) -> list[Pack]:
        """Packs of measures between runs that are all trained, one for each run that keeps some."""
        if not self.between:
            return []
        packs = ready(self.between, [one.experiment for one in self.look().values()], self.store)
        packs = [one for one in packs if one.experiments[0].id not in self.comparing]
        self.comparing |= {one.experiments[0].id for one in packs}
        return packs

    def _between(self, one: _Asked) -> list[Measure]:
        """The measures between runs that a trained run is to keep and does not have."""
        if not self.between:
            return []
        folder = self.store.folder(one.experiment.id)
        wanted = self.between.get(identity(one.experiment), ())
        return missing_measures(folder, wanted) if folder.trained else []

    def _is_measured(self, one: _Asked) -> bool:
        return settled(self.store.folder(one.experiment.id), Pack((one.experiment,), one.measures))

    def _is_settled(self, one: _Asked) -> bool:
        return self._is_measured(one) and not self._between(one)

    def _has_weights(self, run_id: str) -> bool:
        return self.store.folder(run_id).has(WEIGHTS)

    def _opened(self) -> list[str]:
        """Runs that a page opens."""
        experiments = tuple(one.experiment for one in self.latest.values())
        openers = [(study, study.opened) for study in self.studies if study.opened is not None]
        return [name for study, opened in openers for name in opened(Results(study, self.store, experiments))]

    def _costs(self) -> list[float]:
        folders = [self.store.folder(run_id) for run_id in self.found(self.latest)]
        return [float(one.read_json("cost.json")["seconds"]) for one in folders if one.has("cost.json")]

    @property
    def _workers(self) -> int:
        return self.execute.workers or usable_cores()

    def _places(self) -> int:
        """How many packs are trained at a time."""
        on_gpu = any(one.experiment.plan.device.startswith("cuda") for one in self.latest.values())
        return max(1, self.execute.n_gpus()) if on_gpu else self._workers


def take_in(folder: Path | str, store: Store) -> int:
    """Write the runs of a portion into a store; those that are there stay as they are. How many were new.

    Runs that failed because of a GPU alone, as earlier versions carried them, are left behind.
    """
    folder, count = Path(folder), 0
    for line in _lines(folder):
        run_id = check_name(str(line["id"]))
        to = store.folder(run_id)
        known = to.trained and (to.has(WEIGHTS) or WEIGHTS not in line["files"])
        if known or to.has("failure.json") or _was_outage(line["files"]):
            continue
        to.remove(LEFT_WEIGHTS)
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
    whole: Sequence[str] = (),
    before: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
) -> int:
    """Write runs as a portion: new files aside, then the record that names them. How many runs were left out.

    Runs in ``whole`` bring their weights along, the first ones where not all have room. Lines of ``before`` stay for
    runs that are not among ``ids``. Histories are left behind where there is no room, and then weights.
    """
    folder, chosen = Path(folder), {*ids}
    folder.mkdir(parents=True, exist_ok=True)
    kept = [before[run_id] for run_id in sorted({*before} - chosen)]
    carried = _that_fit(store, [name for name in dict.fromkeys(whole) if name in chosen])
    blocks: list[_Block] = []
    for with_histories, weights in ((histories, carried), (False, carried), (False, [])):
        lines = (_line(store.folder(run_id), with_histories, run_id in weights) for run_id in ids)
        blocks = _blocks(itertools.chain(kept, lines))
        if len(blocks) < MOST_FILES:
            break
    written = blocks[: MOST_FILES - 1]
    files = {f"runs-{hashlib.sha256(one.content).hexdigest()[:12]}.jsonl.gz": one for one in written}
    for name, one in files.items():
        write_atomically(folder / name, lambda aside, content=one.content: aside.write_bytes(content))  # type: ignore[misc]
    listed = {name: hashlib.sha256(one.content).hexdigest() for name, one in files.items()}
    n_runs = sum(one.n_runs for one in written)
    write_text(folder / RECORD, json.dumps({"format": FORMAT, "runs": n_runs, "files": listed}, indent=2) + "\n")
    for stale in folder.glob("runs-*.jsonl.gz"):
        if stale.name not in files:
            stale.unlink()
    return len(kept) + len(ids) - n_runs


def _that_fit(store: Store, names: Sequence[str]) -> list[str]:
    """The first of some runs whose weights may travel together."""
    files = [store.folder(name).path / WEIGHTS for name in names]
    sizes = [file.stat().st_size if file.is_file() else 0 for file in files]
    return [name for name, total in zip(names, itertools.accumulate(sizes)) if total <= MOST_WEIGHTS]


@dataclass(frozen=True)
class _Block:
    content: bytes
    n_runs: int


def runs_named(value: Any) -> set[str]:
    """The folders of runs whose weights an experiment begins with or sees its images through."""
    if isinstance(value, tuple):
        return {name for one in value for name in runs_named(one)}
    if not dataclasses.is_dataclass(value):
        return set()
    own = {Path(value.run).name} if isinstance(value, Perturbed | Given) and value.run else set()
    return own | {name for field in dataclasses.fields(value) for name in runs_named(getattr(value, field.name))}


@lru_cache(maxsize=100_000)
def _names(one: Experiment) -> tuple[str, ...]:
    return tuple(sorted(runs_named(one)))


def _fitting(costs: Sequence[float], seconds: float) -> int:
    """How many models fit into so many seconds, by what others took."""
    return max(1, int(seconds / (sum(costs) / len(costs)))) if sum(costs) > 0 else FIRST


def _blocks(lines: Iterable[Mapping[str, Any]]) -> list[_Block]:
    """Runs as compressed blocks, each small enough for a file."""
    blocks: list[_Block] = []
    buffer, written, count = _opened()
    for line in lines:
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


def _line(folder: RunFolder, histories: bool, whole: bool) -> dict[str, Any]:
    """What is carried of a run: its weights by their checksum alone, unless it is to be whole and can be."""
    whole = whole and folder.has(WEIGHTS) and (folder.path / WEIGHTS).stat().st_size <= LARGEST // 2
    left = () if histories else tuple(folder.names(HISTORY))
    names = [name for name in folder.names() if _carried(name) and name not in (*left, *_of_this_machine(folder))]
    files: dict[str, Any] = {name: _text(folder.read(name)) for name in names if name != WEIGHTS or whole}
    if folder.has(WEIGHTS) and not whole:
        files[LEFT_WEIGHTS] = json.dumps(folder.weights_note()) + "\n"
    return {"id": folder.path.name, "files": files}


def _of_this_machine(folder: RunFolder) -> list[str]:
    """Failures of measures for want of a package or of memory: no end of a run, so they are not carried."""
    return [name for name in folder.names(OF_MEASURES) if is_machines(folder.read_json(name))]


def _text(content: bytes) -> str | Mapping[str, str]:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _carried(name: str) -> bool:
    return name in (*CARRIED, WEIGHTS) or name.startswith((HISTORY, *FOLDERS))


def _lines(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The runs of a portion; none where there is no portion yet."""
    if not (folder / RECORD).exists():
        return
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
