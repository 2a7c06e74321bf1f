"""What PyTorch's own layers can do at most: a method's plain step as a CUDA graph in bf16, several models on streams.

    python benchmarks/plain_graphs.py --method ws_gan --models 1 2 4 8 16

Every model is a plain module with torch.optim's fused Adam; its step (batch, losses, gradients, update) is one graph,
and graphs of several models are replayed on streams of their own. Nothing is recorded or checked. This is the bar for
our kernels where cuDNN is at its best, that is where channels are many.
"""

import argparse
import json
import time
from collections.abc import Callable

import torch
from methods import WORLDS, experiment_of

from unweave.data.world import Data
from unweave.models.objectives import Context, new_networks
from unweave.training.batches import Drawing, batch_of_one, source_of
from unweave.training.experiment import Experiment, form_of


def step_of(experiment: Experiment, data: Data, seed: int, device: torch.device) -> Callable[[], None]:
    """One step of a model as one writes it, in bf16 where the device has it."""
    method, form = experiment.objective, form_of(experiment.objective, data)
    made = new_networks(method, experiment.architecture(form.shape, form.labels), "pytorch", seed)
    networks = {name: net.to(device, memory_format=torch.channels_last) for name, net in made.items()}
    cuda = device.type == "cuda"
    optimisers = [
        torch.optim.Adam(
            [p for name in phase.updates for p in networks[name].parameters()], 1e-4, fused=cuda, capturable=cuda
        )
        for phase in method.phases()
    ]
    drawn = batch_of_one(source_of([experiment], data), Drawing(source_of([experiment], data))(0))

    def step() -> None:
        batch = dict(drawn)
        for part, like in drawn.items():
            if part.endswith("images"):
                batch[part] = data.examples(torch.randint(len(data), (len(like),), device=device))
            elif part.endswith("noise"):
                batch[part] = torch.randn_like(like)
        code = None
        for phase, optimiser in zip(method.phases(), optimisers):
            with torch.autocast(device.type, torch.bfloat16, enabled=cuda):
                terms, made = phase.loss(batch, Context(0, len(data), 0, networks, code))
            code = made.detach() if made is not None else code
            optimiser.zero_grad(set_to_none=False)
            terms[phase.minimises].backward()  # type: ignore[no-untyped-call]
            optimiser.step()

    return step


def graph_of(step: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """The step as one graph, after three steps that let libraries choose."""
    aside = torch.cuda.Stream()
    with torch.cuda.stream(aside):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def seconds(graphs: list[torch.cuda.CUDAGraph], steps: int) -> float:
    """Replaying every graph so often, each on its stream."""
    streams = [torch.cuda.Stream() for _ in graphs]
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps):
        for graph, stream in zip(graphs, streams):
            with torch.cuda.stream(stream):
                graph.replay()
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", default="ws_gan")
    parser.add_argument("--models", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--world", default="dsprites", choices=WORLDS)
    parser.add_argument("--device", default="cuda", choices=("cpu", "cuda"), help="cpu: two steps, to see that it runs")
    parser.add_argument("--json")
    given = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    device, world = torch.device(given.device), WORLDS[given.world]
    data, experiment = world.load().to(device), experiment_of(given.method, given.device, world)
    if given.device == "cpu":
        step = step_of(experiment, data, 0, device)
        return print([step() for _ in range(2)])
    steps = [step_of(experiment, data, seed, device) for seed in range(max(given.models))]  # graphs point into them
    graphs = [graph_of(step) for step in steps]
    rows = []
    for count in given.models:
        seconds(graphs[:count], 10)
        each = min(seconds(graphs[:count], given.steps) for _ in range(3)) / given.steps / count * 1e6
        rows.append({"method": given.method, "models": count, "µs": each})
        print(f"{given.method} × {count}: {each:.0f} µs a model-step", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()
