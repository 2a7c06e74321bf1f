"""Train and measure reproductions on a machine that has a GPU and PyTorch alone; weights stay there.

    python benchmarks/study_on_gpu.py k-1 z-table-3.3 --size small --store STORE --processes 14

Training goes through the fleet; the measures of one study are taken by processes on the CPU while the next one trains.
What is left is a folder of runs without weights, to be judged where tables can be drawn:
``unweave reproduce k-1 --size small --store STORE --trained``.
"""

import argparse
import os
import time
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")


def measure(name: str, size: str, root: str, run_id: str) -> tuple[str, float]:
    """Take the measures of one run, here on the CPU."""
    import torch

    from unweave.recipes.reproductions import find_reproduction
    from unweave.studies.store import Store
    from unweave.studies.train_and_measure import take_measures

    torch.set_num_threads(1)
    begin = time.process_time()
    while True:
        try:
            take_measures(find_reproduction(name).study(size).measures, run_id, Store(root))
            return run_id, time.process_time() - begin
        except BlockingIOError:  # another study measures the same run
            time.sleep(0.5)


def main() -> None:
    from unweave.recipes.reproductions import find_reproduction
    from unweave.recipes.train_only import train_only

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="+")
    parser.add_argument("--size", default="small")
    parser.add_argument("--store", required=True)
    parser.add_argument("--processes", type=int, default=14)
    parser.add_argument("--seconds", type=float, default=300.0, help="training of one study at most")
    parser.add_argument(
        "--keep", nargs="*", default=[], metavar="RUN", help="runs whose weights stay: some figures ask"
    )
    given = parser.parse_args()
    Path(given.store).mkdir(parents=True, exist_ok=True)
    waiting: list[Future[tuple[str, float]]] = []
    with ProcessPoolExecutor(given.processes, get_context("spawn")) as pool:
        for name in given.ids:
            study = find_reproduction(name).study(given.size)
            found = train_only([study], given.store, seconds=given.seconds)
            print(f"{name}: {len(found.done)} trained, {len(found.left)} left, {found.seconds:.0f} s", flush=True)
            waiting += [pool.submit(measure, name, given.size, given.store, run_id) for run_id in found.done]
        begin = time.monotonic()
        spent = sum(job.result()[1] for job in waiting)
    print(f"{len(waiting)} measured, {spent:.0f} CPU-s, waited {time.monotonic() - begin:.0f} s", flush=True)
    leave_weights(Path(given.store), given.keep)


def leave_weights(root: Path, keep: list[str]) -> None:
    from unweave.runs.folder import RunFolder

    for path in sorted(root.iterdir()):
        if (path / "failures").is_dir():
            for failure in (path / "failures").iterdir():
                print(path.name, failure.read_text()[:300], flush=True)
        if path.name not in keep:
            RunFolder(path).leave_weights()


if __name__ == "__main__":
    main()
