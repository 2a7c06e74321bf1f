"""A figure as bytes: PNG for everywhere, SVG for pages, PDF for print. Written whole or not at all."""

import io
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import matplotlib.figure

_rc = threading.Lock()


def to_png(figure: "matplotlib.figure.Figure", path: Path | str | None = None) -> bytes:
    """The figure as PNG, in its own resolution; written to ``path`` too where one is given."""
    content = io.BytesIO()
    # without the library's version in the file, equal figures are equal bytes
    figure.savefig(content, format="png", metadata={"Software": None})
    _settle(figure)
    return _written(content.getvalue(), path)


def to_svg(figure: "matplotlib.figure.Figure", path: Path | str | None = None) -> bytes:
    """The figure as SVG with text as text; written to ``path`` too where one is given."""
    import matplotlib

    content = io.BytesIO()
    # these two settings exist only as global ones: held for one save, by one thread
    with _rc, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "unweave"}):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None})
    _settle(figure)
    return _written(content.getvalue(), path)


def to_pdf(figure: "matplotlib.figure.Figure", path: Path | str | None = None) -> bytes:
    """The figure as PDF with text as text, for print; written to ``path`` too where one is given."""
    import matplotlib

    content = io.BytesIO()
    with _rc, matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(content, format="pdf", metadata={"CreationDate": None, "Producer": None, "Creator": None})
    _settle(figure)
    return _written(content.getvalue(), path)


def _settle(figure: "matplotlib.figure.Figure") -> None:
    """Keep the layout that the first drawing found: finding it again costs as much as the drawing itself."""
    figure.set_layout_engine("none")


def _written(content: bytes, path: Path | str | None) -> bytes:
    if path is not None:
        from unweave.files import write_atomically

        write_atomically(Path(path), lambda aside: aside.write_bytes(content))
    return content
