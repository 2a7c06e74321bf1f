"""Examples that are named and not gathered yet."""

from dataclasses import dataclass

from unweave.shapes import Int, Shaped, Tensor


@dataclass(frozen=True)
class Chosen:
    """Examples by their places in a store: what reads them first may gather them on the way."""

    store: Shaped[Tensor, "sample ..."]
    places: Int[Tensor, "*step model batch"]

    def gathered(self) -> Shaped[Tensor, "..."]:
        """The examples themselves."""
        return self.store[self.places]
