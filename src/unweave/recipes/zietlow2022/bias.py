"""The experiments of Zietlow (2022), chapter 4: one chain of models for all its tables and figures.

β-VAEs to choose from → a manipulation of the images, and two controls of it → every method on the original, the
modified and the noisy images. The first models are known from the start, the others follow from what is found.

What the source does not say is chosen here once: how many models are chosen from (32), how long the manipulation is
trained (100,000 steps), batches of 64, and which seeds: the models to choose from have other seeds than those that are
compared, so that every score is of a model that the manipulation was not made for. The non-variational methods are
trained as their authors do. The library's network has 2×2 kernels in its deeper layers, and so have its methods here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unweave.data.altered import Noise, Perturbed
from unweave.data.dsprites import DSprites
from unweave.data.micro import Micro
from unweave.data.shapes3d import Shapes3D, Shapes3DLike
from unweave.data.world import World
from unweave.models.likelihoods import SquaredError
from unweave.models.method import Method
from unweave.models.networks.conv import Conv, ConvStudy
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import AE, PCL, WSGAN, BetaTCVAE, BetaVAE, FactorVAE, Perturbation, SlowVAE
from unweave.models.optimisers import Adam
from unweave.recipes.extent import at_size
from unweave.recipes.perturb import Attack, Candidate, Control, ids_of, judged, manipulation, marked, sides_of
from unweave.studies.measures.alignment import Alignment
from unweave.studies.measures.scores import Scores
from unweave.studies.results import Results
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan

if TYPE_CHECKING:
    import polars as pl

VARIATIONAL = ("β-VAE", "FactorVAE", "TC-VAE", "SlowVAE")
OTHERS = ("PCL", "WS-GAN")
METHODS = ("AE", *VARIATIONAL, *OTHERS)

ORIGINAL, MODIFIED, NOISE, SAME, REVERSED = "original", "modified", "noise", "same models", "reversed"
CONDITIONS = (ORIGINAL, MODIFIED, NOISE)
KINDS: dict[str, Control] = {MODIFIED: "", SAME: "same", REVERSED: "reversed"}
"""Manipulations and what each is called in an attack; the place in this list is the seed that it is trained with."""

FIRST_CANDIDATE = 1000
"""Seeds of the models to choose from begin here, those of the compared ones at 0."""

SCALES = (0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
"""By how much the line search scales the main hyperparameter (§4.3.4)."""

COLUMNS = {
    "MIG": "scores.mean.mig",
    "DCI": "scores.mean.dci.disentanglement",
    "FactorVAE": "scores.mean.factor_vae_score",
    "SAP": "scores.mean.sap_score",
}
METRICS = ("mig", "dci", "factor_vae_score", "sap_score")


@dataclass(frozen=True)
class Place:
    """A world of the chapter: Table 4.1, ε (§4.3.3) and the size of the ensembles (§4.3.1)."""

    title: str
    world: World
    epsilon: float
    ensemble: int
    strengths: Mapping[str, float]
    published: str = ""
    """The world whose published values stand beside ours; empty where none do."""

    @property
    def n_factors(self) -> int:
        space = self.world.card().space
        assert space is not None
        return len(space.sizes)


ON_SHAPES = {"β-VAE": 32.0, "TC-VAE": 32.0, "FactorVAE": 7.0, "SlowVAE": 1.0}
PLACES = {
    "dsprites": Place(
        "dSprites",
        DSprites(),
        0.1,
        1,
        {"β-VAE": 8.0, "TC-VAE": 6.0, "FactorVAE": 35.0, "SlowVAE": 1.0},
        published="dSprites",
    ),
    "shapes3d": Place("Shapes3D", Shapes3D(), 0.175, 4, ON_SHAPES, published="Shapes3D"),
    "shapes3d_like": Place("Shapes3D imitation", Shapes3DLike(), 0.175, 4, ON_SHAPES),
    # discs that overlap, less wide than high: PCA finds the factors there, and VAEs can
    "micro": Place(
        "Micro",
        Micro(width=0.6, reach=0.5),
        0.1,
        2,
        {"β-VAE": 3.0, "TC-VAE": 3.0, "FactorVAE": 6.0, "SlowVAE": 1.0},
    ),
}


@dataclass(frozen=True)
class Amount:
    """How much of the chapter a size covers."""

    places: tuple[str, ...]
    methods: tuple[str, ...]
    n_seeds: int
    n_candidates: int
    steps: int
    perturb_steps: int
    n_samples: int
    scales: tuple[float, ...] = SCALES
    gan_steps: int = 0
    rate: float = 1e-4
    perturb_rate: float = 1e-4
    ensemble: int = 64
    """Models on a side at the most."""
    changes: Mapping[str, Any] = field(default_factory=dict)


AMOUNTS = {
    "smoke": Amount(
        ("micro",),
        ("AE", *VARIATIONAL),
        n_seeds=6,
        n_candidates=10,
        steps=3000,
        perturb_steps=3000,
        n_samples=2048,
        scales=(0.75, 2.0),
        rate=4e-3,
        perturb_rate=1e-2,
        changes={
            "network": MLP((32,), (32,), "relu", "relu"),
            "likelihood": SquaredError(),
            "init": "pytorch",
            "warmup": 100,
        },
    ),
    "small": Amount(
        ("dsprites", "shapes3d_like"),
        METHODS,
        n_seeds=6,
        n_candidates=16,
        steps=20_000,
        perturb_steps=10_000,
        n_samples=10_000,
        scales=(0.75, 1.0, 1.5, 2.0),
        gan_steps=10_000,
        rate=5e-4,
        perturb_rate=5e-4,
        ensemble=2,
    ),
    "paper": Amount(
        ("dsprites", "shapes3d_like"),
        METHODS,
        n_seeds=10,
        n_candidates=32,
        steps=300_000,
        perturb_steps=100_000,
        n_samples=15_000,
        gan_steps=500_000,
    ),
}


@dataclass(frozen=True)
class Asked:
    """Which models a table or figure needs besides those to choose from and the manipulation."""

    methods: tuple[str, ...] = METHODS
    conditions: tuple[str, ...] = CONDITIONS
    controls: tuple[str, ...] = ()
    """Of the manipulation, on which the β-VAE is trained too where it is among the methods."""
    searched: bool = False
    """Whether the main hyperparameter is scaled."""
    places: tuple[str, ...] = ()
    """Only these worlds at the published size; smaller sizes show all that they have."""
    strengths: tuple[float, ...] = (1.0,)
    """Altered images are made with these multiples of a world's ε."""
    again: bool = False
    """Whether the models to choose from are also trained on what came of them."""


