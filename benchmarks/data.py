"""How fast images come: rendering the dSprites grid, and random batches of several worlds.

    python benchmarks/data.py
    python benchmarks/data.py --worlds dsprites noisy_dsprites --batches 64 1024 --json out.json

One thread; CPU time, since a shared machine's clock says little. A world whose files are not on this machine and that
cannot be rendered is named and left out.
"""

import argparse
import json
import statistics
import time

import torch

from unweave.data import WORLDS
from unweave.data.procedural.dsprites import render_grid
from unweave.data.world import Data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    worlds = ["dsprites", "color_dsprites", "noisy_dsprites", "shapes3d_like"]
    parser.add_argument("--worlds", nargs="*", default=worlds)
    parser.add_argument("--batches", nargs="*", type=int, default=[64, 256, 1024])
    parser.add_argument("--images", type=int, default=20_000, help="images of one timing (20000)")
    parser.add_argument("--json", help="also write the numbers here")
    given = parser.parse_args()
    torch.set_num_threads(1)
    begin = time.process_time()
    grid = render_grid()
    found = {"dsprites grid": {"cpu_seconds": time.process_time() - begin, "megabytes": grid.nbytes / 1e6}}
    print(f"dSprites, all {len(grid):,} images rendered: {found['dsprites grid']['cpu_seconds']:.1f} CPU-s")
    for name in given.worlds:
        try:
            data = WORLDS[name]().resolve().load()
        except (OSError, ValueError) as error:
            print(f"{name}: left out ({error})")
            continue
        for size in given.batches:
            rates = [rate(data, size, given.images) for _ in range(3)]
            found[f"{name} {size}"] = {"images_per_cpu_second": statistics.median(rates)}
            print(f"{name}, batches of {size}: {statistics.median(rates):,.0f} images per CPU-second")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=2)


def rate(data: Data, size: int, n_images: int) -> float:
    """Images a CPU-second, from random rows."""
    rows = torch.randint(len(data), (n_images // size + 1, size), generator=torch.Generator().manual_seed(0))
    data.examples(rows[0])
    begin = time.process_time()
    for step, some in enumerate(rows):
        data.examples(some, step=step)
    return rows.numel() / (time.process_time() - begin)


if __name__ == "__main__":
    main()
