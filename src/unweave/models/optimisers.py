"""Optimisers over named tensors: the state is plain tensors, so that it can be stacked, saved and compared."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch.optim.adagrad import adagrad
from torch.optim.adam import adam

from unweave.config import number
from unweave.models.kernels.layout import Layout
from unweave.shapes import Bool, Float, Scalar, Shaped, Tensor

Tensors = dict[str, Tensor]


class Optimiser(ABC):
    """Update rules written in place over ``{"name": tensor}``."""

    name: ClassVar[str]
    by_columns: ClassVar[bool] = False
    """Whether a stack may be updated some columns at a time."""
    learning_rate: Scalar

    @abstractmethod
    def start(self, parameters: Mapping[str, Tensor]) -> Tensors:
        """The state before the first update."""

    @abstractmethod
    def update(self, parameters: Mapping[str, Tensor], gradients: list[Tensor], state: Tensors) -> None:
        """One update of parameters and state; gradients come in the order of the parameters."""

    def kept(self, parameters: Mapping[str, Tensor], state: Tensors) -> Mapping[str, Tensor]:
        """What stays of a trained network: the parameters, unless the state holds something better."""
        return parameters

    def kept_stack(self, parameters: Float[Tensor, "model size"], state: Tensors) -> Float[Tensor, "model size"]:
        """The same for a whole fleet."""
        return parameters

    def start_stack(self, parameters: Float[Tensor, "model size"], layout: Layout | None = None) -> Tensors:
        """The state of a whole fleet before its first update; the layout tells which parameter lies where."""
        raise ValueError(f"the optimiser {self.name} has no stacked form, so it cannot train a fleet")

    def prepared(self, count: Shaped[Tensor, ""]) -> tuple[Tensor, ...]:
        """What a stack's update computes from its number alone; it may be handed over, made in advance."""
        return ()

    def inside(
        self, parameters: Float[Tensor, "model size"], state: Tensors, rates: Float[Tensor, " model"],
        prepared: tuple[Tensor, ...], good: Bool[Tensor, " model"], rounded: Shaped[Tensor, "model size"] | None,
    ) -> Any:  # fmt: skip
        """The same update as kernels make it that make the gradients too; None where they cannot."""
        return None

    def update_stack(self, parameters: Float[Tensor, "model size"], state: Tensors, given: "StackedUpdate") -> None:
        """One update of every good model of a fleet, in place; the others keep every bit."""
        raise ValueError(f"the optimiser {self.name} has no stacked form, so it cannot train a fleet")


