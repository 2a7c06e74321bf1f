"""The functions that a notebook calls: train, open and look inside models in one line each.

What ``uw`` offers besides these stands in ``unweave/__init__.pyi``, with the module that each name comes from.
"""

import contextlib
import difflib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike

from unweave.config import shown
from unweave.data import WORLDS, Data, World
from unweave.data.frames import is_frame
from unweave.data.own import as_world
from unweave.data.world import called
from unweave.evaluation.diagnosis import diagnose_codes
from unweave.evaluation.findings import expected_of, findings
from unweave.evaluation.points import (
    Points,
    points_of_data,
    points_of_file,
    points_of_frame,
    points_of_run,
    points_of_world,
)
from unweave.evaluation.similarity import Similarity, compare_runs
from unweave.metrics.dimension.intrinsic import Intrinsic
from unweave.metrics.dimension.intrinsic import intrinsic as intrinsic_of
from unweave.metrics.dimension.mle import NEIGHBOURS
from unweave.metrics.estimators.arrays import as_codes
from unweave.models import Likelihood, Method, Network, Optimiser
from unweave.models.initialise import Scheme
from unweave.models.objectives.beta_vae import BetaVAE
from unweave.models.optimisers import Adam
from unweave.recipes import dimension_micro
from unweave.recipes import perturb as perturbing
from unweave.recipes.diagnose import Diagnosed, diagnose_file, diagnose_run
from unweave.recipes.dimension import Dimension, bars
from unweave.recipes.dimension import dimension as search_dimension
from unweave.recipes.dimension_search import DimensionSearch, MethodName
from unweave.recipes.opened import Run
from unweave.recipes.perturb import Attack, Made
from unweave.recipes.zoo import zoo
from unweave.runs.folder import RunFolder
from unweave.shapes import Tensor
from unweave.training import loop
from unweave.training.experiment import FOR_PICTURES, Experiment, Plan, experiment_from, experiment_to
from unweave.training.progress import progress
from unweave.training.run import Run as BareRun
from unweave.training.running import RunOptions
from unweave.trusted import plug_in_names


def world(what: Any, **options: Any) -> Data:
    """The data of a world, by its name (``uw.worlds()`` lists them), or data of one's own.

    Options are the fields of the world: ``uw.world("images", path="faces/", size=64)``, or ``uw.world("faces/",
    size=64)``. A csv, parquet, npz or npy file, an array or a data frame make a table or images as well. A world that
    is not on this machine says how to get it.

    >>> import unweave as uw
    >>> data = uw.world("micro")
    >>> len(data), data.shape
    (2048, (1, 32, 32))
    >>> [factor.name for factor in data.space.factors]
    ['x', 'y', 'size']
    """
    if isinstance(what, Data) and not options:
        return what
    described = as_world(what, options)
    return replace(described.load(), world=described)


def worlds() -> list[str]:
    """The names of all worlds, for :func:`world` and :func:`train`.

    >>> import unweave as uw
    >>> "dsprites" in uw.worlds()
    True
    """
    return [*WORLDS, *plug_in_names("world")]


class OwnData(TypedDict, total=False):
    """How one's own images or tables are read: fields of the worlds ``images`` and ``table``."""

    path: str | Path
    size: int | None
    height: int | None
    colour: Literal["auto", "grey", "rgb"]
    fit: Literal["crop", "pad", "stretch"]
    columns: str | Sequence[str]
    labels: Any
    missing: Literal["refuse", "mean", "drop"]
    key: str | None
    called: str


GIVEN_BY = {
    "beta": "objective=uw.BetaVAE(beta=4)",
    "lr": "optimiser=uw.Adam(1e-4)",
    "learning_rate": "optimiser=uw.Adam(1e-4)",
    "device": "plan=uw.Plan('cpu')",
    "batch": "batch_size=64",
    "epochs": "steps=10_000, each of them a batch",
}
"""What people ask a function that trains for, and how it is said."""


