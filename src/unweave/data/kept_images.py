"""What is kept of a folder of images: the pictures as they were read, and what was known of them.

So a run still opens when its folder has grown, changed or gone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from unweave.data.files import keep_arrays, kept_arrays, open_cached

Known = Mapping[str, np.ndarray]
"""Names and values of labels, pairs and segments, where there are any."""


@dataclass(frozen=True)
class KeptImages:
    """Pictures in one file, which all ways to read labels share, and what one of these ways gave in another."""

    pictures: Path
    known: Path

    def keep(self, known: Known) -> None:
        """Write down what is known of the pictures, which are there already."""
        keep_arrays(self.known, known)

    def read(self) -> tuple[np.ndarray, Known] | None:
        """Both, checked; None where they were not kept."""
        if not self.pictures.exists() or not self.known.exists():
            return None
        return open_cached(self.pictures), kept_arrays(self.known)