TABLE = Asked(controls=(SAME, REVERSED))
"""What the four tables ask for."""


def bias_study(name: str, size: str, title: str, asked: Asked) -> Study:
    """The chain that a table or figure needs. All take the same measures, so that they share their models."""
    amount = at_size(size, AMOUNTS)
    first = [one for place in places_of(size, asked) for one in _known(place, amount, asked)]
    measures = (Alignment(amount.n_samples), Scores(METRICS, amount.n_samples))
    return Study(f"{name}-{size}", tuple(first), measures, title, partial(follow, size, asked))


def follow(size: str, asked: Asked, results: Results) -> list[Experiment]:
    """Manipulations once the models to choose from are there, then the models on what each of them makes."""
    amount = at_size(size, AMOUNTS)
    found: list[Experiment] = []
    for place in places_of(size, asked):
        made = manipulations(place, amount, asked, results)
        found += made.values()
        for kind, folder in _folders(results, made).items():
            compared = ("β-VAE",) if kind in asked.controls else METHODS if MODIFIED in asked.conditions else ()
            methods = _used(amount, [method for method in asked.methods if method in compared])
            for strength in asked.strengths:
                world = Perturbed(str(folder), place.world, strength * place.epsilon)
                found += _models(place, amount, world, methods, asked.searched)
            if asked.again and kind == MODIFIED:
                world = Perturbed(str(folder), place.world, place.epsilon)
                found += [replace(_candidate(place, amount, one), world=world) for one in range(amount.n_candidates)]
    return found


def manipulations(place: Place, amount: Amount, asked: Asked, results: Results) -> dict[str, Experiment]:
    """The manipulation and its controls, as the models to choose from decide; none while one of these is missing."""
    found: dict[str, Experiment] = {}
    if not all_to_choose_from(place, amount, results):
        return found
    for seed, (kind, control) in enumerate(KINDS.items()):
        if kind == MODIFIED or kind in asked.controls:
            attack = replace(attack_on(place, amount), control=control)
            ids = sides_of(chosen_from(place, amount, results), attack)
            sides = [[str(results.store.folder(one).path) for one in side] for side in ids]
            base = replace(_candidate(place, amount, 0), seed=seed)
            found[kind] = manipulation(base, attack, (tuple(sides[0]), tuple(sides[1])))
    return found


def _all_known(results: Results, models: Sequence[Experiment]) -> bool:
    """Whether each of some models is measured, or failed."""
    ids = ids_of(results, models)
    folders = [results.store.folder(one) for one in ids]
    return len(ids) == len(models) and all(
        one.has("failure.json") or (one.trained and (one.names("measures/") or one.names("failures/")))
        for one in folders
    )


