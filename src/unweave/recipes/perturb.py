"""Change a world's images a little, so that VAEs stop disentangling it (Zietlow, 2022, chapter 4).

The whole is one study: β-VAEs are trained, the most and the least disentangled ones chosen, their encoders frozen, and
a network is trained that alters images. Every model is an ordinary run of a store: the same call goes on, or returns.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import torch

from unweave.config import fingerprint, from_plain, later, number
from unweave.data.altered import Manipulated, Perturbed
from unweave.data.micro import Micro
from unweave.data.world import called
from unweave.evaluation.encode import encode
from unweave.files import as_typed
from unweave.metrics.unsupervised.udr import udr
from unweave.models.likelihoods import SquaredError
from unweave.models.networks.mlp import MLP
from unweave.models.objectives import BetaVAE, Perturbation
from unweave.models.optimisers import Adam
from unweave.pages.manipulation import AlteredImages, Losses, losses_of, manipulation_page
from unweave.studies.executors.executor import Executor
from unweave.studies.identity import identity, identity_of_asked
from unweave.studies.measures.alignment import Alignment
from unweave.studies.one_by_one import OneByOne
from unweave.studies.results import Results
from unweave.studies.run import run_study
from unweave.studies.store import Store
from unweave.studies.study import Study
from unweave.training.experiment import Experiment, Plan
from unweave.training.given import given_run
from unweave.training.run import Run
from unweave.training.running import RunOptions

if TYPE_CHECKING:
    import matplotlib.figure

N_UDR = 2_000
"""Examples on which models are compared by UDR."""

N_SHOWN = 8

N_COMPARED, LEAST_DEVIATION, MUCH_SATURATED = 256, 0.05, 0.1
"""Examples whose changes are compared, by how much these should deviate at the least, and from which share of pixels at
an end on training more will not help."""

Sides = tuple[tuple[str, ...], tuple[str, ...]]
"""Ids or folders of the runs to foster and of those to diminish."""


Control = Literal["", "same", "reversed"]


@dataclass(frozen=True)
class Attack:
    """How a manipulation is made. Steps and learning rate are those of the manipulation and of its decoders."""

    models: int = number(10, least=2, most=10_000, help="models to train and to choose from, one a seed")
    by: Literal["mig", "udr"] = "mig"
    ensemble: int = number(1, least=1, most=64, help="models on each side")
    epsilon: float = number(0.1, above=0, most=0.5, help="how much a pixel may change")
    perturb_steps: int | None = number(None, least=1, most=10**12, help="steps of the manipulation (as of a model)")
    perturb_rate: float = number(1e-4, above=0, help="learning rate of the manipulation and the decoders")
    samples: int = number(5, least=1, most=1000, help="codes drawn of every image")
    hidden: int = later(0, least=0, most=10_000, help="width of two layers before m's one number (0: none)")
    control: Control = ""
    """``same``: the same models on both sides. ``reversed``: the disentangled ones are fostered."""


@dataclass(frozen=True)
class Candidate:
    """A model that could be chosen."""

    id: str
    seed: int
    score: float
    """MIG or UDR."""
    n_active: int
    over_pruned: bool
    side: str = ""
    """``foster``, ``diminish``, or neither."""


@dataclass(frozen=True)
class Veil:
    """How far a manipulation does the same to all images: then it says nothing of their factors."""

    deviation: float
    """Of m over examples, mean over pixels; m lies in [−1, 1]."""
    saturated: float
    """Share of pixels in which |m| is above 0.95."""

    def sentences(self) -> list[str]:
        """A warning, where the change hardly depends on what is seen."""
        if self.deviation >= LEAST_DEVIATION:
            return []
        advice = (
            "try another --perturb-rate, or a likelihood that does not punish every grey (squared_error)"
            if self.saturated >= MUCH_SATURATED
            else "m has hardly begun to learn: train it for longer (--perturb-steps), or faster (--perturb-rate)"
        )
        return [
            f"The change is nearly the same for all images: m deviates by {self.deviation:.4f} from one to another, and"
            f" {self.saturated:.0%} of its pixels stand at an end. Such a veil says nothing of the factors; {advice}."
        ]


@dataclass(frozen=True)
class Made:
    """A finished manipulation: its run, the world that it makes, and what it was made from."""

    folder: Path
    attack: Attack
    candidates: tuple[Candidate, ...] = ()
    """All that were chosen from; none where both sides were given."""

    @cached_property
    def run(self) -> Run:
        return Run(self.folder)

    @property
    def world(self) -> Perturbed:
        """The altered world; train on it as on any other."""
        return Perturbed(str(self.folder)).resolve()

    @cached_property
    def losses(self) -> Losses:
        """Both sides' reconstruction losses over training."""
        return losses_of(self.run)

    @cached_property
    def veil(self) -> "Veil":
        """How far the change is the same for all images."""
        return veil_of(self.world)

    def images(self, n: int = N_SHOWN) -> AlteredImages:
        """Some examples, the change that is made to each as m says it, and the altered ones."""
        return altered_images(self.world, n)

    def plot(self, n: int = N_SHOWN) -> "matplotlib.figure.Figure":
        """Originals, what is changed (amplified), and the altered images."""
        return self.images(n).plot()

    def sentences(self) -> list[str]:
        """What was done, in words."""
        first, last = self.losses.first, self.losses.last
        words = []
        if self.candidates:
            left = sum(one.over_pruned for one in self.candidates)
            words.append(
                f"{len(self.candidates)} models were compared by {self.attack.by.upper()}; {left} of them were left out"
                " as over-pruned: fewer latents in use (mean σ² below 0.8) than there are factors."
            )
        words += [
            f"Reconstruction loss of the fostered side {first['foster']:.2f} → {last['foster']:.2f}, of the diminished"
            f" side {first['diminish']:.2f} → {last['diminish']:.2f}; gap {first['gap']:+.2f} → {last['gap']:+.2f}.",
            f"No pixel moves by more than {self.attack.epsilon:g}.",
            *self.veil.sentences(),
            f"Train on the altered world with: unweave train perturbed --world.run {as_typed(self.folder)}",
        ]
        return words

    def to_plain(self) -> dict[str, Any]:
        """As JSON takes it."""
        shown = {name: [one.id for one in self.candidates if one.side == name] for name in ("foster", "diminish")}
        return {
            "folder": str(self.folder),
            "id": self.run.experiment.id,
            "epsilon": self.attack.epsilon,
            "control": self.attack.control,
            "by": self.attack.by if self.candidates else None,
            "candidates": [vars(one) for one in self.candidates],
            "over_pruned": sum(one.over_pruned for one in self.candidates),
            "chosen": shown
            if self.candidates
            else {"foster": list(_given(self, 0)), "diminish": list(_given(self, 1))},
            "before": self.losses.first,
            "after": self.losses.last,
            "change": vars(self.veil),
            "world": {"name": "perturbed", "run": str(self.folder)},
        }

    def write_page(self) -> Path:
        """Write the page into the run's folder; its path is returned."""
        made = manipulation_page(self.run, self.images(), self.sentences(), [_row(one) for one in self.candidates])
        for name, content in made.pictures.items():
            self.run.files.write(f"figures/{name}", content)
        return self.run.files.write("report.html", made.html)