@dataclass(frozen=True)
class StackedUpdate:
    """What an update of a fleet is given. ``count`` is the number of this update, from 1.

    ``rounded`` is a copy of the parameters in another precision, to be renewed; ``prepared`` what the optimiser made
    of ``count`` already. ``fused`` asks AdaGrad too for one pass by a kernel, with other last bits; Adam always does.
    """

    gradients: Float[Tensor, "model size"]
    learning_rate: Float[Tensor, " model"]
    count: Shaped[Tensor, ""]
    good: Bool[Tensor, " model"]
    rounded: Shaped[Tensor, "model size"] | None = None
    prepared: tuple[Tensor, ...] = ()
    fused: bool = False


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam (Kingma & Ba, 2015) with the studies' settings."""

    name: ClassVar[str] = "adam"
    by_columns: ClassVar[bool] = True
    learning_rate: Scalar = number(1e-4, above=0, help="size of a step")
    beta1: float = number(0.9, least=0, below=1, help="memory of the gradients")
    beta2: float = number(0.999, least=0, below=1, help="memory of their squares")
    epsilon: float = number(1e-8, above=0, help="added to the divisor")

    def start(self, parameters: Mapping[str, Tensor]) -> Tensors:
        zeros = {
            f"{part}.{name}": torch.zeros_like(p) for part in ("first", "second") for name, p in parameters.items()
        }
        return zeros | _counts(parameters)

    def update(self, parameters: Mapping[str, Tensor], gradients: list[Tensor], state: Tensors) -> None:
        adam(
            list(parameters.values()),
            gradients,
            [state[f"first.{name}"] for name in parameters],
            [state[f"second.{name}"] for name in parameters],
            [],
            [state[f"count.{name}"] for name in parameters],
            fused=True,
            amsgrad=False,
            beta1=self.beta1,
            beta2=self.beta2,
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=self.epsilon,
            maximize=False,
        )

    def start_stack(self, parameters: Float[Tensor, "model size"], layout: Layout | None = None) -> Tensors:
        return {"first": torch.zeros_like(parameters), "second": torch.zeros_like(parameters)}

    def prepared(self, count: Shaped[Tensor, ""]) -> tuple[Tensor, ...]:
        # 1 − β₁ᵗ and √(1 − β₂ᵗ)
        exact = count.to(torch.float64)
        return (1.0 - self.beta1**exact).to(torch.float32), (1.0 - self.beta2**exact).sqrt().to(torch.float32)

    def inside(
        self, parameters: Float[Tensor, "model size"], state: Tensors, rates: Float[Tensor, " model"],
        prepared: tuple[Tensor, ...], good: Bool[Tensor, " model"], rounded: Shaped[Tensor, "model size"] | None,
    ) -> Any:  # fmt: skip
        from unweave.models.kernels.dense import AdamStack

        if not self.by_columns:
            return None
        correction, root = prepared
        moments = (parameters, state["first"], state["second"], rounded)
        return AdamStack(*moments, rates / correction, root, good, self.beta1, self.beta2, self.epsilon)

    def update_stack(self, parameters: Float[Tensor, "model size"], state: Tensors, given: StackedUpdate) -> None:
        gradients = given.gradients
        correction1, correction2 = given.prepared or self.prepared(given.count)
        if parameters.device.type == "cuda" and (fused := _fused("adam_stack")):
            stack = (parameters, gradients, state["first"], state["second"], given.rounded, given.learning_rate)
            fused(*stack, correction1, correction2, given.good, self.beta1, self.beta2, self.epsilon)
            return
        # where everyone is well, in place: half of the passes over memory
        old1, old2 = (state[name] if _all_good(given) else state[name].clone() for name in ("first", "second"))
        # m ← β₁ m + (1 − β₁) g,  v ← β₂ v + (1 − β₂) g².  No fused multiply-add: its bits depend on the place.
        first = old1.mul_(self.beta1).add_(gradients * (1.0 - self.beta1))
        second = old2.mul_(self.beta2).add_((gradients * gradients).mul_(1.0 - self.beta2))
        # θ ← θ − α / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε)
        divisor = second.sqrt().div_(correction2).add_(self.epsilon)
        moved = parameters - (first / divisor).mul_((given.learning_rate / correction1)[:, None])
        _keep_good(given, {parameters: moved, state["first"]: first, state["second"]: second}, parameters)