def _check_names(options: Mapping[str, Any], function: Callable[..., Any]) -> None:
    """Refuse an option of data that is a misspelt argument of the function itself, or of one of its components."""
    known = list(inspect.signature(function).parameters)
    for name in options:
        if name in GIVEN_BY:
            raise ValueError(f"unknown option {name!r}; it is given as {GIVEN_BY[name]}")
        if name not in OwnData.__annotations__ and (near := difflib.get_close_matches(name, known, 1, 0.8)):
            raise ValueError(f"unknown option {name!r}. Did you mean {near[0]}?")


def train(
    world: Any,
    folder: str | Path | None = None,
    *,
    objective: Method | str | Mapping[str, Any] = BetaVAE(),
    network: Network | str | Mapping[str, Any] = FOR_PICTURES["network"],
    likelihood: Likelihood | str | Mapping[str, Any] = FOR_PICTURES["likelihood"],
    optimiser: Optimiser | str | Mapping[str, Any] = Adam(),
    latents: int = 10,
    steps: int = 300_000,
    batch_size: int = 64,
    seed: int = 0,
    init: Scheme = "glorot",
    order: Literal["iid", "epochs"] = "iid",
    warmup: int = 0,
    holdout: float = 0.0,
    history_every: int = 50,
    snapshots: Sequence[int] = (),
    plan: Plan | Mapping[str, Any] = Plan(),
    quiet: bool = False,
    **own_data: Unpack[OwnData],
) -> Run:
    """Train one model and return its run. The same call again goes on where it stopped, or returns at once.

    The run is kept in ``folder``, or in ``runs/`` under a name made from its settings. Components are given as objects
    (``objective=uw.BetaVAE(6)``), by name (``network="mlp"``) or as in ``config.json``.

    Tables have another network and likelihood where none is given: an mlp with layers of 128 units, and a
    Gaussian of variance 0.025 (columns have variance 1).

    :param world: what to learn from: a world by name or as such, its data (:func:`world`), a folder of images, a csv,
        parquet, npz or npy file, an array or tensor of images or of rows, or a data frame; or a whole
        :class:`Experiment`, which brings all settings
    :param objective: what to minimise
    :param network: encoder and decoder
    :param likelihood: how reconstructions are scored
    :param optimiser: how weights are updated
    :param latents: size of the code
    :param steps: training steps; the default is the published study's, and takes long
    :param batch_size: examples in a step
    :param seed: decides initial weights, data order and noise
    :param init: initial weights
    :param order: draw examples independently, or go through all in turn
    :param warmup: steps over which the regulariser fades in
    :param holdout: share of the examples never trained on
    :param history_every: steps between two rows of the history
    :param snapshots: steps at which the weights are kept
    :param plan: device, threads and precision
    :param quiet: say nothing of what was found, and show no progress
    :param own_data: how one's own data are read: ``uw.train("faces/", size=64)``, ``uw.train(frame, labels="species")``

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> run.state
    'done'
    >>> run.encode(run.images(100)).mean.shape
    torch.Size([100, 3])
    """
    _check_names(own_data, train)
    told = {
        "objective": objective,
        "network": network,
        "likelihood": likelihood,
        "optimiser": optimiser,
        "latents": latents,
        "steps": steps,
        "batch_size": batch_size,
        "seed": seed,
        "init": init,
        "order": order,
        "warmup": warmup,
        "holdout": holdout,
        "history_every": history_every,
        "snapshots": tuple(snapshots),
        "plan": plan,
    }
    experiment = _asked(world, own_data, told).resolve()
    place = Path(folder or Path("runs") / experiment.id)
    data = world if isinstance(world, Data) else None
    if not quiet and not RunFolder(place).has("model.safetensors"):
        data = _told_of(experiment.world, data or experiment.world.load())
    with _watched(f"{experiment.objective.name} on {called(experiment.world)}", quiet) as how:
        return Run(loop.train(experiment, place, data=data, how=how))