def perturb(
    base: Experiment,
    attack: Attack = Attack(),
    folder: Path | str | None = None,
    *,
    foster: Sequence[Path | str] = (),
    diminish: Sequence[Path | str] = (),
    among: Sequence[Path | str] = (),
    execute: Executor = OneByOne(),
    how: RunOptions = RunOptions(),
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> Made:
    """Train the models (or take those given), choose, and train the manipulation; the same call again goes on.

    ``folder`` is the store (``runs``). With folders of finished runs no model is trained: those to ``foster`` and to
    ``diminish``, or those ``among`` which both sides are chosen.
    """
    store = Store("runs" if folder is None else folder).prepare()
    attack = from_plain(Attack, attack, {}, "attack")
    check_base(base)
    if among and (foster or diminish):
        raise ValueError("--among has both sides chosen from its runs: leave out --foster and --diminish")
    if foster or diminish or among:
        found = chosen_among(base, among, attack) if among else ()
        sides = sides_of(found, attack) if among else given_sides(base, foster, diminish, attack.control)
        asked = manipulation(base, attack, sides)
        study = Study(f"perturb-{fingerprint(asked)}", (asked,), title=f"A manipulation of {called(base.world)}")
        results = run_study(study, store.root, execute=execute, how=how, tell=tell)
        return Made(_finished(results, results.ids[0]), attack, found)
    _check_enough(attack, attack.models, "train", "--models")
    models = candidates(base, attack.models)
    name, title = f"perturb-{fingerprint((base, attack))}", f"{len(models)} models of {called(base.world)}, manipulated"
    study = Study(name, models, (Alignment(),), follow_up=partial(follow, models, attack), title=title)
    results = run_study(study, store.root, execute=execute, how=how, tell=tell)
    found = judged(results, ids_of(results, models), attack)
    sides = sides_of(found, attack)
    (made,) = (one.id for one in results.experiments if isinstance(one.objective, Perturbation))
    return Made(_finished(results, made), attack, marked(found, sides))


def candidates(base: Experiment, n: int) -> tuple[Experiment, ...]:
    """The models to choose from: n seeds, from the experiment's own on."""
    return tuple(replace(base, seed=base.seed + place) for place in range(n))


def follow(models: Sequence[Experiment], attack: Attack, results: Results) -> tuple[Experiment, ...]:
    """The manipulation that follows from the finished models."""
    sides = sides_of(judged(results, ids_of(results, models), attack), attack)
    folders = [[str(results.store.folder(one).path) for one in side] for side in sides]
    return (manipulation(models[0], attack, (tuple(folders[0]), tuple(folders[1]))),)


def ids_of(results: Results, models: Sequence[Experiment]) -> list[str]:
    """The ids that experiments have among the results, whatever device they were trained on."""
    known = {identity(one): one.id for one in results.experiments}
    return [known[key] for key in map(identity_of_asked, models) if key in known]


def judged(results: Results, ids: Sequence[str], attack: Attack) -> tuple[Candidate, ...]:
    """Every finished model with its score, in the order of the seeds."""
    # read from the runs themselves, not from their table: a machine that trains may not have what makes tables
    aligned = next(measure for measure in results.study.measures if isinstance(measure, Alignment))
    models = {one.id: one for one in results.experiments}
    known = [(models[one], found) for one in ids if (found := results.found(models[one], aligned))]
    scores = _udr([results.run(one.id) for one, _ in known]) if attack.by == "udr" else None
    return tuple(
        Candidate(
            one.id,
            one.seed,
            found["mig"] if scores is None else scores[place],
            found["n_active"],
            found["over_pruned"],
        )
        for place, (one, found) in enumerate(known)
    )


def sides_of(found: Sequence[Candidate], attack: Attack) -> Sides:
    """The least disentangled models that are not over-pruned to foster, the most disentangled to diminish."""
    usable = sorted((one for one in found if not one.over_pruned), key=lambda one: (one.score, one.seed))
    n = attack.ensemble
    if len(usable) < 2 * n:
        raise ValueError(
            f"of {len(found)} finished models {len(found) - len(usable)} are over-pruned (fewer latents in use than"
            f" factors), which leaves {len(usable)} to choose 2 × {n} from: take more models, a weaker regulariser, or"
            " more latents"
        )
    low, high = (tuple(one.id for one in side) for side in (usable[:n], usable[::-1][:n]))
    return {"": (low, high), "same": (low, low), "reversed": (high, low)}[attack.control]


def marked(found: Sequence[Candidate], sides: Sides) -> tuple[Candidate, ...]:
    """The models with the side that each stands on."""
    names = [dict.fromkeys(sides[1], "diminish"), dict.fromkeys(sides[0], "foster")]
    both = names[0] | names[1] | dict.fromkeys(names[0].keys() & names[1].keys(), "both")
    return tuple(replace(one, side=both.get(one.id, "")) for one in found)


def manipulation(base: Experiment, attack: Attack, folders: Sides) -> Experiment:
    """The experiment that trains the manipulation between the runs in these folders."""
    foster, diminish = (tuple(given_run(one) for one in side) for side in folders)
    method = Perturbation(
        foster,
        diminish,
        epsilon=attack.epsilon,
        samples=attack.samples,
        learning_rate=attack.perturb_rate,
        hidden=attack.hidden,
    )
    steps = attack.perturb_steps or base.steps
    return replace(base, objective=method, optimiser=Adam(), steps=steps, warmup=0, snapshots=())


def check_base(base: Experiment) -> None:
    """Refuse models and worlds that no manipulation can be made from."""
    card = base.world.card()
    if card.space is None:
        raise ValueError(
            f"{called(base.world)} has no factors, and a manipulation is a function of them (codes of a model cannot"
            " take their place: no two models share them); `unweave worlds` shows which worlds have some"
        )
    if len(card.shape) != 3:
        raise ValueError(f"only images can be altered, and {base.world.name} has none: its examples are {card.shape}")
    method = base.objective
    if not (method.encodes and method.decodes and method.kept == ("model",)) or (
        method.posterior != Perturbation.posterior
    ):
        raise ValueError(
            f"{method.name} trains no VAE with one σ a latent, and what is used is where its noise goes: take a VAE"
        )
    if method.reads_labels:
        raise ValueError(
            f"the encoder of {method.name} is told labels beside an image, and here encoders are shown images alone:"
            " take a VAE that sees nothing else"
        )


def given_sides(base: Experiment, foster: Sequence[Any], diminish: Sequence[Any], control: str = "") -> Sides:
    """The folders of given runs, checked: finished, of one world and one shape, and none on both sides."""
    if not (foster and diminish):
        raise ValueError("give runs for both sides: --foster RUN and --diminish RUN")
    sides = tuple(str(one) for one in foster), tuple(str(one) for one in diminish)
    places = [[Path(one).resolve() for one in side] for side in sides]
    if control == "same" and {*places[0]} != {*places[1]}:
        raise ValueError("the control has the same runs on both sides, and these differ: say each after both options")
    if control == "same":
        _check_alike(base, places[0])
    else:
        _check_alike(base, [*places[0], *places[1]], "; a run against itself is the control: say --control")
    return {"reversed": (sides[1], sides[0])}.get(control, sides)


FOR_TRAINING, FOR_CHOOSING = ("models", "objective", "optimiser", "warmup", "snapshots"), ("ensemble", "by")
"""Settings that say something only where models are trained, or chosen from."""


def check_said(names: Iterable[str], *, given: bool, among: bool) -> None:
    """Refuse settings, ``objective.beta`` and the like, that would do nothing where runs are given."""
    idle = (*FOR_TRAINING, *(() if among else FOR_CHOOSING)) if given or among else ()
    if said := [name for name in names if _head(name) in idle]:
        done = "trained" if _head(said[0]) in FOR_TRAINING else "chosen"
        raise ValueError(f"{said[0]} is about models that are to be {done}, and these runs are given: leave it out")


def _head(name: str) -> str:
    return name.removeprefix("--").partition(".")[0]


def chosen_among(base: Experiment, runs: Sequence[Path | str], attack: Attack) -> tuple[Candidate, ...]:
    """Given runs with their scores and sides, each named by its folder; nothing is written into these."""
    _check_enough(attack, len(runs), "give", "--among")
    _check_alike(base, [Path(one).resolve() for one in runs])
    opened, aligned = [Run(one) for one in runs], Alignment()
    kept = [run.files.read_json(aligned.file) if run.files.has(aligned.file) else aligned(run) for run in opened]
    scores = _udr(opened) if attack.by == "udr" else [one["mig"] for one in kept]
    found = tuple(
        Candidate(str(one), run.experiment.seed, score, known["n_active"], known["over_pruned"])
        for one, run, score, known in zip(runs, opened, scores, kept)
    )
    return marked(found, sides_of(found, attack))


def base_of(runs: Sequence[Path | str]) -> Experiment:
    """The experiment that given runs were trained by, but for their objectives and seeds.

    What comes from a machine with a GPU is altered on this one, with or without.
    """
    if not runs:
        raise ValueError("say what to alter: unweave perturb WORLD, --foster RUN --diminish RUN, or --among RUN RUN …")
    base = Run(runs[0]).experiment
    elsewhere = base.plan.device.startswith("cuda") and not torch.cuda.is_available()
    return replace(base, plan=Plan()) if elsewhere else base


def attack_of(run: Run) -> Attack:
    """What a finished manipulation says of how it was made."""
    method = run.experiment.objective
    if not isinstance(method, Perturbation):
        raise ValueError(f"{run.path} is a run of {method.name}, and no manipulation; `unweave perturb` makes one")
    sides = [{one.checksum for one in side} for side in (method.foster, method.diminish)]
    return Attack(
        models=max(2, len(sides[0] | sides[1])),
        ensemble=len(method.foster),
        epsilon=float(method.epsilon),
        perturb_steps=run.experiment.steps,
        perturb_rate=float(method.learning_rate),
        samples=method.samples,
        hidden=method.hidden,
        control="same" if sides[0] == sides[1] else "",
    )


def micro() -> tuple[Experiment, Attack]:
    """Settings for the micro-world: minutes, as many latents as factors, models that differ in how they lie to them.

    Squared errors, because a Bernoulli likelihood takes a grey background for lost contrast: any change kills latents.
    """
    base = Experiment(
        Micro(width=0.6, reach=0.5),
        BetaVAE(3.0),
        network=MLP((32,), (32,), "relu", "relu"),
        likelihood=SquaredError(),
        optimiser=Adam(4e-3),
        latents=3,
        steps=3000,
        warmup=100,
        init="pytorch",
        history_every=50,
        plan=Plan("cpu", 1),
    )
    return base, Attack(ensemble=2, perturb_rate=1e-2)


@torch.no_grad()
def veil_of(world: Perturbed) -> Veil:
    """How far a manipulation changes all images of its world alike."""
    data = world.load()
    assert isinstance(data.alteration, Manipulated)
    change = data.alteration.change(spread_rows(len(data), N_COMPARED))
    return Veil(float(change.std(0).mean()), float((change.abs() > 0.95).float().mean()))


def spread_rows(n: int, count: int) -> torch.Tensor:
    """So many rows from all over a world, the same every time: a prime step goes through all factors."""
    return (torch.arange(count) * 7_919 + 101) % n


def altered_images(world: Perturbed, n: int = N_SHOWN, epsilon: float | None = None) -> AlteredImages:
    """Examples of an altered world beside their originals; spread over the world, the same every time."""
    known = replace(world, epsilon=epsilon).resolve() if epsilon is not None else world.resolve()
    data = known.load()
    assert isinstance(data.alteration, Manipulated)
    rows = spread_rows(len(data), n)
    with torch.no_grad():
        change = data.alteration.change(rows)
    originals = replace(data, alteration=data.alteration.before)
    return AlteredImages(originals.examples(rows), change, data.examples(rows), data.alteration.epsilon)


def _check_alike(base: Experiment, folders: Sequence[Path], advice: str = "") -> None:
    """Refuse a run that is given again, and runs that are not of the base's kind."""
    again = next((one for one in folders if folders.count(one) > 1), None)
    if again is not None:
        raise ValueError(f"{again} is given twice{advice}")
    like = (base.world.resolve(), base.network, base.likelihood, base.latents)
    for one in folders:
        _check_like(Run(one).experiment, like, one)


def _check_like(other: Experiment, like: tuple[Any, ...], folder: Path) -> None:
    found = (other.world.resolve(), other.network, other.likelihood, other.latents)
    for name, one, wanted in zip(("world", "network", "likelihood", "number of latents"), found, like):
        if fingerprint(one) != fingerprint(wanted):  # where a manipulation lies is not what its world is
            shown = [getattr(value, "name", value) for value in (one, wanted)]
            told = f"{shown[0]} and not {shown[1]}" if shown[0] != shown[1] else f"another setting of {shown[0]}"
            raise ValueError(f"{folder} has another {name} than the others ({told}); all runs must agree in it")
    check_base(other)


def _udr(runs: Sequence[Run]) -> list[float]:
    """UDR of every model, on the same examples."""
    codes = [encode(run, run.rows(N_UDR), device="cpu") for run in runs]
    found = udr(torch.stack([code.mean for code in codes]), torch.stack([code.kl.mean(0) for code in codes]))
    return [float(score) for score in found.score]


def _check_enough(attack: Attack, n: int, verb: str, option: str) -> None:
    if 2 * attack.ensemble > n:
        raise ValueError(
            f"{attack.ensemble} a side cannot be chosen from {n}: {verb} at least {2 * attack.ensemble} models"
            f" ({option}), or choose fewer (--ensemble)"
        )


def _finished(results: Results, run_id: str) -> Path:
    folder = results.store.folder(run_id)
    if not folder.trained:
        failed = {row["id"]: row.get("failure") for row in results.failed.to_dicts()}
        raise ValueError(f"the manipulation was not finished: {failed.get(run_id) or folder.path}")
    return folder.path


def _given(made: Made, side: int) -> tuple[str, ...]:
    method = made.run.experiment.objective
    assert isinstance(method, Perturbation)
    return tuple(one.run for one in (method.foster, method.diminish)[side])


def _row(one: Candidate) -> Mapping[str, Any]:
    return {
        "seed": one.seed,
        "score": one.score,
        "latents in use": one.n_active,
        "side": side_words(one),
        "run": one.id,
    }


def side_words(one: Candidate) -> str:
    """The side of a model, in words."""
    return "left out: over-pruned" if one.over_pruned else one.side or "–"
