"""How a variant divides its work."""

from dataclasses import dataclass

from unweave.models.kernels.convolutions import Tiles


@dataclass(frozen=True)
class Way(Tiles):
    """Tiles, and the most registers that a thread may have (0: as many as the compiler likes)."""

    registers: int = 0

    @property
    def options(self) -> dict[str, int]:
        """What a launch takes besides its arguments."""
        most = {"maxnreg": self.registers} if self.registers else {}
        return {"num_warps": self.warps, "num_stages": self.stages} | most
