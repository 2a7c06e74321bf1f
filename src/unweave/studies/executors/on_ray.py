"""Ray: packs as tasks of a cluster, or of a new one on this machine. Only the store's folder must be shared.

A task that dies with its worker or its node is started again by Ray; what it had taken becomes free when its holder
is seen to be dead. Workers may die over a run a few times until it counts as failed, nodes any number of times: they
are taken away by no fault of it. When a head node dies, the cluster does: the same call goes on from the store.
"""

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from unweave.studies.executors.executor import Ended, Executor
from unweave.studies.outage import Outage, noted_fault
from unweave.studies.pack import Pack, pack_from, pack_to
from unweave.studies.train_and_measure import give_up, train_and_measure
from unweave.training.running import GpuFailed, Interrupted, RunOptions

RETRIES = 3
"""Times that Ray starts a task again whose worker has died."""

ASK_EVERY = 0.5


@dataclass(frozen=True)
class OnRay(Executor):
    """``address`` of a cluster (``auto``, ``host:port``, ``ray://…``); empty starts one here with ``workers`` cores."""

    elsewhere = True
    workers: int = 0
    address: str = ""
    gpus: float = 1.0
    """GPUs that a fleet is given."""

    def n_gpus(self) -> int:
        with _cluster(self) as ray:
            held = ray.cluster_resources().get("GPU", 0.0)
        return int(held / self.gpus) if self.gpus else 0

    def __call__(self, packs: Sequence[Pack], root: Path, how: RunOptions, ended: Ended) -> None:
        with _cluster(self) as ray:
            task = ray.remote(max_retries=RETRIES)(_task)
            stop_file = root.resolve() / ".unweave" / f"stop-{os.getpid()}-{time.time_ns()}"
            given = (str(root.resolve()), how.save_every, str(stop_file))
            waiting: dict[Any, Pack] = {}
            todo, outage = list(packs), Outage()
            try:
                while waiting or (todo and not how.stop()):
                    if not outage.pausing and not how.stop():
                        waiting |= {_sent(task, pack, given, self.gpus): pack for pack in todo}
                        todo = []
                    if not waiting:  # a pause
                        time.sleep(ASK_EVERY)
                        continue
                    done, _ = ray.wait(list(waiting), timeout=ASK_EVERY)
                    for reference in done:
                        todo += _heard(ray, reference, waiting.pop(reference), root, ended, outage)
                    if how.stop() and not stop_file.exists():
                        stop_file.touch()
            except BaseException:
                for reference in waiting:
                    ray.cancel(reference, force=True)
                raise
            finally:
                stop_file.unlink(missing_ok=True)
            if how.stop():
                raise Interrupted("stopped; the same command goes on")


def _sent(task: Any, pack: Pack, given: tuple[str, float, str], gpus: float) -> Any:
    wanted = {"num_cpus": pack.threads, "num_gpus": gpus if pack.needs_gpu else 0}
    return task.options(**wanted).remote(pack_to(pack), *given)


def _heard(ray: Any, reference: Any, pack: Pack, root: Path, ended: Ended, outage: Outage) -> list[Pack]:
    """What a task says; packs that follow, or are to be sent again where its worker or its nodes died too often."""
    words = noted_fault(root / ".unweave", pack)
    try:
        answer = ray.get(reference)
    except ray.exceptions.TaskCancelledError:
        return []
    except ray.exceptions.NodeDiedError:
        return [pack]
    except (ray.exceptions.WorkerCrashedError, ray.exceptions.OutOfMemoryError) as error:
        if words and not outage.is_own(pack):
            outage.begin(words)
            return [pack]
        if len(pack.experiments) > 1:
            return [replace(pack, experiments=(experiment,)) for experiment in pack.experiments]
        again = give_up(pack, root, f"died {RETRIES + 1} times ({type(error).__name__})", str(error))
        return [pack] if again else list(ended(pack) or ())
    if isinstance(answer, int):
        raise OSError(answer, os.strerror(answer), str(root))
    if answer == "ended":
        outage.well(pack)
        return list(ended(pack) or ())
    return [pack]


def _task(text: str, root: str, save_every: float, stop_file: str) -> str | int:
    """What runs on the cluster: ``ended`` or ``stopped``, or the number of the error of a full disk."""
    from unweave.studies.failures import is_full

    try:
        train_and_measure(
            pack_from(text, Path(root) / ".unweave" / "modules"),
            root,
            RunOptions((), save_every, _asking(Path(stop_file))),
        )
    except Interrupted:
        return "stopped"
    except GpuFailed as error:
        print(error, file=sys.stderr, flush=True)
        os._exit(1)  # Ray starts the task again, in another process
    except OSError as error:
        if is_full(error):
            return error.errno or 28
        raise
    return "ended"


def _asking(file: Path) -> Any:
    """Whether a file is there, asked not too often: it may lie on another machine."""
    asked, found = [0.0], [False]

    def stop() -> bool:
        if not found[0] and time.monotonic() - asked[0] >= ASK_EVERY:
            asked[0], found[0] = time.monotonic(), file.exists()
        return found[0]

    return stop


@contextlib.contextmanager
def _cluster(given: OnRay) -> Iterator[Any]:
    """Ray, connected; what was started here is shut down again."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise ImportError("Ray is not installed; run: pip install 'unweave[ray]'") from error
    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "include_dashboard": False}
    if given.address:
        _connect(ray, given.address, {key: value for key, value in quiet.items() if key != "include_dashboard"})
    else:
        ray.init("local", num_cpus=given.workers or None, **quiet)
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str, quiet: dict[str, Any]) -> None:
    try:
        ray.init(address, **quiet)
    except (ConnectionError, ray.exceptions.RaySystemError) as error:
        raise ConnectionError(
            f"no Ray cluster answers at {address}: {(str(error).splitlines() or [''])[0]}. Is it running, and where it"
            " asks for a token, is RAY_AUTH_MODE=token set here too?"
        ) from error