def _asked(world: Any, own_data: Mapping[str, Any], told: Mapping[str, Any]) -> Experiment:
    """What :func:`train` is asked for: a whole experiment, or a world and settings."""
    if isinstance(world, Experiment):
        usual = inspect.signature(train).parameters
        changed = [*own_data, *(name for name, value in told.items() if value != usual[name].default)]
        if changed:
            raise ValueError(
                f"an experiment brings its own settings, and {', '.join(changed)} came beside it: change it with"
                " dataclasses.replace(experiment, …), or give a world and settings"
            )
        return world
    # a table has its own where the usual ones are meant
    given = {name: value for name, value in told.items() if value is not FOR_PICTURES.get(name)}
    return experiment_from({"world": as_world(world, own_data), **given})


def _told_of(world: World, data: Data) -> Data:
    """The same data, after a line that says what was found where they are one's own."""
    if line := world.told(data):
        loop.say(line)
    return data


def _opened(run: Any) -> Run:
    if isinstance(run, BareRun):
        return run if isinstance(run, Run) else Run(run.path, run.device)
    if not isinstance(run, str | Path):
        raise ValueError(f"a run is given as such or by its folder, not as {type(run).__name__}")
    return load(run)


def resume(folder: str | Path, *, data: Data | None = None, quiet: bool = False) -> Path:
    """Go on with an interrupted run, from its folder alone; of a finished run, return at once.

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> uw.load(uw.resume("runs/tiny", quiet=True)).state
    'done'
    """
    with _watched(str(folder), quiet) as how:
        return loop.resume(folder, data=data, how=how)


def load(folder: str | Path) -> Run:
    """Open a run by its folder, or a model of the zoo by ``"zoo:NAME"``. Every file is checked before it is used.

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> uw.load("runs/tiny").experiment.latents
    3
    >>> uw.load("zoo:demo-0").experiment.latents
    6
    """
    if isinstance(folder, str) and folder.startswith("zoo:"):
        return zoo().load(folder.removeprefix("zoo:"))
    return Run(folder)


def report(run: Run | str | Path) -> Path:
    """Write the page of a run and its figures into the run's folder, and return the page's path.

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> uw.report(run).name
    'report.html'
    """
    return _opened(run).report()


def traverse(run: Run | str | Path, *, latents: Sequence[int] | None = None, n: int = 9, width: float = 2.5) -> Tensor:
    """What the model shows as each latent in turn moves by ±width deviations of its prior: latent × step × example.

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> uw.traverse(run, latents=[0, 2], n=5).shape
    torch.Size([2, 5, 1, 32, 32])
    """
    return _opened(run).traverse(latents=None if latents is None else list(latents), n=n, width=width)


@overload
def diagnose(
    what: Run | str | Path,
    *,
    n: int = 2048,
    seed: int = 0,
    rule: str = "variance",
    n_factors: int | None = None,
    n_jacobians: int = 256,
    accuracy: bool = False,
) -> Diagnosed: ...


@overload
def diagnose(
    what: object,
    variance: object = None,
    *,
    sampled: object = None,
    kl: object = None,
    prior_mean: object = None,
    prior_variance: object = None,
    rule: str = "variance",
    seed: int = 0,
    n_bins: int = 20,
    n_factors: int | None = None,
) -> Diagnosed: ...


