"""Many experiments at once: in fleets that fit into memory, or in processes side by side."""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from unweave.data.world import Data
from unweave.files import require_folder, things_in
from unweave.runs.fleets import LIST, MEMBER, fleets_in, home_of, members_of
from unweave.runs.folder import RunFolder
from unweave.training.batches import check_before_fetching, check_supervision, load_together
from unweave.training.experiment import Experiment, experiment_to, form_of, read_experiment, usable_cores
from unweave.training.fleet.choice import models_that_fit, side_by_side
from unweave.training.fleet.engine import FleetEngine
from unweave.training.fleet.members import check_structure
from unweave.training.kernel_cache import kept_kernels
from unweave.training.loop import drive, say
from unweave.training.processes import train_side_by_side
from unweave.training.results import claim, ended, for_all, refuse_others
from unweave.training.running import GpuFailed, Interrupted, RunOptions
from unweave.training.trackers import check_trackers
from unweave.words import number_of

Pair = tuple[Experiment, RunFolder]


def train_many(
    experiments: Sequence[Experiment],
    root: Path | str = "runs",
    *,
    data: Data | None = None,
    how: RunOptions = RunOptions(),
    folders: Sequence[Path | str] | None = None,
    size: int | None = None,
) -> list[Path]:
    """Train all experiments together and return their run folders. The same call twice resumes, or returns at once.

    Members that are finished already are left alone. ``size`` bounds how many are trained at a time. A member whose
    loss stops being a number is frozen and gets a ``failure.json``; the others go on undisturbed.
    """
    resolved = [experiment.resolve() for experiment in experiments]
    check_structure(resolved)
    alone = side_by_side(resolved[0])
    if alone:
        resolved = [replace(e, plan=replace(e.plan, threads=1)) for e in resolved]
    paths = [Path(folder) for folder in folders] if folders else [Path(root) / e.id for e in resolved]
    if len({path.parent for path in paths}) > 1:
        raise ValueError("the folders of models that train together must lie side by side, in one folder")
    if not folders:
        _refuse_data(Path(root), resolved[0])
    pairs = [(e, RunFolder(path)) for e, path in zip(resolved, paths)]
    if all(ended(folder) for _, folder in pairs):
        _tidy(pairs, paths[0].parent)
        return paths
    check_trackers(how.trackers)
    for experiment in resolved if data is None else ():
        check_before_fetching(experiment)
    several = len({experiment.world for experiment in resolved}) > 1
    data = (load_together(resolved) if data is None or (several and not data.worlds) else data).to(
        resolved[0].plan.device
    )
    for experiment, folder in pairs:
        check_supervision(experiment, data)
        form = form_of(experiment.objective, data)
        experiment.architecture(form.shape, form.labels)
        refuse_others(folder, experiment)
    if alone:
        _in_processes(pairs, data, how)
        return paths
    for begun in _begun(pairs, paths[0].parent):
        _together(begun, data, how)
    for part in _parts([pair for pair in pairs if not ended(pair[1])], size, data):
        _together(part, data, how)
    return paths


def resume_fleet(run: RunFolder, data: Data | None, how: RunOptions) -> bool:
    """Go on with the fleet that a run is a member of; whether there is one."""
    home = home_of(run)
    if home is None:
        return False
    folders = members_of(home)
    experiments = [read_experiment(RunFolder(folder)) for folder in folders]
    train_many(experiments, home.path.parent, data=data, how=how, folders=folders)
    return True


def _refuse_data(root: Path, experiment: Experiment) -> None:
    """Models are not spilled among the files they learn from, nor into a folder with nothing but files."""
    require_folder(root, "a folder, to which each model adds one of its own")
    learnt = getattr(experiment.world, "where", "")
    inside = bool(learnt) and Path(learnt).is_dir() and root.absolute().is_relative_to(Path(learnt))
    found = things_in(root)
    if inside or (found and all((root / name).is_file() for name in found)):
        raise ValueError(
            f"{root} holds other things ({found[0] if found else learnt}), and models get a folder of their own: choose"
            " another"
        )


