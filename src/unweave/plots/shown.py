"""A figure that shows itself in a notebook, whether or not pyplot was ever imported."""

from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCREEN = 96
"""Pixels an inch in a notebook; the picture itself has more, for sharp screens."""


@cache
def shown_figure() -> "type[Figure]":
    """matplotlib's figure on an Agg canvas of its own; the library is imported here."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def __init__(self, *given: Any, **options: Any) -> None:
            super().__init__(*given, **options)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
            return as_png(self)

    return ShownFigure


def as_png(figure: "Figure") -> tuple[bytes, dict[str, int]]:
    """The picture, and how large it is to be shown."""
    with BytesIO() as file:
        figure.savefig(file, format="png")
        width, height = (round(inches * SCREEN) for inches in figure.get_size_inches())
        return file.getvalue(), {"width": width, "height": height}
