"""Trained models to begin with: runs with their cards and one list of them, in the package, on a disk or on a server.

A zoo is ``zoo.json`` and one run folder a model. The list says of every file how long it is and its sha256, so that
what comes from elsewhere is whole or refused; opening a model runs no code but this package's.
"""

import difflib
import hashlib
import html
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from unweave.data.columns import shortened
from unweave.data.download import OpenAddress, download, open_https_or_here
from unweave.data.files import data_folder
from unweave.data.world import called
from unweave.files import digest, make_folder, parse_json, things_in, write_folder, write_text
from unweave.frames import pandas_frame
from unweave.recipes.opened import Run
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.runs.names import check_name, read_plain
from unweave.runs.row import reading_scores
from unweave.runs.state import state_of
from unweave.runs.sums import SUMS
from unweave.training.checkpoint import bits_of, in_bits
from unweave.training.experiment import is_experiment
from unweave.training.export import card
from unweave.training.hub import fetch, send

if TYPE_CHECKING:
    import pandas
    import polars

LIST, FORMAT, LONGEST = "zoo.json", 1, 1 << 24
OWN = Path(__file__).parents[1] / "zoo"
"""The models that come with the package."""
CARRIED = ("config.json", "model.safetensors", "history.parquet", "history.csv")
LONG = 100
"""Numbers of a list that a metric kept for its own figure, and that a zoo leaves out."""
SHOWN = ("mig", "dci.disentanglement", "mcc", "factor_vae_score")


@dataclass(frozen=True)
class ZooModel:
    """One line of the list. ``files``: the bytes and sha256 of each."""

    name: str
    world: str
    objective: str
    latents: int
    steps: int
    seed: int
    scores: Mapping[str, float]
    files: Mapping[str, tuple[int, str]]

    @property
    def n_bytes(self) -> int:
        return sum(size for size, _ in self.files.values())


class Zoo(Sequence[ZooModel]):
    """Trained models by name. ``zoo.load(name)`` opens one, fetching it first where it is on a server."""

    def __init__(self, place: str, models: Sequence[ZooModel], open_address: OpenAddress = open_https_or_here) -> None:
        self.place, self.models, self.open_address = place, tuple(models), open_address

    def __len__(self) -> int:
        return len(self.models)

    @overload
    def __getitem__(self, which: int | str) -> ZooModel: ...

    @overload
    def __getitem__(self, which: slice) -> Sequence[ZooModel]: ...

    def __getitem__(self, which: int | str | slice) -> ZooModel | Sequence[ZooModel]:
        return self.find(which) if isinstance(which, str) else self.models[which]

    def __iter__(self) -> Iterator[ZooModel]:
        return iter(self.models)

    def __repr__(self) -> str:
        lines = [f"{one.name}: {one.objective} on {one.world}, {one.latents} latents{_told(one)}" for one in self]
        return "\n".join([f"Zoo at {self.place}, {len(self)} models", *lines])

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(one.name)}</td><td>{html.escape(one.objective)}</td><td>{html.escape(one.world)}</td>"
            f"<td>{one.latents}</td><td>{html.escape(_told(one).removeprefix(', '))}</td></tr>"
            for one in self
        )
        head = "<tr><th>name</th><th>objective</th><th>world</th><th>latents</th><th>scores of mean codes</th></tr>"
        return f"<table>{head}{rows}</table>"

    def to_pandas(self) -> "pandas.DataFrame":
        """One row a model by its name, scores as columns; pandas must be installed."""
        return pandas_frame(self._rows(), "name")

    def to_polars(self) -> "polars.DataFrame":
        """One row a model, scores as columns."""
        import polars

        return polars.DataFrame(self._rows(), infer_schema_length=None)

    def _rows(self) -> list[dict[str, Any]]:
        left_out = ("scores", "files")
        return [
            {name: value for name, value in asdict(one).items() if name not in left_out} | dict(one.scores)
            for one in self
        ]

    def find(self, name: str) -> ZooModel:
        for one in self:
            if one.name == name:
                return one
        names = [one.name for one in self]
        near = difflib.get_close_matches(name, names, n=3)
        held = f"did you mean {' or '.join(near)}?" if near else f"it has {shortened(names) or 'nothing'}"
        raise KeyError(f"there is no {name!r} in the zoo at {self.place}; {held}")

    def load(self, name: str) -> Run:
        """The run of a model; every file is checked before it is used."""
        return Run(self.folder(name))

    def folder(self, name: str) -> Path:
        """Where a model lies on this machine; it is fetched first where it does not."""
        model = self.find(name)
        if not _is_remote(self.place):
            return Path(self.place) / model.name
        known = hashlib.sha256(json.dumps(asdict(model), sort_keys=True).encode()).hexdigest()[:12]
        target = data_folder() / "zoo" / f"{model.name}-{known}"
        if not target.is_dir():
            self._fetch(model, target)
        return target

    def _fetch(self, model: ZooModel, target: Path) -> None:
        """All files, checked, beside the place and then into it at once."""
        make_folder(target.parent)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".coming-") as coming:
            place = Path(coming) / model.name
            for name, (size, sha256) in model.files.items():
                path = place / name
                path.parent.mkdir(parents=True, exist_ok=True)
                download(f"{self.place.rstrip('/')}/{model.name}/{name}", path, size, open_address=self.open_address)
                if digest(path) != sha256:
                    raise ValueError(f"{name} of {model.name} is not the file that {LIST} lists: its sha256 differs")
            os.replace(place, target)


