"""Which backend trains a fleet: GPU kernels where they run and fit, the portable one everywhere else."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from unweave.data.world import Data
from unweave.models import Autoencoder
from unweave.models.kernels.chosen import Chosen
from unweave.models.kernels.layout import Layout
from unweave.models.kernels.stacked_code import Early
from unweave.models.networks import Conv
from unweave.models.objectives import MODEL
from unweave.models.optimisers import Optimiser
from unweave.training.batches import rehearse_anywhere
from unweave.training.experiment import Experiment, Form
from unweave.training.fleet.backend import Backend
from unweave.training.fleet.dense import dense_stack
from unweave.training.fleet.fleet import template_of
from unweave.training.fleet.members import ALIKE, Members, arrange, is_mapped
from unweave.training.fleet.portable import portable

LEAST_ON_GPU = ALIKE
"""Below this, PyTorch's reductions on a GPU take other routes, with other last bits; smaller groups are filled up."""


NARROW = 128
"""Models whose layers are no wider are left to `unweave.training.fleet.whole_steps`, or to PyTorch."""


def side_by_side(experiment: Experiment) -> bool:
    """Whether members do better alone, in processes side by side: convolutions on a CPU."""
    return experiment.plan.device == "cpu" and isinstance(experiment.network, Conv)


def models_that_fit(experiment: Experiment, form: Form) -> int:
    """How many models of this kind the free memory holds, with a tenth to spare; at least one."""
    size = size_of(experiment, form)
    # weights, slopes, two moments, a rounded copy, the last good ones twice; of others also the copies of an update
    state = (24 + size.stored) * size.n_stacked + 40 * (size.n_parameters - size.n_stacked)
    each = state + 2 * size.stored * size.n_activations
    return max(1, int(0.9 * _free_memory(experiment.plan.device) / each))


class Size(NamedTuple):
    """Of one model in a fleet."""

    n_parameters: int
    n_stacked: int
    """Those of them that the backend's own stack holds: none where a method is mapped as a whole."""
    n_activations: int
    """Values that pass between layers in a step."""
    stored: int
    """Bytes of such a value."""


def size_of(experiment: Experiment, form: Form) -> Size:
    """How large a model of this kind is while it trains."""
    mapped = is_mapped(experiment.objective)
    with torch.device("meta"):
        networks = experiment.objective.networks(experiment.architecture(form.shape, form.labels))
    n_all, n_stacked = _n_parameters(networks.values()), 0 if mapped else _n_parameters([networks[MODEL]])
    has_kernels = not mapped and (isinstance(experiment.network, Conv) or experiment.plan.dense == "kernels")
    stored = 2 if has_kernels and experiment.plan.resolve().precision == "bf16" else 4
    return Size(n_all, n_stacked, _n_activations(networks, experiment, form), stored)


def _free_memory(device: str) -> int:
    if device.startswith("cuda"):
        return torch.cuda.mem_get_info(torch.device(device))[0]
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not every system says
        return 1 << 31


def _n_parameters(networks: Iterable[nn.Module]) -> int:
    return sum(parameter.numel() for network in networks for parameter in network.parameters())


def _n_activations(networks: Mapping[str, nn.Module], experiment: Experiment, form: Form) -> int:
    """Values that pass between layers in a step: of the model, or of all networks where they are mapped."""
    sizes: list[int] = []
    chosen = networks.values() if is_mapped(experiment.objective) else [networks[MODEL]]
    hooks = [
        module.register_forward_hook(lambda _module, _inputs, out: sizes.append(_n_values(out)))
        for network in chosen
        for module in network.modules()
        if not list(module.children())
    ]
    # two examples: some losses compare them
    rehearse_anywhere(replace(experiment, batch_size=2), networks, form)
    for hook in hooks:
        hook.remove()
    return experiment.batch_size * sum(sizes) // 2


def _n_values(out: Any) -> int:
    return out.numel() if isinstance(out, torch.Tensor) else 0


def least_group(experiment: Experiment) -> int:
    """The smallest group that gives the bits of any larger one."""
    return LEAST_ON_GPU if experiment.plan.device.startswith("cuda") else 2


def arranged(experiments: Sequence[Experiment], data: Data, say: Callable[[str], None]) -> tuple[Members, Backend]:
    """The members in their stack, with as few doubles as give everyone's bits, and the fastest backend for them."""
    members = arrange(experiments, least=least_group(experiments[0]))
    if not experiments[0].plan.device.startswith("cuda"):
        return members, choose_backend(members, data, say)
    without = arrange(experiments, least=1, totals=True)
    backend = choose_backend(without, data, say)
    return (without if backend.name == "kernels" else members), backend


