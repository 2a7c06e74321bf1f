"""OpenRun runs: models are loaded when first asked for, the least recently used ones are put away again."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import torch

from unweave.config import fingerprint
from unweave.data.world import Data
from unweave.models.method import NoCodes
from unweave.runs.folder import WEIGHTS, RunFolder, signature
from unweave.runs.state import State, state_of
from unweave.shapes import Float, Tensor
from unweave.training.run import Run
from unweave.web.store import ReadOnlyStore

MOST_RUNS, MOST_WORLDS, MOST_PAIRS = 12, 2, 32

Found = TypeVar("Found")


class NotReady(RuntimeError):
    """A run without a finished model; the message says what to do."""


class OpenRun:
    """A finished run with its model in memory, and everything that was worked out about it, each thing once."""

    def __init__(self, run: Run, name: str, checksum: str, data: Callable[[], Data]) -> None:
        self.run, self.name, self.checksum, self._data = run, name, checksum, data
        self.latents = run.experiment.latents
        self.signature = signature(run.path)
        self.model = run.model
        self.shape = self.model.architecture.shape
        self._kept: dict[str, Future[Any]] = {}
        self._lock = threading.Lock()

    @property
    def is_image(self) -> bool:
        """Whether examples are pictures that a page can show."""
        return len(self.shape) == 3 and self.shape[0] in (1, 3)

    def with_data(self) -> Run:
        """The run with its data loaded, shared with other runs of the same world."""
        if "data" not in vars(self.run):
            self.run.data = self._data()
        return self.run

    def once(self, key: str, make: Callable[[], Found]) -> Found:
        """What ``make`` gives, made by the first who asks while the others wait; an error is not kept."""
        with self._lock:
            future = self._kept.get(key)
            mine = future is None
            if future is None:
                future = self._kept[key] = Future()
        if mine:
            try:
                future.set_result(make())
            except BaseException as error:
                with self._lock:
                    del self._kept[key]
                future.set_exception(error)
        result: Found = future.result()
        return result

    @torch.no_grad()
    def decode(self, codes: Float[Tensor, "sample latent"]) -> Float[Tensor, "sample ..."]:
        """What the model shows for given codes."""
        return self.model.decode(codes)


class OpenRuns:
    """The runs of a store, opened. Every call checks that the folder is still there and still the same."""

    def __init__(self, store: ReadOnlyStore) -> None:
        self.store = store
        self.busy = threading.Semaphore(1)
        """Held by whatever takes seconds: one such thing at a time leaves a core for sliders."""
        self._runs: OrderedDict[str, OpenRun] = OrderedDict()
        self._worlds: OrderedDict[str, Data] = OrderedDict()
        self._pairs: OrderedDict[tuple[str, str], Any] = OrderedDict()
        self._lock, self._loading, self._fetching = threading.Lock(), threading.Lock(), threading.Lock()

    def peek(self, run_id: str) -> OpenRun | None:
        """A run that is open already and whose model has not changed. This is asked for every picture: one stat."""
        with self._lock:
            known = self._runs.get(run_id)
            if known is None:
                return None
            self._runs.move_to_end(run_id)
        now = signature(known.run.path)
        if now != known.signature or not now:
            if _checksum(self.store.run(run_id)) != known.checksum:
                return None
            known.signature = now
        return known

    def open(self, run_id: str) -> OpenRun:
        """A run with its model loaded."""
        found = self.peek(run_id)
        if found is not None:
            return found
        with self._loading:
            found = self.peek(run_id)
            return found if found is not None else self._load(run_id)

    def pair(self, left: OpenRun, right: OpenRun, make: Callable[[], Found]) -> Found:
        """What was worked out about two runs, kept for a while."""
        key = (left.checksum, right.checksum)
        with self.busy:
            if key not in self._pairs:
                self._pairs[key] = make()
                while len(self._pairs) > MOST_PAIRS:
                    self._pairs.popitem(last=False)
            self._pairs.move_to_end(key)
            kept: Found = self._pairs[key]
        return kept

    @property
    def names(self) -> list[str]:
        """Runs that are open now, the least recently used first."""
        with self._lock:
            return list(self._runs)

    def _load(self, run_id: str) -> OpenRun:
        path = self.store.run(run_id)
        run = Run(path)
        state = state_of(run.files)
        if state.word != "done":
            raise NotReady(f"this run is {state.column}: there is no model to look at yet. {_advice(state)}")
        if not run.encodes:
            raise NotReady(str(NoCodes(run.experiment.objective.name)))
        opened = OpenRun(run, run_id, _checksum(path), lambda: self._world(run))
        with self._lock:
            self._runs[run_id] = opened
            while len(self._runs) > MOST_RUNS:
                self._runs.popitem(last=False)
        return opened

    def _world(self, run: Run) -> Data:
        key = fingerprint(run.experiment.world)
        with self._fetching:
            if key not in self._worlds:
                self._worlds[key] = run.experiment.world.load()
                while len(self._worlds) > MOST_WORLDS:
                    self._worlds.popitem(last=False)
            self._worlds.move_to_end(key)
            return self._worlds[key]


def _checksum(path: Path) -> str:
    """The checksum of a run's weights, as its list has it; empty where there are none."""
    return RunFolder(path).sums().get(WEIGHTS, "")


def _advice(state: State) -> str:
    if state.word == "damaged":
        return f"{state.reason}."
    if state.word == "failed":
        return f"Its training failed: {state.reason}."
    return "It appears here when its training has ended."