def zoo(place: str | Path | None = None, open_address: OpenAddress = open_https_or_here) -> Zoo:
    """The models at a place: a folder or an https address; else ``$UNWEAVE_ZOO``, else those of the package.

    >>> import unweave as uw
    >>> [one.name for one in uw.zoo()][:2]
    ['demo-0', 'demo-1']
    >>> run = uw.load("zoo:demo-0")
    >>> run.experiment.latents
    6
    """
    where = str(place or os.environ.get("UNWEAVE_ZOO") or OWN)
    if _is_remote(where):
        content = _fetched_list(where, open_address)
    elif not (Path(where) / LIST).is_file():
        raise FileNotFoundError(f"{where} is no zoo: it has no {LIST}. Make one with: unweave zoo build {where} RUN…")
    else:
        content = read_plain(Path(where), LIST, most=LONGEST)
    return Zoo(where, _models(content, Path(where) / LIST), open_address)


@dataclass(frozen=True)
class Filter:
    """Which runs of a store are meant: by method, world and seed; what is empty allows all."""

    methods: Collection[str] = ()
    worlds: Collection[str] = ()
    seeds: Collection[int] = ()

    def allows(self, run: Run) -> bool:
        one = run.experiment
        asked = ((self.methods, one.objective.name), (self.worlds, called(one.world)), (self.seeds, one.seed))
        return all(not allowed or value in allowed for allowed, value in asked)


@dataclass(frozen=True)
class Put:
    """How models are put into a zoo: the ``bits`` of a weight (None: as they are), and how scores are measured.

    The scores of a card are those of the weights beside it. With ``measure``, options of :func:`unweave.evaluate`, a
    model without scores, or with rounded weights, is measured; without, it is refused.
    """

    bits: Literal[8, 16, 32] | None = None
    measure: Mapping[str, Any] | None = None


def runs_in(places: Sequence[Path | str], wanted: Filter = Filter()) -> dict[str, Run]:
    """Runs by the name that a zoo gives them: those at these places, and the finished ones of stores among these.

    A run that is given by its folder has the folder's name; one of a store is called after its world, method and seed
    where that says which it is.
    """
    found: dict[str, Run] = {}
    for place in places:
        is_run = (Path(place) / "config.json").exists() or not Path(place).is_dir()
        opened = [Run(place)] if is_run else _finished(Path(place))
        chosen = [run for run in opened if wanted.allows(run)]
        names = [run.path.name if is_run else _name(run) for run in chosen]
        for run, name in zip(chosen, names):
            told = name if names.count(name) == 1 else run.path.name
            if told in found:
                raise ValueError(f"two runs are called {told}: a zoo knows models by the names of their folders")
            found[told] = run
    if not found:
        raise ValueError(f"no finished run in {', '.join(map(str, places))} is one of those that were asked for")
    return found