def choose_backend(members: Members, data: Data, say: Callable[[str], None]) -> Backend:
    """The fastest backend that works here; a slower choice is said and explained in one line."""
    template = template_of(members, data.shape)
    first = members.experiments[0]
    if not first.plan.device.startswith("cuda"):
        return dense_stack(template) or portable(template)
    precision = choose_precision(first)
    if not isinstance(first.network, Conv):
        if first.plan.dense == "mapped" or _is_narrow(template):
            return portable(template)  # PyTorch's batched products
        # where nobody asked for kernels, nothing is rounded further than PyTorch would
        precision = "tf32" if first.plan.dense == "auto" and precision == "bf16" else precision
    try:
        backend = _kernels(template, precision)
        _try(backend, first, len(members.experiments), members.latents, data)
        _say_without_copies(say)
        return backend
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # a Triton that is missing, too old, or fails to compile must never stop a training
        _say_without(say, error)
        return portable(template)


def _kernels(template: Autoencoder, precision: str) -> Any:
    """The kernels for a network; ValueError where there are none."""
    if not isinstance(template.architecture.network, Conv):
        from unweave.models.kernels.dense_stack import dense_kernels

        return dense_kernels(template, precision)
    from unweave.models.kernels.conv_stack import conv_stack

    return conv_stack(template, precision)


def _is_narrow(template: Autoencoder) -> bool:
    """Whether layers are so small that launches are all they cost: such models have whole steps of their own."""
    return max(size for parameter in template.parameters() for size in parameter.shape or (1,)) <= NARROW


def use_kernels(networks: nn.Module, experiment: Experiment, say: Callable[[str], None]) -> None:
    """Let networks that are mapped over the models make their convolutions by kernels, where these run."""
    if not experiment.plan.device.startswith("cuda"):
        return
    precision = choose_precision(experiment)
    try:
        from unweave.models.kernels.convolutions import PRECISIONS
        from unweave.models.kernels.copies import try_copies
        from unweave.models.kernels.mapped_layers import map_convolutions, try_kernels

        # between mapped layers numbers are fp32
        product = PRECISIONS["fp32" if precision == "fp32" else "tf32"].product
        try_kernels(product, experiment.plan.device)
        if precision == "bf16":
            try_copies(torch.device(experiment.plan.device))
        map_convolutions(networks, product, precision, decoders=not experiment.objective.exact_decoders)
        _say_without_copies(say)
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # a Triton that is missing, too old, or fails to compile must never stop a training
        _say_without(say, error)


def _say_without(say: Callable[[str], None], error: Exception, what: str = "GPU kernels") -> None:
    reason = (str(error).splitlines() or [""])[0]
    say(f"training without {what} ({type(error).__name__}: {reason})")


def _say_without_copies(say: Callable[[str], None]) -> None:
    """Where a card has a copy engine that this Triton does not reach, other kernels do the same, more slowly."""
    from unweave.models.kernels.copies import failure

    error = failure()
    if error is not None:
        _say_without(say, error, "the card's copy engine")


def choose_precision(experiment: Experiment) -> str:
    """How products are made on a GPU, set for PyTorch's own."""
    precision = experiment.plan.resolve().precision
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    return precision


def _try(backend: Any, experiment: Experiment, n_models: int, latents: int, data: Data) -> None:
    """One step on nothing: kernels are compiled here, where a failure can still be answered.

    Of as many models as there are: how some kernels are divided depends on it, and none is loaded that no step uses.
    """
    from unweave.models.kernels.posterior import try_sums

    size = (n_models, experiment.batch_size)
    with torch.device(experiment.plan.device):
        parameters = torch.zeros(n_models, backend.layout.size)
        as_stored = backend.reads_stored and data.comes_as_stored
        places = torch.zeros(size, dtype=torch.int64)
        if as_stored:
            chosen = Chosen(data.store, places)
            examples = chosen if backend.gathers else chosen.gathered()
        else:
            examples = torch.zeros(*size, *data.shape)
        noise = torch.zeros(*size, latents + backend.template.architecture.posterior.n_told)
        weights = backend.weights(parameters)
        early = _early(experiment.optimiser, backend.layout, parameters, weights)
        backend.gradients(
            parameters, weights, examples, noise, lambda codes, losses: losses.sum() + codes.kl.sum(), early
        )
        try_sums(noise)
    torch.cuda.synchronize()
    backend.rows.clear()


def _early(optimiser: Optimiser, layout: Layout, parameters: Tensor, weights: Tensor) -> Early:
    """An update of models of which none goes on: kernels that update are compiled and launched, and write nothing."""
    n_models = len(parameters)
    rounded = None if weights is parameters else weights[:1].expand(n_models, -1)
    state = optimiser.start_stack(parameters[:1], layout)

    def inside() -> Any:
        return optimiser.inside(
            parameters[:1].expand(n_models, -1),
            {name: part.expand(n_models, -1) for name, part in state.items()},
            torch.zeros(n_models),
            optimiser.prepared(torch.ones((), dtype=torch.int64)),
            torch.zeros(n_models, dtype=torch.bool),
            rounded,
        )

    return Early(lambda gradients, begin: None, inside)
