"""The default set of ``uw.measure``: CPU seconds by metric at some numbers of rows, this version beside another.

    OMP_NUM_THREADS=1 python benchmarks/measure_growth.py --before OLD/src          # 10,000 × 10, in turns
    OMP_NUM_THREADS=1 python benchmarks/measure_growth.py --before OLD/src --rows 40000 --metrics mle two_nn

Codes and factors are those of ``metrics.py``. Both versions run in processes of their own, in turns; medians. The last
line says how far their scores lie apart.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="the src folder of another version")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--metrics", nargs="+")
    parser.add_argument("--one", action="store_true", help="measure once and print JSON")
    given = parser.parse_args()
    if given.before and not (Path(given.before) / "unweave").is_dir():
        # the installed version would be measured in its place, beside itself
        parser.error(f"{given.before} holds no unweave")
    if given.one:
        print(json.dumps(measured(given.rows, given.metrics)))
        return
    ways = {"after": str(HERE.parent / "src")} | ({"before": given.before} if given.before else {})
    found: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in ways}
    for _ in range(given.rounds):
        for name, sources in ways.items():
            found[name].append(in_process(sources, given.rows, given.metrics))
    for metric in found["after"][0]["seconds"]:
        taken = {
            name: statistics.median(one["seconds"].get(metric, 0.0) for one in ones) for name, ones in found.items()
        }
        print(f"{metric:36}" + "".join(f"{name} {seconds:8.2f} s   " for name, seconds in taken.items()))
    if given.before:
        one, other = (found[name][0]["values"] for name in ways)
        print(f"scores differ by {max(abs(one[name] - other[name]) for name in one):.1e} at most")


def in_process(sources: str, rows: int, metrics: list[str] | None) -> dict[str, dict[str, float]]:
    command = [sys.executable, __file__, "--one", "--rows", str(rows), *(["--metrics", *metrics] if metrics else [])]
    environment = os.environ | {"PYTHONPATH": sources}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    told: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return told


def measured(rows: int, metrics: list[str] | None) -> dict[str, dict[str, float]]:
    sys.path.insert(0, str(HERE))
    import torch

    import unweave as uw
    from metrics import representation

    torch.set_num_threads(1)
    codes, factors = representation(rows, 0)
    spent: dict[str, float] = {}
    last = ["", time.process_time()]

    def watch(done: int, total: int, name: str) -> None:
        now = time.process_time()
        if last[0]:
            spent[str(last[0])] = spent.get(str(last[0]), 0.0) + now - float(last[1])
        last[:] = [name, now]

    begin = time.process_time()
    scores = uw.measure(codes, factors, metrics=metrics, watch=watch)
    seconds = spent | {"all": time.process_time() - begin}
    values = {name: float(number.value) for name, number in scores.numbers.items()}
    return {"seconds": seconds, "values": {name: value for name, value in values.items() if value - value == 0}}


if __name__ == "__main__":
    main()
