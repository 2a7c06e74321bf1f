"""unweave explore: see and steer latent spaces in the browser."""

import importlib
from collections.abc import Sequence
from pathlib import Path

from unweave.cli.console import say
from unweave.cli.options import command, parse, whole

EXAMPLES = """examples:
  unweave explore                        the runs in runs/
  unweave explore runs/demo              one run, and the others beside it
  unweave explore /data/runs --port 9000 --no-browser
  unweave explore --host 0.0.0.0         for other machines too: the printed address holds a token"""


def run(argv: Sequence[str]) -> None:
    """Serve a store, or the store around a run, until Ctrl-C."""
    parser = command(
        "unweave explore",
        "Open a page on this machine with every run and study: sliders for latents, traversals,"
        " histograms, diagnosis, metrics, comparisons.",
        examples=EXAMPLES,
    )
    parser.add_argument("place", metavar="STORE|RUN", nargs="?", default="runs", help="a folder of runs, or one (runs)")
    parser.add_argument(
        "--port", type=whole(0, 65_535), default=8750, metavar="N", help="where to listen; 0 takes any free (8750)"
    )
    parser.add_argument("--host", default="127.0.0.1", help="another address than this machine's own, with a token")
    parser.add_argument("--name", action="append", default=[], help="a further name this server is reached by")
    parser.add_argument("--no-browser", action="store_true", help="only print the address")
    given = parse(parser, argv)
    store, path = find_store(given.place)
    try:
        importlib.import_module("uvicorn")
        from unweave.web.serve import serve
    except ImportError as error:
        raise ImportError("the explorer needs FastAPI and uvicorn; run: pip install 'unweave[web]'") from error
    names = tuple(name.lower() for name in given.name)
    serve(store, host=given.host, port=given.port, path=path, names=names, open_browser=not given.no_browser, say=say)


def find_store(place: str) -> tuple[Path, str]:
    """The store and the address to open: of a run's folder, the folder around it and the run's own view."""
    folder = Path(place)
    if not folder.is_dir():
        raise ValueError(f"{place} is no folder; train something first (unweave demo), or give a folder of runs")
    folder = folder.resolve()
    if (folder / "config.json").exists():
        return folder.parent, f"/run/{folder.name}"
    return folder, "/"
