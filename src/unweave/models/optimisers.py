"""Optimisers over named tensors: the state is plain tensors, so that it can be stacked, saved and compared."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch.optim.adagrad import adagrad
from torch.optim.adam import adam

from unweave.shapes import Scalar, Tensor

Tensors = dict[str, Tensor]


class Optimiser(ABC):
    """Update rules written in place over ``{"name": tensor}``."""

    name: ClassVar[str]

    @abstractmethod
    def start(self, parameters: Mapping[str, Tensor]) -> Tensors:
        """The state before the first update."""

    @abstractmethod
    def update(self, parameters: Mapping[str, Tensor], gradients: list[Tensor], state: Tensors) -> None:
        """One update of parameters and state; gradients come in the order of the parameters."""


@dataclass(frozen=True)
class Adam(Optimiser):
    """Adam (Kingma & Ba, 2015) with the studies' settings."""

    name: ClassVar[str] = "adam"
    learning_rate: Scalar = 1e-4
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

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
            lr=self.learning_rate,  # type: ignore[arg-type]
            weight_decay=0.0,
            eps=self.epsilon,
            maximize=False,
        )


@dataclass(frozen=True)
class AdaGrad(Optimiser):
    """AdaGrad (Duchi et al., 2011), used by the PCA experiments."""

    name: ClassVar[str] = "adagrad"
    learning_rate: Scalar = 1e-2
    epsilon: float = 1e-10

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


OPTIMISERS: dict[str, type[Optimiser]] = {"adam": Adam, "adagrad": AdaGrad}


def _counts(parameters: Mapping[str, Tensor]) -> Tensors:
    return {f"count.{name}": torch.zeros((), device=p.device) for name, p in parameters.items()}
