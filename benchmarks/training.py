"""Training throughput on the CPU: unweave beside a bare hand-written loop, and pythae's trainer where it is installed.

    python benchmarks/training.py                      # both thread counts, a few minutes
    python benchmarks/training.py --threads 1 --steps 20 --rounds 7 --json out.json

The same network (conv 4×4, batch 64, ten latents, 64×64×1), the same data, interleaved rounds in one process: a round
times every way for some steps, in turn. The ratio of medians is what holds on a shared machine, not the seconds.
"""

import argparse
import contextlib
import io
import itertools
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import nn
from torch.nn import functional

from unweave.data.world import Data
from unweave.models.objectives import BetaVAE
from unweave.training.alone import Alone
from unweave.training.experiment import Experiment, Plan
from unweave.training.history import Recording


class PlainVAE(nn.Module):
    """What one writes in ten minutes: the standard network in plain PyTorch."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [1, 32, 32, 64, 64]
        convolutions = [m for i, o in itertools.pairwise(sizes) for m in (nn.Conv2d(i, o, 4, 2, 1), nn.ReLU())]
        self.encoder = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 20))
        self.dense = nn.Sequential(nn.Linear(10, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU())
        sizes = [64, 64, 32, 32, 1]
        layers = [m for i, o in itertools.pairwise(sizes) for m in (nn.ConvTranspose2d(i, o, 4, 2, 1), nn.ReLU())]
        self.decoder = nn.Sequential(*layers[:-1])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mean, log_variance = self.encoder(x).chunk(2, 1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decoder(self.dense(code).view(-1, 64, 4, 4)), mean, log_variance


def bare(data: Data) -> Callable[[int], None]:
    """The bare loop, with the history a careful user would keep: the loss of every step."""
    model = PlainVAE()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-4, foreach=False)
    losses = []

    def run(steps: int) -> None:
        for _ in range(steps):
            x = data.examples(torch.randint(len(data), (64,)))
            logits, mean, log_variance = model(x)
            reconstruction = functional.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
            kl = 0.5 * (mean.square() + log_variance.exp() - log_variance - 1).sum(1).mean()
            loss = reconstruction + 4 * kl
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            losses.append(loss.item())

    return run


def ours(data: Data) -> Callable[[int], None]:
    """Our step with everything a run keeps: every term and five statistics of every latent, at every step."""
    experiment = replace(Experiment(_Made(), BetaVAE(4.0), plan=Plan("cpu", torch.get_num_threads())), history_every=1)
    engine, recording, place = Alone(experiment, data), Recording(), [0]

    def run(steps: int) -> None:
        for step in range(place[0], place[0] + steps):
            engine.advance(step, record=True)
            recording.add(step, engine.rows())
        place[0] += steps

    return run


def pythae(data: Data) -> Callable[[int], None]:
    """pythae's own trainer on the same network."""
    import tempfile

    from pythae.data.datasets import DatasetOutput
    from pythae.models import BetaVAE as PythaeVAE
    from pythae.models import BetaVAEConfig
    from pythae.models.base.base_utils import ModelOutput
    from pythae.models.nn import BaseDecoder, BaseEncoder
    from pythae.trainers import BaseTrainer, BaseTrainerConfig

    plain = PlainVAE()

    class Encoder(BaseEncoder):
        def __init__(self) -> None:
            super().__init__()
            self.layers = plain.encoder

        def forward(self, x: torch.Tensor) -> ModelOutput:
            mean, log_variance = self.layers(x).chunk(2, 1)
            return ModelOutput(embedding=mean, log_covariance=log_variance)

    class Decoder(BaseDecoder):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.layers = plain.dense, plain.decoder

        def forward(self, code: torch.Tensor) -> ModelOutput:
            return ModelOutput(reconstruction=torch.sigmoid(self.layers(self.dense(code).view(-1, 64, 4, 4))))

    config = BetaVAEConfig(input_dim=(1, 64, 64), latent_dim=10, reconstruction_loss="bce", beta=4.0)
    model = PythaeVAE(config, encoder=Encoder(), decoder=Decoder())

    class Examples(torch.utils.data.Dataset):
        def __init__(self, n: int) -> None:
            self.images = data.examples(torch.randint(len(data), (n,)))

        def __len__(self) -> int:
            return len(self.images)

        def __getitem__(self, place: int) -> DatasetOutput:
            return DatasetOutput(data=self.images[place])

    def run(steps: int) -> None:
        quiet = (contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()))
        with tempfile.TemporaryDirectory() as folder, quiet[0], quiet[1]:
            settings = BaseTrainerConfig(
                output_dir=folder, num_epochs=1, per_device_train_batch_size=64, no_cuda=True, steps_saving=None
            )
            trainer = BaseTrainer(model, Examples(64 * steps), training_config=settings)
            trainer.prepare_training()
            trainer.train_step(epoch=1)

    return run


class _Made:
    """A stand-in for a world: the benchmark hands its data to the loop itself."""

    name = "benchmark"


WAYS = {"bare loop": bare, "unweave": ours, "pythae": pythae}


def measure(threads: int, steps: int, rounds: int) -> dict[str, dict[str, float]]:
    """Median CPU and wall time a step of every way, interleaved."""
    torch.set_num_threads(threads)
    data = Data((torch.rand(2000, 512) * 255).to(torch.uint8), (1, 64, 64), "bits")
    runs = {}
    for name, make in WAYS.items():
        try:
            runs[name] = make(data)
        except ImportError:
            print(f"{name} is not installed; left out")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run(steps)
            if number:  # the first round warms up
                times[name].append(((time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps))
    middle = {name: [statistics.median(column) for column in zip(*pairs)] for name, pairs in times.items()}
    return {name: {"wall_ms": 1e3 * wall, "cpu_ms": 1e3 * cpu} for name, (wall, cpu) in middle.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json")
    given = parser.parse_args()
    results = {}
    for threads in map(int, given.threads.split(",")):
        results[threads] = found = measure(threads, given.steps, given.rounds)
        base = found["bare loop"]
        for name, row in found.items():
            ratios = (
                f"{base['wall_ms'] / row['wall_ms']:.2f}× by the clock, {base['cpu_ms'] / row['cpu_ms']:.2f}× by CPU"
            )
            print(f"{threads} thread{'s' * (threads > 1)}  {name:10} {row['wall_ms']:7.1f} ms a step   {ratios}")
    if given.json:
        with open(given.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
