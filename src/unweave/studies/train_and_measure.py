"""What a worker does: train what a pack has unfinished, then measure it. Done twice, it does nothing twice."""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from unweave.config import fingerprint
from unweave.data.world import Data, World
from unweave.runs.folder import WEIGHTS, RunFolder
from unweave.studies.failures import file_of, is_full, record, record_crash, record_of_measure
from unweave.studies.leases import Holder
from unweave.studies.measures.measure import Measure
from unweave.studies.outage import note_fault
from unweave.studies.pack import Pack
from unweave.studies.store import Store
from unweave.training.batches import load_together
from unweave.training.experiment import Experiment, form_of, form_of_card
from unweave.training.fleet.choice import models_that_fit, side_by_side
from unweave.training.fleet.share import share_of_card
from unweave.training.loop import say, train
from unweave.training.many import fault_words, is_gpu_fault, train_many
from unweave.training.running import GpuFailed, Interrupted, RunOptions

WAIT = 0.5
"""Seconds until a run that another process holds is asked for again."""

_LOADED: dict[str, Data] = {}


def train_and_measure(pack: Pack, root: Path | str, how: RunOptions = RunOptions()) -> None:
    """Train and measure everything in a pack that is not there yet; what others hold is waited for.

    A run or a measure that fails leaves its reason in the run's folder, and the rest goes on. Only what is no fault of
    a run is raised: being asked to stop, a full disk, and a GPU that fails or cannot be reached.
    """
    store = Store(root).prepare()
    try:
        _take_turns(pack, store, how)
    except RuntimeError as error:
        if not isinstance(error, GpuFailed) and not is_gpu_fault(error):
            raise
        words = fault_words(error.__cause__ or error if isinstance(error, GpuFailed) else error)
        note_fault(store.home, pack, words)
        raise GpuFailed(f"{words}. Nothing is lost: the same command goes on") from error


def _take_turns(pack: Pack, store: Store, how: RunOptions) -> None:
    """Perform what nobody else does, until all has come to its end."""
    waiting = list(pack.experiments)
    with Holder(store.home) as holder:
        how = replace(how, stop=lambda asked=how.stop: asked() or holder.lost)  # type: ignore[misc]
        while waiting := [e for e in waiting if not settled(store.folder(e.id), pack)]:
            mine = [experiment for experiment in waiting if holder.take(experiment.id)]
            try:
                if mine:
                    _perform(replace(pack, experiments=tuple(mine)), store, how)
            except BlockingIOError:
                mine = []  # another command writes into the folder
            finally:
                for run_id in list(holder.held):
                    holder.release(run_id)
            if how.stop():
                raise Interrupted("stopped; the same command goes on")
            if not mine:
                time.sleep(WAIT)
            elif endless := [e.id for e in mine if not settled(store.folder(e.id), pack)]:
                raise RuntimeError(f"{endless[0]} came to no end, neither a result nor a failure")


def settled(folder: RunFolder, pack: Pack) -> bool:
    """Whether nothing is left to do for a run: trained and measured, or failed."""
    sums = folder.sums()
    if not folder.trained:
        return "failure.json" in sums or not pack.trains
    return not missing_measures(folder, pack.measures)


def take_measures(measures: Sequence[Measure], run_id: str, store: Store) -> None:
    """Take the measures of a finished run that it does not have yet; one that fails is noted, and the others taken."""
    folder = store.folder(run_id)
    if not folder.has("model.safetensors"):
        return
    run = None
    for measure in missing_measures(folder, measures):
        try:
            if run is None:
                run = store.run(run_id)
                run.data = loaded(run.experiment.world)
            with folder.locked():
                # what makes no codes has nothing to be measured
                found = measure(run) if run.experiment.objective.encodes else {}
                folder.write_json(measure.file, dict(found))
        except Exception as error:
            if _is_elsewhere(error):
                raise
            record_of_measure(folder, measure, error)


def loaded(world: World) -> Data:
    """The data of a world, loaded once a process."""
    key = fingerprint(world)
    if key not in _LOADED:
        if len(_LOADED) >= 2:
            _LOADED.pop(next(iter(_LOADED)))
        _LOADED[key] = world.load()
    return _LOADED[key]


def give_up(pack: Pack, root: Path, died: str, log: str) -> bool:
    """A pack of one run, over which processes died again and again: its failure is kept. Says whether more is to do."""
    store, experiment = Store(root), pack.experiments[0]
    folder = store.folder(experiment.id)
    missing = missing_measures(folder, pack.measures)
    record_crash(folder, experiment, missing, died, log)
    # a run that is trained goes on with its next measure
    return folder.has("model.safetensors") and len(missing) > 1