def diagnose(what: Any, variance: Any = None, *, n_factors: int | None = None, **options: Any) -> Diagnosed:
    """Which latents a model uses, and how: of a run, a run's folder, an npz of posteriors, or arrays from anywhere.

    The result has ``findings`` (what stands out, problems first, each with its advice), ``summary()``, ``diagnosis``
    with every latent, and ``page()``, which is one self-contained HTML page. ``n_factors`` says how many factors the
    data have, where the world does not know.

    A run takes ``n`` examples to encode, ``seed``, ``rule`` (how latents are told apart), ``n_jacobians`` examples to
    differentiate at, and ``accuracy=True`` to fit linear models to every combination of types. A file takes ``rule``
    and ``seed``. Arrays sample × latent take ``sampled`` codes, ``kl``, a learned prior (``prior_mean``,
    ``prior_variance``), ``rule``, ``seed`` and ``n_bins``.

    >>> import numpy as np
    >>> import unweave as uw
    >>> mean = np.random.default_rng(0).normal(size=(1500, 2)) * [1.0, 0.0]
    >>> found = uw.diagnose(mean, np.array([[0.01, 1.0]] * 1500), n_factors=2)
    >>> found.diagnosis.types
    ['active', 'passive']
    >>> [finding.name for finding in found.findings]
    ['over_pruned', 'passive']
    """
    if isinstance(what, Data | World):
        raise ValueError("diagnose looks at models: train one first, or give a run, its folder, or codes")
    if isinstance(what, BareRun):
        return diagnose_run(what, n_factors=n_factors, **options)
    if isinstance(what, str | Path):
        if _is_folder(what) or Path(what).is_dir():
            return diagnose_run(load(what), n_factors=n_factors, **options)
        return diagnose_file(what, n_factors=n_factors, **options)
    found = diagnose_codes(what, variance, **options)
    expected = expected_of(None, n_factors)
    return Diagnosed("codes", found, findings(found, expected), expected)


def compare(
    *runs: Run | str | Path,
    n: int = 1000,
    seed: int = 0,
    snapshots: bool = False,
    estimator: str = "unbiased",
    n_permutations: int = 99,
    watch: Callable[[int, int, str], None] | None = None,
) -> Similarity:
    """Layer by layer, how alike runs are: CKA, Procrustes and SVCCA on the same ``n`` examples, and matched latents.

    Runs are given as such or by their folders. Those that differ in nothing but their seed are averaged; a single run
    is compared with itself, and with its snapshots. ``n_permutations`` shuffles of the examples give the p-values.

    >>> import unweave as uw
    >>> small = {"network": uw.MLP((16,), (16,)), "latents": 3, "steps": 20, "quiet": True}
    >>> runs = [uw.train("micro", f"runs/seed-{seed}", seed=seed, **small) for seed in range(2)]
    >>> alike = uw.compare(*runs, n=50, n_permutations=3)
    >>> alike.comparisons[0].rows[:3]
    ('input', 'encoder 1', 'mean')
    >>> round(float(alike.comparisons[0].cka[0, 0]), 4)
    1.0
    """
    return compare_runs(
        [_opened(run) for run in runs],
        n=n,
        seed=seed,
        snapshots=snapshots,
        estimator=estimator,
        n_permutations=n_permutations,
        watch=watch,
    )


class ModelSettings(TypedDict, total=False):
    """The fields of :class:`Experiment` but for its world."""

    objective: Method | str | Mapping[str, Any]
    network: Network | str | Mapping[str, Any]
    likelihood: Likelihood | str | Mapping[str, Any]
    optimiser: Optimiser | str | Mapping[str, Any]
    latents: int
    steps: int
    batch_size: int
    seed: int
    init: Scheme
    order: Literal["iid", "epochs"]
    warmup: int
    holdout: float
    history_every: int
    snapshots: Sequence[int]
    plan: Plan | Mapping[str, Any]


class DimensionSettings(ModelSettings, total=False):
    """The fields of :class:`DimensionSearch`, and those of the models it trains."""

    method: MethodName
    over: str
    start: float | None
    threshold: float | None
    least: float | None
    most: float | None
    resolution: float
    epochs: int
    least_steps: int
    until_stable: bool
    examples: int
    elbow: tuple[int, ...]
    ahead: int | None