def all_to_choose_from(place: Place, amount: Amount, results: Results) -> bool:
    """Whether all models to choose from are measured, or failed: before that, the choice could change."""
    return _all_known(results, _candidates(place, amount))


def chosen_from(place: Place, amount: Amount, results: Results) -> tuple[Candidate, ...]:
    """The models to choose from, by MIG, each with its side; none of a world that the results are not about."""
    models, attack = _candidates(place, amount), attack_on(place, amount)
    known = ids_of(results, models)
    if not known:
        return ()
    found = _by_rule(judged(results, known, attack), place.n_factors, 2 * attack.ensemble)
    return marked(found, sides_of(found, attack))


def _by_rule(found: Sequence[Candidate], n_factors: int, wanted: int) -> tuple[Candidate, ...]:
    """Over-pruned are models with fewer latents in use than factors, or than enough models use where too few do."""
    counts = sorted((one.n_active for one in found), reverse=True)
    least = min([n_factors, *counts[wanted - 1 : wanted]])
    return tuple(replace(one, over_pruned=one.n_active < least) for one in found)


def attack_on(place: Place, amount: Amount) -> Attack:
    """How a world's manipulation is made."""
    n = min(place.ensemble, amount.ensemble, amount.n_candidates // 2)
    steps, rate = amount.perturb_steps, amount.perturb_rate
    return Attack(amount.n_candidates, "mig", n, place.epsilon, steps, rate)


def places_of(size: str, asked: Asked = TABLE) -> list[Place]:
    """The worlds of a size; Shapes3D itself where its file is."""
    wanted = at_size(size, AMOUNTS).places
    asked_for = asked.places if size == "paper" and asked.places else wanted
    names = [name for name in wanted if name in asked_for] or list(wanted[:1])
    on_disk = Shapes3D().card().on_disk
    return [PLACES["shapes3d" if name == "shapes3d_like" and on_disk else name] for name in names]


def methods_of(size: str, asked: Asked) -> tuple[str, ...]:
    """The methods that a size has of those asked for."""
    return _used(at_size(size, AMOUNTS), asked.methods)


def grouped(results: Results) -> "dict[tuple[str, str, str], pl.DataFrame]":
    """The table of runs by world, method and condition: original, modified, noise, and the controls'."""
    import polars as pl

    ids: dict[tuple[str, str, str], list[str]] = {}
    for one in results.experiments:
        known = placed(one, results)
        if known is not None and one.seed < FIRST_CANDIDATE:
            ids.setdefault(known, []).append(one.id)
    return {key: results.table.filter(pl.col("id").is_in(some)) for key, some in ids.items()}


def placed(one: Experiment, results: Results) -> tuple[str, str, str] | None:
    """World, method and condition of a run; None for a manipulation."""
    world, condition = one.world, ORIGINAL
    if isinstance(one.objective, Perturbation):
        return None
    if isinstance(world, Noise):
        world, condition = world.base, NOISE
    elif isinstance(world, Perturbed):
        assert world.base is not None
        seeds = {made.id: made.seed for made in results.experiments if isinstance(made.objective, Perturbation)}
        condition = list(KINDS)[seeds.get(Path(world.run).name, 0)]
        world = world.base
    return title_of(world), method_of(one.objective), condition


def title_of(world: World) -> str:
    """What a world is called in the chapter's tables."""
    return next((place.title for place in PLACES.values() if place.world.name == world.name), world.name)


def strength_of(one: Experiment) -> float:
    """The ε of a run's images; 0 for original ones."""
    epsilon = one.world.epsilon if isinstance(one.world, Noise | Perturbed) else 0.0
    return epsilon or 0.0


def method_of(objective: Method) -> str:
    """The name that a method has in the source's tables."""
    kinds: dict[type, str] = {AE: "AE", BetaVAE: "β-VAE", FactorVAE: "FactorVAE", BetaTCVAE: "TC-VAE"}
    kinds |= {SlowVAE: "SlowVAE", PCL: "PCL", WSGAN: "WS-GAN"}
    return kinds[type(objective)]


def about(size: str) -> tuple[str, ...]:
    """What every page of the chapter says of its size."""
    amount = at_size(size, AMOUNTS)
    notes = [
        f"{amount.n_candidates} β-VAEs to choose from, with seeds of their own; {amount.n_seeds} seeds of every method"
        f" that is compared; latents as many as factors; {amount.steps:,} steps, the manipulation"
        f" {amount.perturb_steps:,}. How many there were to choose from and how long the manipulation was trained is"
        " not said in the source.",
        "Candidates with fewer latents in use (mean σ² below 0.8) than factors are left out: the source's rule. Where"
        " too few models use that many, those that use fewer than enough models do are left out; z-fig-4.3 lists all.",
        "Two controls: the same models on both sides, where nothing is to be gained and chance moves the manipulation,"
        " and both sides exchanged, where it is as strong but suits the disentangled models.",
    ]
    if size == "smoke":
        notes.append(
            "This size shows that the whole chain runs: no verdict is given, whatever the numbers are. The micro-world"
            " is a disc with three factors; here its discs overlap, so that PCA finds the factors, and VAEs can."
            " Squared errors take the place of the Bernoulli likelihood: on a black background that one takes any grey"
            " for lost contrast, and latents die of noise as of a manipulation. World, β, learning rates and steps were"
            " chosen on other models (of a quarter of the pixels, outside this store) than those that are compared."
        )
    if size == "small":
        notes.append(
            "A fifteenth of the published steps at five times the learning rate (5·10⁻⁴), also for the manipulation,"
            f" and at most {amount.ensemble} models on a side; it judges signs and orders, no numbers."
        )
    if size in ("small", "paper"):
        notes.append(
            "Where the file of Shapes3D is not on this machine its imitation stands for it: published values are then"
            " shown and not judged."
        )
    return tuple(notes)


def _known(place: Place, amount: Amount, asked: Asked) -> Iterator[Experiment]:
    """What does not depend on anything found: models to choose from, and those on original and noisy images."""
    yield from (_candidate(place, amount, number) for number in range(amount.n_candidates))
    methods = _used(amount, asked.methods)
    if ORIGINAL in asked.conditions:
        yield from _models(place, amount, place.world, methods)
    if NOISE in asked.conditions:
        for strength in asked.strengths:
            yield from _models(place, amount, Noise(place.world, strength * place.epsilon), methods)


def _used(amount: Amount, methods: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name in methods if name in amount.methods)


def _folders(results: Results, made: Mapping[str, Experiment]) -> dict[str, Path]:
    """Where the finished manipulations are."""
    ids = {kind: ids_of(results, [one]) for kind, one in made.items()}
    folders = {kind: results.store.folder(some[0]) for kind, some in ids.items() if some}
    return {kind: folder.path for kind, folder in folders.items() if folder.trained}


def _candidates(place: Place, amount: Amount) -> list[Experiment]:
    return [_candidate(place, amount, number) for number in range(amount.n_candidates)]


def _candidate(place: Place, amount: Amount, number: int) -> Experiment:
    return next(_of_method(place, amount, place.world, "β-VAE", [FIRST_CANDIDATE + number]))


def _models(
    place: Place, amount: Amount, world: World, methods: Sequence[str], searched: bool = False
) -> Iterator[Experiment]:
    for method in methods:
        for scale in amount.scales if searched else (1.0,):
            yield from _of_method(place, amount, world, method, range(amount.n_seeds), scale)


def _of_method(
    place: Place, amount: Amount, world: World, method: str, seeds: Sequence[int], scale: float = 1.0
) -> Iterator[Experiment]:
    """A method as its authors, or the library, train it, but for what a size changes."""
    own = method in ("SlowVAE", *OTHERS)
    one = Experiment(
        world,
        _objective(place, amount, method, scale),
        network=Conv() if own else ConvStudy(),
        optimiser=Adam() if method == "WS-GAN" else Adam(amount.rate),
        latents=place.n_factors,
        steps=amount.gan_steps if method == "WS-GAN" else amount.steps,
        # the authors' batches of 64 images are 32 pairs
        batch_size=32 if method in ("SlowVAE", "PCL") else 64,
        history_every=max(50, amount.steps // 60),
        plan=Plan(threads=1),
    )
    one = replace(one, **amount.changes)
    yield from (replace(one, seed=seed) for seed in seeds)


def _objective(place: Place, amount: Amount, method: str, scale: float) -> Method:
    strength = scale * place.strengths.get(method, 1.0)
    if method == "FactorVAE":
        width, depth = (1000, 6) if amount.steps > 10_000 else (64, 2)
        return FactorVAE(strength, "study", learning_rate=amount.rate, width=width, depth=depth)
    made: dict[str, Method] = {
        "AE": AE(),
        "β-VAE": BetaVAE(strength),
        "TC-VAE": BetaTCVAE(strength),
        "SlowVAE": SlowVAE(strength),
        "PCL": PCL(),
        "WS-GAN": WSGAN(),
    }
    return made[method]
