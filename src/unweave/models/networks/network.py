"""What a network is: a description that builds an encoder trunk and a decoder for examples of a given shape."""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import nn


class Network(ABC):
    """A frozen dataclass whose fields are the architecture. Trunk: example to features. Decoder: code to outputs.

    A trunk with ``joined`` further inputs (labels, say) is called with them as a second argument.
    """

    name: ClassVar[str]

    @abstractmethod
    def trunk(self, shape: tuple[int, ...], joined: int = 0) -> tuple[nn.Module, int]:
        """The encoder below its heads, and how many features it gives."""

    @abstractmethod
    def decoder(self, latents: int, shape: tuple[int, ...]) -> nn.Module:
        """From a code to one output per value of an example (logits, for a Bernoulli likelihood)."""