def dimension(
    world: Any,
    folder: str | Path | None = None,
    *,
    quiet: bool = False,
    **settings: Unpack[DimensionSettings],
) -> Dimension:
    """How many latents a world, or data of one's own, need, by FONDUE or one of its kin: train a few models briefly.

    Settings of the search are ``method``, ``over`` (latents, or a number of the objective such as beta), ``start``,
    ``threshold``, ``least``, ``most``, ``resolution``, ``epochs``, ``least_steps``, ``steps``, ``until_stable``,
    ``examples``, ``elbow`` and ``ahead``; all others are those of the models, as in :func:`train`. The micro-world has
    its own where nothing is said. Every model that is tried is a run of the store ``folder``, and the same call again
    goes on.

    >>> import unweave as uw
    >>> found = uw.dimension("micro", "runs/search", network=uw.MLP((16,), (16,)), steps=5, start=2.0, most=3.0,
    ...                      examples=60, quiet=True)
    >>> found.answer in (0, 1, 2, 3)
    True
    >>> [row["latents"] for row in found.rows][0]
    2
    """
    searched = {field.name for field in fields(DimensionSearch)}
    told: dict[str, Any] = {name: value for name, value in settings.items() if name in searched}
    model = {name: value for name, value in settings.items() if name not in searched}
    if isinstance(world, str) and world == "micro":
        search = replace(dimension_micro.search(), **told)
        base = experiment_to(dimension_micro.experiment())
    else:
        search, base = DimensionSearch(**told), {}
    experiment = experiment_from(base | {"world": as_world(world)} | model)
    with contextlib.nullcontext() if quiet else bars() as watch:
        how = RunOptions(() if watch is None else (watch,))
        return search_dimension(experiment, search, folder, how=how)


class PerturbSettings(ModelSettings, total=False):
    """The fields of :class:`Attack`, and those of the models it trains."""

    models: int
    by: Literal["mig", "udr"]
    ensemble: int
    epsilon: float
    perturb_steps: int | None
    perturb_rate: float
    samples: int
    control: Literal["", "same", "reversed"]


def perturb(
    world: Any = None,
    folder: str | Path | None = None,
    *,
    foster: str | Path | Run | Sequence[str | Path | Run] = (),
    diminish: str | Path | Run | Sequence[str | Path | Run] = (),
    among: Sequence[str | Path | Run] = (),
    quiet: bool = False,
    **settings: Unpack[PerturbSettings],
) -> Made:
    """A world on which VAEs stop disentangling: small changes of the images that suit entangled models.

    Trains ``models`` VAEs, one a seed, chooses the ``ensemble`` most and least disentangled ``by`` MIG or UDR, and
    trains the change of images between them, at most ``epsilon`` a pixel. Or takes your own runs, which bring their
    world: ``foster`` and ``diminish``, or those ``among`` which both sides are chosen. Other settings are those of
    :func:`train`; the micro-world has its own where nothing is said. The result has ``world`` to train on, ``run``,
    ``losses`` and ``plot()``.

    >>> import unweave as uw
    >>> small = {"network": uw.MLP((16,), (16,)), "latents": 3, "steps": 20, "quiet": True}
    >>> runs = [uw.train("micro", f"runs/seed-{seed}", seed=seed, **small) for seed in range(2)]
    >>> made = uw.perturb(folder="runs", foster=runs[:1], diminish=runs[1:], perturb_steps=6, quiet=True)
    >>> made.world.name, made.world.epsilon
    ('perturbed', 0.1)
    """
    sides = [_places(name, one) for name, one in (("foster", foster), ("diminish", diminish), ("among", among))]
    names = {field.name for field in fields(Attack)}
    told: dict[str, Any] = {name: value for name, value in settings.items() if name in names}
    model = {name: value for name, value in settings.items() if name not in told}
    given = [one for side in sides for one in side]
    perturbing.check_said(settings, given=bool(sides[0] or sides[1]), among=bool(sides[2]))
    is_micro = isinstance(world, str) and world == "micro"
    base, attack = perturbing.micro() if is_micro and not given else (None, Attack())
    if base is None and (given or world is None):
        base = perturbing.base_of(given)
    plain = {} if base is None else dict(experiment_to(base))
    experiment = experiment_from(plain | ({} if world is None else {"world": as_world(world)}) | model)
    with contextlib.nullcontext() if quiet else bars() as watch:
        how = RunOptions(() if watch is None else (watch,))
        return perturbing.perturb(
            experiment,
            replace(attack, **told),
            folder,
            foster=sides[0],
            diminish=sides[1],
            among=sides[2],
            how=how,
        )