@dataclass(frozen=True)
class AdaGrad(Optimiser):
    """AdaGrad (Duchi et al., 2011), used by the PCA experiments."""

    name: ClassVar[str] = "adagrad"
    learning_rate: Scalar = number(1e-2, above=0, help="size of a step")
    epsilon: float = number(1e-10, above=0, help="added to the divisor")

    def start(self, parameters: Mapping[str, Tensor]) -> Tensors:
        return {f"sum.{name}": torch.zeros_like(p) for name, p in parameters.items()} | _counts(parameters)

    def update(self, parameters: Mapping[str, Tensor], gradients: list[Tensor], state: Tensors) -> None:
        adagrad(
            list(parameters.values()),
            gradients,
            [state[f"sum.{name}"] for name in parameters],
            [state[f"count.{name}"] for name in parameters],
            has_sparse_grad=False,
            foreach=True,
            lr=float(self.learning_rate),
            weight_decay=0.0,
            lr_decay=0.0,
            eps=self.epsilon,
            maximize=False,
        )

    def start_stack(self, parameters: Float[Tensor, "model size"], layout: Layout | None = None) -> Tensors:
        return {"sum": torch.zeros_like(parameters)}

    def inside(
        self, parameters: Float[Tensor, "model size"], state: Tensors, rates: Float[Tensor, " model"],
        prepared: tuple[Tensor, ...], good: Bool[Tensor, " model"], rounded: Shaped[Tensor, "model size"] | None,
    ) -> Any:  # fmt: skip
        from unweave.models.kernels.dense import AdaGradStack

        return AdaGradStack(parameters, state["sum"], rounded, rates.contiguous(), good, self.epsilon)

    def update_stack(self, parameters: Float[Tensor, "model size"], state: Tensors, given: StackedUpdate) -> None:
        if given.fused and (fused := _fused("adagrad_stack")):
            fused(
                parameters, given.gradients, state["sum"], given.rounded, given.learning_rate, given.good, self.epsilon
            )
            return
        # s ← s + g²,  θ ← θ − α g / (√s + ε)
        total = state["sum"] + given.gradients * given.gradients
        change = given.gradients / total.sqrt().add_(self.epsilon)
        moved = parameters - change.mul_(given.learning_rate[:, None])
        _keep_good(given, {parameters: moved, state["sum"]: total}, parameters)


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019) and clipped gradients, as QLAE's authors use it.

    Decay and clip are for weights; biases and everything else (a quantiser's values) follow plain Adam.
    """

    name: ClassVar[str] = "adamw"
    by_columns: ClassVar[bool] = False
    learning_rate: Scalar = number(1e-3, above=0, most=1e6, help="size of a step")
    weight_decay: float = number(
        0.1, least=0, most=1e6, help="share of a weight that is taken off, times the learning rate"
    )
    clip: float = number(1.0, above=0, most=1e30, help="largest size of each entry of a weight's gradient")

    def update(self, parameters: Mapping[str, Tensor], gradients: list[Tensor], state: Tensors) -> None:
        weights = [_is_weight(name) for name in parameters]
        for parameter, weight in zip(parameters.values(), weights):
            if weight:
                # θ ← θ − α λ θ, before Adam's own step
                parameter.mul_(1.0 - self.learning_rate * self.weight_decay)
        clipped = [self._clipped(gradient) if weight else gradient for gradient, weight in zip(gradients, weights)]
        super().update(parameters, clipped, state)

    def start_stack(self, parameters: Float[Tensor, "model size"], layout: Layout | None = None) -> Tensors:
        if layout is None:
            raise ValueError("AdamW treats weights and biases differently: it must be told where each lies")
        lengths = torch.tensor(layout.sizes)
        weights = torch.tensor([_is_weight(name) for name in layout.names]).repeat_interleave(lengths)
        return super().start_stack(parameters) | {"weights": weights.to(parameters.device)}

    def update_stack(self, parameters: Float[Tensor, "model size"], state: Tensors, given: "StackedUpdate") -> None:
        weights = state["weights"]
        clipped = torch.where(weights, self._clipped(given.gradients), given.gradients)
        shrunk = given.learning_rate[:, None] * (self.weight_decay * weights)
        kept = 1.0 - (shrunk if _all_good(given) else shrunk * given.good[:, None])
        parameters.mul_(kept)
        super().update_stack(parameters, state, replace(given, gradients=clipped))

    def _clipped(self, gradient: Tensor) -> Tensor:
        return gradient.clamp(-self.clip, self.clip)


@dataclass(frozen=True)
class SGD(Optimiser):
    """Gradient descent with momentum, weight decay, falling steps and a moving average, as PCL's authors use it.

    What is kept of a trained network is the average of its weights over about the last 1 / (1 − average) updates.
    """

    name: ClassVar[str] = "sgd"
    learning_rate: Scalar = number(0.1, above=0, help="size of a step")
    momentum: float = number(0.9, least=0, below=1, help="memory of the gradients")
    weight_decay: float = number(1e-5, least=0, most=1e6, help="times the weights, added to their gradients")
    factor: float = number(0.1, above=0, most=1, help="what the learning rate is multiplied with from time to time")
    every: int = number(1_000_000, least=1, most=10**12, help="updates between two such times")
    average: float = number(0.999, least=0, below=1, help="memory of the average of the weights; 0 for none")

    def start(self, parameters: Mapping[str, Tensor]) -> Tensors:
        zeros = {f"velocity.{name}": torch.zeros_like(p) for name, p in parameters.items()}
        means = {f"average.{name}": p.detach().clone() for name, p in parameters.items()} if self.average else {}
        return zeros | means | _counts(parameters)

    def update(self, parameters: Mapping[str, Tensor], gradients: list[Tensor], state: Tensors) -> None:
        for (name, parameter), gradient in zip(parameters.items(), gradients):
            rate = self.learning_rate * self.factor ** (state[f"count.{name}"].to(torch.float64) // self.every)
            moved, velocity = self._moved(parameter, gradient, state[f"velocity.{name}"], rate.to(torch.float32))
            parameter.copy_(moved)
            state[f"velocity.{name}"].copy_(velocity)
            if self.average:
                state[f"average.{name}"].copy_(self._mean(state[f"average.{name}"], moved))
            state[f"count.{name}"] += 1

    def kept(self, parameters: Mapping[str, Tensor], state: Tensors) -> Mapping[str, Tensor]:
        return {name: state[f"average.{name}"] for name in parameters} if self.average else parameters

    def start_stack(self, parameters: Float[Tensor, "model size"], layout: Layout | None = None) -> Tensors:
        means = {"average": parameters.clone()} if self.average else {}
        return {"velocity": torch.zeros_like(parameters)} | means

    def update_stack(self, parameters: Float[Tensor, "model size"], state: Tensors, given: "StackedUpdate") -> None:
        falls = self.factor ** ((given.count.to(torch.float64) - 1) // self.every)
        rate = (given.learning_rate.to(torch.float64) * falls).to(torch.float32)[:, None]
        moved, velocity = self._moved(parameters, given.gradients, state["velocity"], rate)
        means = {state["average"]: self._mean(state["average"], moved)} if self.average else {}
        _keep_good(given, {parameters: moved, state["velocity"]: velocity} | means, parameters)

    def kept_stack(self, parameters: Float[Tensor, "model size"], state: Tensors) -> Float[Tensor, "model size"]:
        return state["average"] if self.average else parameters

    def _moved(self, parameter: Tensor, gradient: Tensor, velocity: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
        # v ← μ v + g + λ θ,  θ ← θ − α v
        velocity = velocity * self.momentum + (gradient + parameter * self.weight_decay)
        return parameter - velocity * rate, velocity

    def _mean(self, old: Tensor, new: Tensor) -> Tensor:
        return old * self.average + new * (1.0 - self.average)


OPTIMISERS: dict[str, type[Optimiser]] = {"adam": Adam, "adamw": AdamW, "adagrad": AdaGrad, "sgd": SGD}


@functools.cache
def _fused(name: str) -> Callable[..., None] | None:
    """The kernel that makes an update in one pass."""
    try:
        from unweave.models.kernels import adam
    except ImportError:  # no Triton here
        return None
    found: Callable[..., None] = getattr(adam, name)
    return found


def _keep_good(given: StackedUpdate, changes: dict[Tensor, Tensor], parameters: Tensor) -> None:
    everyone = _all_good(given)
    for old, new in changes.items():
        if new is not old:
            old.copy_(new if everyone else torch.where(given.good[:, None], new, old))
    if given.rounded is not None:
        given.rounded.copy_(parameters)


def _all_good(given: StackedUpdate) -> bool:
    """Asked only of a CPU: a GPU would have to be waited for."""
    return given.good.device.type == "cpu" and bool(given.good.all())


def _counts(parameters: Mapping[str, Tensor]) -> Tensors:
    return {f"count.{name}": torch.zeros((), device=p.device) for name, p in parameters.items()}


def _is_weight(name: str) -> bool:
    return name.rpartition(".")[2] == "weight"