def _finished(store: Path) -> list[Run]:
    folders = sorted(folder for folder in store.iterdir() if (folder / "config.json").exists())
    done = [Run(folder) for folder in folders if state_of(RunFolder(folder)).word == "done"]
    return sorted(
        done, key=lambda run: (called(run.experiment.world), run.experiment.objective.name, run.experiment.seed)
    )


def _name(run: Run) -> str:
    one = run.experiment
    name = f"{called(one.world)}-{one.objective.name}-{one.seed}"
    return name if re.fullmatch(r"[\w.-]+", name) else run.path.name


def build_zoo(
    runs: Sequence[Path | str] | Mapping[str, Run],
    target: Path | str,
    way: Put = Put(),
    watch: Callable[[str, int, int], None] = lambda name, place, total: None,
) -> Zoo:
    """Write a zoo of finished runs, or add them to one, ready to be put on any server; ``watch`` is told of each."""
    target = Path(target)
    if things_in(target) and not (target / LIST).exists():
        raise ValueError(f"{target} is not empty and is no zoo; choose another folder")
    named = runs if isinstance(runs, Mapping) else runs_in(runs)
    models = {one.name: one for one in zoo(target)} if (target / LIST).exists() else {}
    _write_list(target, models)  # a zoo from the beginning: one that is stopped goes on
    for place, (name, run) in enumerate(named.items(), 1):
        watch(name, place, len(named))
        models[name] = put(run, target / name, way)
        _write_list(target, models)
    return zoo(target)


def _write_list(target: Path, models: Mapping[str, ZooModel]) -> None:
    listed = {"format": FORMAT, "models": [asdict(model) for model in models.values()]}
    write_text(target / LIST, json.dumps(listed, indent=1) + "\n")


def put(run: Run, target: Path, way: Put = Put()) -> ZooModel:
    """A run's files without those of its training, and its card with its scores."""
    assert run.model is not None  # a run without finished weights says so here
    carried = {name: run.files.read(name) for name in CARRIED if run.files.has(name)}
    before = carried["model.safetensors"]
    carried["model.safetensors"] = weights = before if way.bits is None else in_bits(before, way.bits, run.path)
    scores = _known_scores(run, target, before, weights)
    if scores is None and way.measure is None:
        rounded = " of its rounded weights" if run.files.has("scores.json") else ""
        again = "add --measure" if rounded else f"measure it first with: unweave evaluate {run.path}, or add --measure"
        raise ValueError(f"{run.path} has no scores{rounded}; {again}")

    def fill(aside: Path) -> Any:
        folder = RunFolder(aside)
        folder.write_all(carried)
        measured = Run(aside).evaluate(**(way.measure or {})).to_plain() if scores is None else scores
        folder.write_json("scores.json", _without_long_lists(measured))
        folder.write("README.md", card(Run(aside)) + _rounded(weights))
        return measured

    measured, folder = write_folder(target, fill), RunFolder(target)
    places = {name: target / name for name in sorted((*folder.names(), "SHA256SUMS"))}
    sizes = {name: (place.stat().st_size, digest(place)) for name, place in places.items()}
    experiment = run.experiment
    return ZooModel(
        target.name,
        called(experiment.world),
        experiment.objective.name,
        experiment.latents,
        experiment.steps,
        experiment.seed,
        shown_scores(measured),
        sizes,
    )


def _rounded(weights: bytes) -> str:
    """The last line of a card, of a model whose weights have less than 32 bits."""
    bits = min(bits_of(weights, Path("model.safetensors")), default=32)
    return f"\nWeights are rounded to {bits} bits; the scores are those of the rounded weights.\n" if bits < 32 else ""


def _known_scores(run: Run, target: Path, before: bytes, weights: bytes) -> Any:
    """The scores of these very weights: the run's own, or those of the same model in the zoo already."""
    if weights == before and run.files.has("scores.json"):
        card(run)  # a file that holds no scores is refused here, before anything is written
        found = run.files.read_json("scores.json")
        with reading_scores(run.files):
            shown_scores(found)
        return found
    there = RunFolder(target)
    same = there.has("scores.json") and there.has("model.safetensors") and there.read("model.safetensors") == weights
    return there.read_json("scores.json") if same else None