def home_and_place(run: RunFolder) -> tuple[RunFolder, int]:
    """The folder with the checkpoints that a run is in, and its place in them: its own, or its fleet's."""
    home = home_of(run)
    return (run, 0) if home is None else (home, members_of(home).index(run.path))


def _parts(todo: list[Pair], size: int | None, data: Data) -> list[list[Pair]]:
    """The models in fleets that fit into free memory, and a line that says so; with a ``size``, in fleets of that."""
    if not todo:
        return []
    largest = max((experiment for experiment, _ in todo), key=lambda e: (len(e.objective.phases()), e.latents))
    fitting = models_that_fit(largest, form_of(largest.objective, data))
    chosen = min(size or len(todo), len(todo), fitting)
    # equal fleets: 50 that fit by 40 are 25 and 25
    count = -(-len(todo) // chosen)
    chosen = -(-len(todo) // count) if size is None else chosen
    if count > 1 or data.store.device.type == "cuda":
        fleets = "one fleet" if count == 1 else f"{count} fleets of up to {chosen}"
        used = f"{fitting:,} fit, so {chosen / fitting:.0%} of the memory is in use"
        say(f"{number_of(len(todo), 'model')} in {fleets}: {used if fitting < 10_000 else 'thousands more would fit'}")
    return [todo[begin : begin + chosen] for begin in range(0, len(todo), chosen)]


def _in_processes(pairs: Sequence[Pair], data: Data, how: RunOptions) -> None:
    todo = [pair for pair in pairs if not ended(pair[1])]
    say(f"{number_of(len(todo), 'model')}, {min(len(todo), usable_cores())} at a time in single-threaded processes")
    for words in train_side_by_side([e for e, _ in todo], [folder.path for _, folder in todo], data=data, how=how):
        say(words)
    if any(not ended(folder) for _, folder in todo):
        raise Interrupted("stopped; the same command goes on")


def _begun(pairs: Sequence[Pair], root: Path) -> list[list[Pair]]:
    """Fleets that were interrupted, with all their members: also those whose results were written before the end."""
    known = {folder.path.name: (experiment, folder) for experiment, folder in pairs}
    homes = [home for home in fleets_in(root) if home.has(LIST)]
    listed = [[path.name for path in members_of(home)] for home in homes]
    return [[known[name] for name in names] for names in listed if all(name in known for name in names)]


def _together(pairs: Sequence[Pair], data: Data, how: RunOptions) -> None:
    """Train as one fleet, or as two halves one after the other where memory does not suffice."""
    home = _home(pairs)
    for attempt in range(2):
        try:
            _hold_and_train(pairs, home, data, how)
            return
        except torch.cuda.OutOfMemoryError:
            if len(pairs) == 1 and attempt:
                raise
            # memory that was enough for a while is perhaps only lent to somebody
            begun = bool(home.names("checkpoints/"))
        except RuntimeError as error:
            if not is_gpu_fault(error):
                raise
            raise GpuFailed(f"{fault_words(error)}. Nothing is lost: the same command goes on") from error
        torch.cuda.empty_cache()
        if not begun:
            break
        say(f"GPU memory ran out; going on from the last checkpoint of {number_of(len(pairs), 'model')}")
    if len(pairs) == 1:
        raise torch.cuda.OutOfMemoryError(
            "one model alone does not fit in GPU memory; make its layers or batch smaller"
        )
    shutil.rmtree(home.path, ignore_errors=True)
    half = len(pairs) // 2
    say(f"{len(pairs)} models do not fit in GPU memory; going on with {half} at a time")
    _together(pairs[:half], data, how)
    _together(pairs[half:], data, how)


def _hold_and_train(pairs: Sequence[Pair], home: RunFolder, data: Data, how: RunOptions) -> None:
    folders = [folder for _, folder in pairs]
    with _held(home, *folders):
        _train(pairs, home, data, how)
        _disband(folders, home)


@contextlib.contextmanager
def _held(*folders: RunFolder) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for_all(lambda folder: held.enter_context(folder.locked()), folders)
        yield


def _disband(folders: Sequence[RunFolder], home: RunFolder) -> None:
    """Remove what members that have ended do not need any more; the list of them goes last."""
    # checkpoints are large, so they begin to go first
    leaving = [(home, [name for name in home.names() if name != LIST]), *((folder, [MEMBER]) for folder in folders)]
    for_all(lambda going: going[0].remove(*going[1]), leaving)
    shutil.rmtree(home.path)


def _tidy(pairs: Sequence[Pair], root: Path) -> None:
    """Disband fleets that a kill left after their last result was written; damaged ones and others' are left alone."""
    known = {folder.path: folder for _, folder in pairs}
    for home in fleets_in(root):
        with contextlib.suppress(OSError, ValueError):
            names = members_of(home) if home.has(LIST) else []  # without a list it was killed while it went
            if set(names) <= known.keys():
                _disband_left(home, [known[name] for name in names])


def _disband_left(home: RunFolder, folders: Sequence[RunFolder]) -> None:
    with _held(home, *folders):
        if folders or not home.has(LIST):  # else somebody has begun with it meanwhile
            _disband(folders, home)


FAULTS = ("CUDA error", "CUDA driver error", "CUBLAS_STATUS", "cuDNN error")
OUT_OF_REACH = ("cudaGetDeviceCount", "CUDA initialization", "CUDA unknown error", "No CUDA GPUs are available")
"""What PyTorch says where a GPU or its driver failed, and where there is no way to it."""


def is_gpu_fault(error: BaseException) -> bool:
    """Whether an error comes from a GPU, its driver or the way to it, by no fault of what was computed."""
    known = isinstance(error, RuntimeError) and not isinstance(error, torch.cuda.OutOfMemoryError)
    return known and names_gpu_fault(str(error))


def names_gpu_fault(words: str) -> bool:
    """Whether the words of an error say so."""
    return any(name in words for name in (*FAULTS, *OUT_OF_REACH))


def fault_words(error: BaseException) -> str:
    """One line about it."""
    return f"the GPU failed ({str(error).splitlines()[0]})"


def _home(pairs: Sequence[Pair]) -> RunFolder:
    """Where a fleet keeps its checkpoints: beside its members, named by what they are."""
    configs = json.dumps([experiment_to(experiment) for experiment, _ in pairs], sort_keys=True)
    return RunFolder(pairs[0][1].path.parent / f"fleet-{hashlib.sha256(configs.encode()).hexdigest()[:12]}")


def _train(pairs: Sequence[Pair], home: RunFolder, data: Data, how: RunOptions) -> None:
    experiments, folders = [e for e, _ in pairs], [folder for _, folder in pairs]
    for_all(lambda pair: refuse_others(pair[1], pair[0]), pairs)
    torch.set_num_threads(experiments[0].plan.threads)
    kernels = kept_kernels(experiments[0].plan.device, say)
    with kernels, contextlib.closing(FleetEngine(experiments, data, say)) as engine:
        failures = drive(engine, folders, home, how, lambda: _claim_all(pairs, home))
    for failure in failures:
        if failure:
            say(failure)


def _claim_all(pairs: Sequence[Pair], home: RunFolder) -> None:
    """Write who trains together, then into every folder what it is for."""
    home.write_json(LIST, [folder.path.name for _, folder in pairs])
    for_all(lambda place: _join(*pairs[place], home, place), range(len(pairs)))


def _join(experiment: Experiment, folder: RunFolder, home: RunFolder, place: int) -> None:
    """Write into a member's folder what it is for, and which fleet it trains in."""
    claim(folder, experiment, {} if ended(folder) else {MEMBER: {"fleet": home.path.name, "place": place}})
