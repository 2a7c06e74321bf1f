"""Which engine trains a fleet: GPU kernels where they run and fit, the portable one everywhere else."""

from collections.abc import Callable

import torch

from unweave.train.experiment import Experiment
from unweave.train.fleet import Engine, template_of
from unweave.train.fleet_members import Members
from unweave.train.fleet_portable import portable

PRECISIONS = ("bf16", "tf32", "fp32")
LEAST_ON_GPU = 16
"""Below this, PyTorch's reductions on a GPU take other routes, with other last bits; smaller groups are filled up."""


def precision_of(experiment: Experiment) -> str:
    """How products are computed on a GPU; sums and master weights are always fp32."""
    chosen = str(getattr(experiment.plan, "precision", "auto"))
    if chosen == "auto":
        return "bf16" if experiment.plan.device.startswith("cuda") else "fp32"
    if chosen not in PRECISIONS:
        raise ValueError(f"plan.precision must be auto, {', '.join(PRECISIONS)}, not {chosen!r}")
    return chosen


def least_group(experiment: Experiment) -> int:
    """The smallest group that gives the bits of any larger one."""
    return LEAST_ON_GPU if experiment.plan.device.startswith("cuda") else 2


def choose_engine(members: Members, shape: tuple[int, ...], say: Callable[[str], None]) -> Engine:
    """The fastest engine that works here; a slower choice is said and explained in one line."""
    template = template_of(members, shape)
    first = members.experiments[0]
    if not first.plan.device.startswith("cuda"):
        return portable(template)
    precision = precision_of(first)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    try:
        from unweave.models.kernels.conv_stack import conv_stack

        return conv_stack(template, precision)
    except Exception as error:  # a Triton that is missing, too old, or fails to compile must never stop a training
        say(
            f"training without GPU kernels ({type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''})"
        )
        return portable(template)