def _perform(pack: Pack, store: Store, how: RunOptions) -> None:
    if pack.trains:
        _train(pack.experiments, store, how)
    with _single_threaded():
        for experiment in pack.experiments:
            if how.stop():
                raise Interrupted("stopped; the same command goes on")
            take_measures(pack.measures, experiment.id, store)


def _train(experiments: Sequence[Experiment], store: Store, how: RunOptions) -> None:
    """Train the unfinished. When several fail together, each is tried alone: same results, and the blame is clear."""
    todo = [e for e in experiments if not settled(store.folder(e.id), Pack((e,)))]
    if not todo:
        return
    begin = time.monotonic()
    try:
        _train_together(todo, store, how)
    except Interrupted:
        _note_cost(todo, store, time.monotonic() - begin)
        raise
    except Exception as error:
        if _is_elsewhere(error):
            raise
        if len(todo) > 1:
            for experiment in todo:
                _train([experiment], store, how)
            return
        record(store.folder(todo[0].id), todo[0], error)
        _note_cost(todo, store, time.monotonic() - begin)
        return
    _note_cost(todo, store, time.monotonic() - begin)
    _note_share(todo, store)


def _is_elsewhere(error: Exception) -> bool:
    """Whether an error is no fault of the run: of the disk, of who else writes, or of a GPU."""
    return is_full(error) or isinstance(error, BlockingIOError | GpuFailed) or is_gpu_fault(error)


def _note_cost(experiments: Sequence[Experiment], store: Store, seconds: float) -> None:
    """Each run's share of the time, with what it took before it was interrupted; a kill takes its time with it."""
    for experiment in experiments:
        folder = store.folder(experiment.id)
        if folder.has("config.json"):
            before = folder.read_json("cost.json")["seconds"] if folder.has("cost.json") else 0.0
            device = torch.cuda.get_device_name() if experiment.plan.device.startswith("cuda") else "cpu"
            taken = round(before + seconds / len(experiments), 3)
            folder.write_json("cost.json", {"seconds": taken, "device": device, "models": len(experiments)})


def _note_share(experiments: Sequence[Experiment], store: Store) -> None:
    """How much of a GPU the models used, all of their time counted: one line, and a number in each run's folder."""
    first = experiments[0]
    folders = [store.folder(e.id) for e in experiments if store.folder(e.id).has("cost.json")]
    if not first.plan.device.startswith("cuda") or not folders:
        return
    costs = [folder.read_json("cost.json") for folder in folders]
    seconds = sum(cost["seconds"] for cost in costs) / len(costs)
    try:
        share = share_of_card(first, form_of_card(first.world.card()), seconds)
    except Exception as error:  # a figure about a study must never stop it
        say(f"how much of the card was in use is not known ({type(error).__name__})")
        return
    pace = f"{1e6 * seconds / first.n_updates:,.1f} µs a model-step, {share:.0%} of the card in use"
    say(f"{len(costs)} models × {first.n_updates:,} steps in {seconds * len(costs):,.0f} s: {pace}")
    for folder, cost in zip(folders, costs):
        folder.write_json("cost.json", cost | {"share": round(share, 4)})


def _train_together(experiments: Sequence[Experiment], store: Store, how: RunOptions) -> None:
    """The engine is a function of the experiment alone, never of its company: so are the bits."""
    first = experiments[0]
    data = load_together(experiments, loaded)
    if side_by_side(first):
        for experiment in experiments:
            train(experiment, store.folder(experiment.id).path, data=data, how=how)
        return
    on_gpu = first.plan.device.startswith("cuda")
    size = models_that_fit(first, form_of(first.objective, data)) if on_gpu else None
    train_many(experiments, store.root, data=data, how=how, size=size)


def missing_measures(folder: RunFolder, measures: Sequence[Measure]) -> list[Measure]:
    """Measures that were neither taken of a run nor have failed."""
    sums = folder.sums()
    return [measure for measure in measures if measure.file not in sums and file_of(measure) not in sums]


def without_weights(store: Store, experiments: Iterable[Experiment], measures: Sequence[Measure]) -> list[RunFolder]:
    """Runs that came without weights and lack measures: only training can bring these."""
    folders = [store.folder(experiment.id) for experiment in experiments]
    left_behind = [folder for folder in folders if folder.trained and not folder.has(WEIGHTS)]
    return [folder for folder in left_behind if missing_measures(folder, measures)]


def words_without_weights(count: int) -> str:
    """So many runs are of that kind."""
    return (
        f"{count} runs came without weights and lack measures"
        if count != 1
        else ("a run came without weights and lacks measures")
    )


@contextlib.contextmanager
def _single_threaded() -> Iterator[None]:
    """One thread for torch, BLAS and trees: a measure's last bits must not depend on the worker's cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        threadpool_limits = contextlib.nullcontext
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
