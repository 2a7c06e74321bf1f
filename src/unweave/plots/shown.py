"""A figure that shows itself in a notebook, whether or not pyplot was ever imported."""

from io import BytesIO
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

SCREEN = 96
"""Pixels an inch in a notebook; the picture itself has more, for sharp screens."""


class ShownFigure(Figure):
    """matplotlib's figure on an Agg canvas of its own."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        FigureCanvasAgg(self)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        with BytesIO() as file:
            self.savefig(file, format="png")
            width, height = (round(inches * SCREEN) for inches in self.get_size_inches())
            return file.getvalue(), {"width": width, "height": height}
