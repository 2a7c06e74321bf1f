"""Does a model notice that wider codes train beside it? And how long does a search take that trains ahead?

    python benchmarks/ahead.py --device cuda                # bits of 5, 10 and 20 latents alone and in one stack
    python benchmarks/ahead.py --device cuda --search 1 15  # unweave dimension dsprites, one by one and ahead

On a CPU small dense networks are stacked, and bits do differ there; a search on a CPU trains ahead only when asked to.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.models.networks import MLP, Conv
from unweave.models.objectives.beta_vae import VAE, BetaVAE
from unweave.recipes.dimension import dimension
from unweave.recipes.dimension_search import DimensionSearch
from unweave.training.experiment import Experiment, Plan
from unweave.training.many import train_many


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--search", type=int, nargs="+", default=[], help="models trained ahead, a search for each")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        search(Path(folder), given.device, given.search) if given.search else bits(Path(folder), given.device)


def bits(folder: Path, device: str) -> None:
    network = Conv() if device.startswith("cuda") else MLP((32,), (32,))
    base = Experiment(Micro(), BetaVAE(), network, steps=50, plan=Plan(device, 1))
    models = [replace(base, latents=n) for n in (5, 10, 20)]
    together = train_many(models, folder / "together")
    for model, path in zip(models, together):
        (alone,) = train_many([model], folder / "alone")
        same = (alone / "model.safetensors").read_bytes() == (path / "model.safetensors").read_bytes()
        print(f"{model.latents:3d} latents: {'the same bits' if same else 'OTHER bits'} in company of wider codes")


def search(folder: Path, device: str, models: list[int]) -> None:
    base = Experiment(DSprites(), VAE(), plan=Plan(device, 1))
    for ahead in models:
        begin = time.perf_counter()
        found = dimension(base, DimensionSearch(ahead=ahead), folder / f"{ahead}-{begin}")
        path = [row["latents"] for row in found.rows]
        print(f"ahead {ahead:2d}: {found.answer} latents by {path}, {found.n_trained} models trained,"
              f" {time.perf_counter() - begin:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
