"""Draws what methods with pairs and labels gain: latents against factors, beside a β-VAE and beside a control.

    python docs/make_method_pictures.py --store STORE            # trains what is not there yet: an hour on two cores
    python docs/make_method_pictures.py --store STORE pcl qlae   # only these

Models are those of seed 0 of `unweave reproduce u-supervision --size small`, and a few more on the micro-world. With
the store of that reproduction only the others are trained.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np

from unweave.data.micro import Micro
from unweave.evaluation.encode import encode
from unweave.models.objectives import PCL, QLAE, WSGAN, BetaVAE, SemiVAE
from unweave.plots.matrices import _colours
from unweave.plots.save import to_png
from unweave.plots.style import INK, new_figure
from unweave.recipes.own.supervision import MODELS, Asked, study
from unweave.training.loop import train
from unweave.training.run import Run

IMAGES = Path(__file__).parent / "images"

MORE = {
    "PCL": Asked(Micro(), PCL()),
    "PCL, random pairs": Asked(Micro(), PCL(pairs="random")),
    "labels of 100": Asked(Micro(), SemiVAE(labelled=100)),
    "labels of 100 others": Asked(Micro(), SemiVAE(labelled=100, labels="random")),
    "QLAE, 6 latents": Asked(Micro(), QLAE()),
    "β-VAE, 6 latents": Asked(Micro(), BetaVAE(1.0)),
    "WS-GAN": Asked(Micro(), WSGAN()),
    "WS-GAN, random pairs": Asked(Micro(), WSGAN(pairs="random")),
}
LATENTS = {"QLAE, 6 latents": 6, "β-VAE, 6 latents": 6}
STEPS = {"WS-GAN": 5000, "WS-GAN, random pairs": 5000}

PICTURES = {
    "slow_vae": ("β-VAE, β = 1", "SlowVAE", "SlowVAE, random pairs"),
    "pair_vae": ("β-VAE, β = 1", "Ada-GVAE", "Ada-GVAE, random pairs"),
    "ivae": ("segments: β-VAE, β = 1", "segments: iVAE", "segments: iVAE, labels of others"),
    "pcl": ("β-VAE, β = 1", "PCL", "PCL, random pairs"),
    "semi_supervised": ("β-VAE, β = 4", "labels of 100", "labels of 100 others"),
    "qlae": ("β-VAE, 6 latents", "QLAE, 6 latents"),
    "ws_gan": ("β-VAE, β = 1", "WS-GAN", "WS-GAN, random pairs"),
}


def trained(name: str, store: Path) -> Run:
    """The model of seed 0, trained where the store has none."""
    asked = MODELS.get(name) or MORE[name]
    base = study("small").experiments[0]
    experiment = replace(
        base,
        world=asked.world,
        objective=asked.method,
        network=asked.network,
        latents=LATENTS.get(name, base.latents),
        steps=STEPS.get(name, base.steps),
        batch_size=64 if asked.method.pairing is None else 32,
    )
    if isinstance(asked.method, QLAE | WSGAN):  # they have optimisers of their own
        experiment = replace(experiment, optimiser=type(base.optimiser)())
    return Run(train(experiment, store / experiment.resolve().id))


def followed(run: Run) -> np.ndarray:
    """How closely every latent follows every factor: the size of their correlation."""
    rows = run.rows(4096)
    codes = encode(run, rows).mean.numpy()
    factors = run.data.factors(rows).double().numpy()
    both = np.corrcoef(np.concatenate([codes, factors], axis=1).T)
    return np.abs(np.nan_to_num(both[: codes.shape[1], codes.shape[1] :]))


def draw(names: tuple[str, ...], store: Path) -> bytes:
    """One matrix a model, side by side."""
    figure, axes = new_figure(2.6 * len(names), 3.0, columns=len(names))
    for place, name in zip(axes[0], names):
        run = trained(name, store)
        matrix, factors = followed(run), run.data.space.names if run.data.space else run.data.label_names
        place.imshow(matrix, cmap=_colours(False), vmin=0, vmax=1)
        for (row, column), value in np.ndenumerate(matrix):
            place.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.55 else INK)
        place.set_xticks(range(len(factors)), factors)
        place.set_yticks(range(len(matrix)), [f"latent {number}" for number in range(len(matrix))])
        place.set_title(name.removeprefix("segments: "), fontsize=10)
    return to_png(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(PICTURES))
    parser.add_argument("--store", required=True, type=Path)
    given = parser.parse_args()
    for name in given.names:
        (IMAGES / f"method_{name}.png").write_bytes(draw(PICTURES[name], given.store))
        print(name, flush=True)