def _without_long_lists(kept: Any) -> Any:
    if isinstance(kept, dict):
        short = {name: one for name, one in kept.items() if not isinstance(one, list) or len(one) <= LONG}
        return {name: _without_long_lists(one) for name, one in short.items()}
    return kept


def shown_scores(kept: Mapping[str, Any]) -> dict[str, float]:
    """What a list and a card show of the scores of mean codes, by name."""
    values = kept["mean"]["scores"]
    return {name: round(one["value"], 4) for name, one in values.items() if isinstance(one["value"], int | float)}


def push(run: Run, name: str) -> str:
    """Put a run and its card on the Hugging Face hub as ``owner/model``; its address is returned."""
    with tempfile.TemporaryDirectory() as folder:
        put(run, Path(folder) / "model")
        return send(Path(folder) / "model", name)


def pull(name: str, target: Path | str, place: str | None = None) -> Run:
    """Bring a model of a zoo, or of the Hugging Face hub (``owner/model``), into a folder, and open it."""
    if things_in(Path(target)):
        raise ValueError(f"{target} is not empty; choose another folder")
    if "/" in name:
        write_folder(Path(target), lambda aside: _fetch_run(name, aside))
    else:
        put(zoo(place).load(name), Path(target))
    return Run(target)


def _fetch_run(name: str, aside: Path) -> None:
    """A run from the hub, every file of it checked; nothing else is left in its folder."""
    fetch(name, [*CARRIED, "scores.json", "README.md", "SHA256SUMS"], aside)
    shutil.rmtree(aside / ".cache", ignore_errors=True)  # what the library notes for itself
    folder = RunFolder(aside)
    if not (folder.has("config.json") and folder.has("model.safetensors") and is_experiment(_config(name, folder))):
        raise ValueError(f"{name} on the hub is no run of unweave; open its model with: uw.from_pretrained({name!r})")
    for one in things_in(aside):
        _check_whole(name, folder, one)


def _config(name: str, folder: RunFolder) -> Any:
    _check_whole(name, folder, "config.json")
    return folder.read_json("config.json")


def _check_whole(name: str, folder: RunFolder, one: str) -> None:
    if one != SUMS and folder.sums().get(one) != digest(folder.path / one):
        raise DamagedFile(
            f"{one} of {name} came damaged from the hub: its checksum is not the one in {SUMS}; try again"
        )


def _models(content: bytes, place: Path) -> list[ZooModel]:
    plain = parse_json(content, place)
    if not isinstance(plain, dict) or plain.get("format") != FORMAT or not isinstance(plain.get("models"), list):
        raise ValueError(f"{place} is no list of a zoo that this version of unweave reads (format {FORMAT})")
    return [_model(one, place) for one in plain["models"]]


def _model(plain: Any, place: Path) -> ZooModel:
    try:
        files = {check_name(name): (int(size), str(sha256)) for name, (size, sha256) in plain["files"].items()}
        scores = {str(name): float(value) for name, value in plain["scores"].items()}
        words = {name: str(plain[name]) for name in ("world", "objective")}
        numbers = {name: int(plain[name]) for name in ("latents", "steps", "seed")}
        name = check_name(plain["name"])
        if "/" in name or any(size < 0 for size, _ in files.values()):
            raise ValueError(f"{name} is no plain name")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{place} has a line that is none of a zoo: {error}") from error
    return ZooModel(name=name, scores=scores, files=files, **words, **numbers)  # type: ignore[arg-type]


def _fetched_list(place: str, open_address: OpenAddress) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / LIST
        download(f"{place.rstrip('/')}/{LIST}", path, open_address=open_address)
        return path.read_bytes()


def _is_remote(place: str) -> bool:
    return "://" in place


def _told(one: ZooModel) -> str:
    return "".join(f", {name} {one.scores[name]:.2f}" for name in SHOWN if name in one.scores)