def _places(option: str, runs: Any) -> list[str | Path]:
    """The folders of runs that an option is given, one or several."""
    given = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    if strange := [one for one in given if not isinstance(one, str | Path | BareRun)]:
        raise ValueError(f"{option} takes runs or their folders, not {shown(strange[0])}")
    return [one.path if isinstance(one, BareRun) else one for one in given]


@overload
def intrinsic(
    what: Run,
    *,
    neighbours: Sequence[int] = NEIGHBOURS,
    averaging: str = "levina_bickel",
    anchor: float = 0.9,
    n_samples: int = 10_000,
    seeds: Sequence[int] = (0,),
) -> dict[str, Intrinsic]: ...


@overload
def intrinsic(  # type: ignore[overload-overlap]
    what: str | Path,
    *,
    neighbours: Sequence[int] = NEIGHBOURS,
    averaging: str = "levina_bickel",
    anchor: float = 0.9,
    n_samples: int = 10_000,
    seeds: Sequence[int] = (0,),
) -> Intrinsic | dict[str, Intrinsic]: ...


@overload
def intrinsic(
    what: World | Tensor | ArrayLike,
    *,
    neighbours: Sequence[int] = NEIGHBOURS,
    averaging: str = "levina_bickel",
    anchor: float = 0.9,
    n_samples: int = 10_000,
    seeds: Sequence[int] = (0,),
) -> Intrinsic: ...


def intrinsic(
    what: Any,
    *,
    neighbours: Sequence[int] = NEIGHBOURS,
    averaging: str = "levina_bickel",
    anchor: float = 0.9,
    n_samples: int = 10_000,
    seeds: Sequence[int] = (0,),
) -> Intrinsic | dict[str, Intrinsic]:
    """In how many dimensions points lie: those of an array, of an npy or npz file, or of a world by name.

    For a run, a dictionary with the answers for its data, its mean codes and its sampled codes. ``score`` is the
    maximum-likelihood estimate over the stable range of ``neighbours``, ``two_nn`` that of TwoNN from the share
    ``anchor`` of all ratios. Each of the ``seeds`` draws ``n_samples`` points.

    >>> import numpy as np
    >>> import unweave as uw
    >>> flat = np.random.default_rng(0).normal(size=(1000, 2)) @ np.ones((2, 5))
    >>> round(uw.intrinsic(flat).score)
    1
    """
    options: dict[str, Any] = {"neighbours": neighbours, "averaging": averaging, "anchor": anchor}
    options |= {"n_samples": n_samples, "seeds": seeds}
    found = {points.name: intrinsic_of(points.table, **options) for points in _points(what)}
    return found if isinstance(what, BareRun) or _is_folder(what) else next(iter(found.values()))


def _points(what: Any) -> list[Points]:
    if isinstance(what, BareRun) or _is_folder(what):
        return points_of_run(what if isinstance(what, BareRun) else load(what))
    if isinstance(what, Data):
        return [points_of_data(what)]
    if isinstance(what, str | Path) and Path(what).suffix in (".npy", ".npz"):
        return [points_of_file(what)]
    if isinstance(what, World | str | Path):
        return [points_of_world(as_world(what))]
    if is_frame(what):
        return [points_of_frame(what)]
    table = what if isinstance(what, Tensor) else np.asarray(what)
    return [Points("points", as_codes(table.reshape(len(table), -1) if table.ndim > 2 else table, "points"))]


def _is_folder(what: Any) -> bool:
    """Whether this is the folder of a run, or a model of the zoo; any other folder is one of images."""
    if not isinstance(what, str | Path) or str(what) in WORLDS:
        return False
    return str(what).startswith("zoo:") or (Path(what) / "config.json").exists()


@contextlib.contextmanager
def _watched(words: str, quiet: bool) -> Iterator[RunOptions]:
    if quiet:
        yield RunOptions()
        return
    with progress(words) as watch:
        yield RunOptions((watch,))
