"""The batches of a step, and the random numbers they are made of, for any number of models at once.

Every number is a function of (seed, step) alone, so a model draws the same alone, in a fleet, and after any
interruption. Draws have a leading model axis; one model is a source of one.

The parts of a batch, of which a method names those it needs:

- ``images`` the examples of the step, and ``noise``, standard normal, one number a latent; of a method with pairs these
  are twice as many rows, first all firsts, then their partners in the same order;
- ``changed`` for every pair, which factors were drawn anew (1) for the partner, and ``group``, the number of the group
  of factors that the pair shares or changes;
- ``labels`` the factors or labels of every row of ``images``, as numbers;
- ``labelled_images`` and ``labelled_labels`` examples of the few whose labels a method may know, drawn independently;
- ``second_images`` and ``second_noise`` other examples, drawn independently;
- ``permutation`` an order of the batch for every latent;
- what else a method draws (:meth:`unweave.models.method.Method.draws`).
"""

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import torch
from torch import nn

from unweave import rng
from unweave.data.correlated import draw_places, row_thresholds
from unweave.data.pairings import Pairing, RandomPairs
from unweave.data.world import Data, World, called
from unweave.models.kernels.chosen import Chosen
from unweave.models.objectives import Batch, Context, Draw, Method
from unweave.rng import Purpose
from unweave.shapes import Float, Int, Shaped, Tensor
from unweave.training.experiment import Experiment, Form, form_of

BLOCK = 64
"""Steps whose draws are made together: the draws are the same, the overhead is shared."""

MOST_DRAWS = 1 << 22
"""Noise values drawn at once; fewer steps make a block where there are many models."""

MOST_REHEARSED = 1 << 25
"""Weights up to which networks are tried out with numbers."""

MOST_ALTERED, MOST_ALTERED_ON_GPU = 1 << 26, 24 << 30
"""Bytes of examples that are altered before the first step and kept so."""

IMAGES = {
    "images": Purpose.NUISANCE,
    "second_images": Purpose.SECOND_NUISANCE,
    "labelled_images": Purpose.LABELLED_NUISANCE,
}
"""Parts that are examples, and what their nuisances are drawn for."""

PLACES = {"images": Purpose.BATCH, "second_images": Purpose.SECOND_BATCH}
NOISE = {"noise": Purpose.NOISE, "second_noise": Purpose.SECOND_NOISE}

Draws = dict[str, Tensor]
"""Random numbers by the part they are for: of one step, or of several along a first axis."""


@dataclass(frozen=True)
class Source:
    """The data and everything that decides which of it comes when, for models that train together.

    ``rows`` may be trained on (None: all); ``labelled`` are those whose labels a method may know; ``thresholds`` say
    how often each row comes, where not all come alike.
    """

    data: Data
    first: Experiment
    parts: frozenset[str]
    latents: int
    seeds: Int[Tensor, " model"]
    rows: Int[Tensor, "model sample"] | None
    latent_mask: Float[Tensor, "model 1 latent"] | None
    pairing: Pairing | None = None
    labelled: Int[Tensor, "model sample"] | None = None
    own_draws: Mapping[str, Draw] = field(default_factory=dict)
    thresholds: Int[Tensor, "*model sample"] | None = None
    n_examples: int = 0
    offset: Int[Tensor, " model"] | None = None
    """Where each model's world begins in the store, where there are several."""
    n_rows: Int[Tensor, " model"] | None = None
    """How many of ``rows`` each model has, where holdouts differ; the rest of its line is not drawn from."""
    sizes: tuple[int, ...] = ()
    """The different numbers of rows there are."""

    @property
    def block(self) -> int:
        """Steps whose draws are made together."""
        return self.block_up_to(BLOCK)

    def block_up_to(self, most: int) -> int:
        """The same, of no more than so many steps."""
        sized = len(self.seeds) * self.first.batch_size * self.latents
        return max(1, min(most, MOST_DRAWS // sized))


def source_of(experiments: Sequence[Experiment], data: Data) -> Source:
    """The source of these models' batches, on the data's device."""
    device, first = data.store.device, experiments[0]
    check_supervision(first, data)
    data = data.altered_once(most_altered(device))
    n_examples = data.n_of_each
    kept = [training_rows(experiment, n_examples) for experiment in experiments]
    sizes = [experiment.latents for experiment in experiments]
    form, (stacked, n_rows) = form_of(first.objective, data), _stacked(kept, n_examples, device)
    return Source(
        data,
        first,
        frozenset(part for experiment in experiments for part in experiment.objective.batch),
        max(sizes),
        torch.tensor([experiment.seed for experiment in experiments], device=device),
        stacked,
        _latent_mask(sizes, device),
        first.objective.pairing,
        _labelled(experiments, kept, n_examples, device),
        first.objective.draws(first.architecture(form.shape, form.labels)),
        _thresholds(first, data, stacked, n_rows),
        n_examples,
        _offsets(experiments, data),
        n_rows,
        tuple(sorted({n_examples if rows is None else len(rows) for rows in kept})),
    )


def most_altered(device: torch.device) -> int:
    """Bytes that altered examples may take, which are otherwise altered anew in every step: a network's work, or noise.

    On a GPU all of dSprites and Shapes3D fit, unless half of the memory that is free is less.
    """
    if device.type != "cuda":
        return MOST_ALTERED
    return min(MOST_ALTERED_ON_GPU, torch.cuda.mem_get_info(device)[0] // 2)


def load_together(
    experiments: Sequence[Experiment], load: Callable[[World], Data] = lambda world: world.load()
) -> Data:
    """The data of models that train together: of one world, or of several one after the other in one store."""
    worlds = tuple(dict.fromkeys(experiment.world for experiment in experiments))
    first, *others = (load(world) for world in worlds)
    if not others:
        return first
    store = torch.cat([first.store, *(other.store for other in others)])
    return replace(first, store=store, labels=None, space=None, worlds=worlds)


def check_before_fetching(experiment: Experiment) -> None:
    """Refuse a published world that is not here yet and could not give what a method asks for: nobody need fetch it."""
    method, world, card = experiment.objective, experiment.world, experiment.world.card()
    if card.on_disk or card.space is not None or not world.files():
        return
    if method.pairing is not None and not card.pairs:
        raise no_pairs(method.name, called(world))
    if {"labels", "labelled_labels"} & {*method.batch} and not (card.labels or card.segments):
        raise no_labels(method.name, called(world))


def no_pairs(method: str, world: str) -> ValueError:
    """The sentence about a world without pairs."""
    return ValueError(
        f"{method} learns from pairs of examples, and {world} has none: take a world with factors"
        " (`unweave worlds` shows which), or own images with world.pairs (a file or array of pairs) or world.sequences"
    )


def no_labels(method: str, world: str) -> ValueError:
    """The sentence about a world without labels."""
    return ValueError(
        f"{method} learns from labels, and {world} has none: take a world with factors (`unweave worlds` shows"
        " which), or own data with labels"
    )


def check_supervision(experiment: Experiment, data: Data) -> None:
    """Refuse data that cannot give what a method asks for: one sentence that says what can."""
    method, world = experiment.objective, called(experiment.world)
    if method.pairing is not None:
        if data.pairs is None and data.space is None:
            raise no_pairs(method.name, world)
        if experiment.holdout:
            raise ValueError(
                f"{method.name} learns from pairs, and the partner of an example may be one that is held out;"
                f" set holdout=0 (given {experiment.holdout})"
            )
    needs = {"changed", "group"} & {*method.batch}
    if needs and data.space is None:
        raise ValueError(
            f"{method.name} must know which factors the two of a pair share, and {world} does not say;"
            " take a world with factors (`unweave worlds` shows which)"
        )
    if {"labels", "labelled_labels"} & {*method.batch}:
        _check_labels(method.name, world, data)


def _check_labels(method: str, world: str, data: Data) -> None:
    if not data.label_sizes:
        raise no_labels(method, world)
    if data.segments is None and data.space is not None:
        return
    labels = data.given(torch.arange(len(data), device=data.store.device)).to(torch.float64)
    missing = (~torch.isfinite(labels)).nonzero()
    if len(missing):
        row, column = missing[0].tolist()
        raise ValueError(
            f"{method} needs every label of every row, and {len(missing)} of {world} are missing, the first in row"
            f" {row + 1}, {data.given_names[column]}; fill them in, or leave those rows out"
        )
    if bool((labels == labels[:1]).all()):
        raise ValueError(
            f"{method} learns from how examples with different labels differ, and in {world} all have the same"
            f" ({', '.join(data.given_names)}); give two segments or classes at least"
        )


def training_rows(experiment: Experiment, n_examples: int) -> Int[Tensor, " sample"] | None:
    """The rows that may be trained on; None for all of them."""
    if experiment.holdout == 0.0:
        return None
    kept = ~rng.split_rows(n_examples, experiment.holdout, experiment.seed)
    rows = kept.nonzero()[:, 0]
    if not len(rows):
        raise ValueError(f"a holdout of {experiment.holdout} leaves none of the {n_examples} examples to train on")
    return rows


def _stacked(
    kept: Sequence[Int[Tensor, " _"] | None], n_examples: int, device: torch.device
) -> tuple[Int[Tensor, "model sample"] | None, Int[Tensor, " model"] | None]:
    """The rows of all models, shorter lists filled up, and how many each has where that differs."""
    if all(rows is None for rows in kept):
        return None, None
    each = [torch.arange(n_examples) if rows is None else rows for rows in kept]
    lengths = [len(rows) for rows in each]
    stacked = nn.utils.rnn.pad_sequence(each, batch_first=True).to(device)
    return stacked, torch.tensor(lengths, device=device) if len({*lengths}) > 1 else None


def draw(source: Source, steps: Int[Tensor, " step"]) -> Draws:
    """All random numbers of some steps, and all that follows from them but the images."""
    size, latents = source.first.batch_size, source.latents
    seeds, steps = source.seeds[None, :], steps[:, None]
    drawn = {"steps": steps[:, 0]}
    for part, purpose in PLACES.items():
        if part in source.parts:
            drawn[_rows_of(part)] = _rows(source, _places(source, seeds, steps, purpose))
    if source.pairing is not None:
        drawn |= _paired(source, source.pairing, drawn[_rows_of("images")], seeds, steps)
    for part, purpose in NOISE.items():
        if part in source.parts:
            rows = size * (2 if source.pairing is not None and part == "noise" else 1)
            noise = rng.normal(seeds, purpose, steps, rows, latents)
            # latents that a member does not have get no noise, so they stay silent
            drawn[part] = noise if source.latent_mask is None else noise * source.latent_mask
    if "permutation" in source.parts:
        drawn["permutation"] = rng.permutations(seeds, Purpose.PERMUTATION, steps, size, latents)
    if source.labelled is not None:
        places = rng.integers(source.labelled.shape[1], seeds, Purpose.LABELLED_BATCH, steps, size, 1)[..., 0]
        drawn[_rows_of("labelled_images")] = _picked(source.labelled, places)
    for part in ("labels", "labelled_labels"):
        if part in source.parts:
            known = source.data.given(drawn[_rows_of("images" if part == "labels" else "labelled_images")])
            drawn[part] = known.to(torch.float32)
    for number, (part, own) in enumerate(source.own_draws.items()):
        drawn[part] = DRAWN[own.kind](seeds, Purpose.METHOD + number, steps, size, own.columns)
    return drawn


def stored(source: Source, draws: Draws, part: str) -> Shaped[Tensor, "model batch ..."]:
    """The examples of a step as they lie in the store: bits, bytes or floats."""
    return chosen(source, draws, part).gathered()


def chosen(source: Source, draws: Draws, part: str) -> Chosen:
    """The same, by their places in the store."""
    return Chosen(source.data.store, draws[_rows_of(part)])


def images(source: Source, draws: Draws, part: str) -> Float[Tensor, "model batch ..."]:
    """The examples of a step as the models see them, nuisances included."""
    nuisance, seen = source.data.nuisance, stored(source, draws, part)
    plain = source.data.unpacked(seen.flatten(0, 1))
    if nuisance is not None:
        drawn = rng.uniform(source.seeds, IMAGES[part], draws["steps"], seen.shape[1], nuisance.n_draws)
        plain = nuisance.apply(plain, drawn.flatten(0, 1))
    if source.data.alteration is not None:
        plain = source.data.alteration.apply(plain, draws[_rows_of(part)].flatten(0, 1))
    return plain.unflatten(0, seen.shape[:2])


class Drawing:
    """The draws of any step, made for a block of at most so many steps at once; they stay on the device."""

    def __init__(self, source: Source, *, most: int = BLOCK) -> None:
        self.source, self.block = source, source.block_up_to(most)
        self.first, self.drawn = 0, Draws()

    def block_of(self, step: int) -> Draws:
        """The block with this step in it; the step's place in it is ``step - first``."""
        block = self.block
        if not self.drawn or step - step % block != self.first:
            self.first = step - step % block
            steps = torch.arange(self.first, self.first + block, device=self.source.seeds.device)
            self.drawn = draw(self.source, steps)
        return self.drawn

    def __call__(self, step: int) -> Draws:
        """The draws of one step."""
        return {name: drawn[step - self.first] for name, drawn in self.block_of(step).items()}


def batch_of(source: Source, draws: Draws) -> dict[str, Tensor]:
    """All parts of the batch of a step, with a leading model axis."""
    parts = {part: images(source, draws, part) for part in IMAGES if part in source.parts}
    return parts | {name: drawn for name, drawn in draws.items() if name in source.parts or name in source.own_draws}


def batch_of_one(source: Source, draws: Draws) -> Batch:
    """The batch of a source's only model, without the model axis."""
    return {part: drawn[0] for part, drawn in batch_of(source, draws).items()}


def rehearse(experiment: Experiment, networks: Mapping[str, nn.Module], form: Form) -> None:
    """Every loss of a method once, on a batch of nothing: shapes that do not fit are found, and passes can be seen."""
    method, n = experiment.objective, experiment.batch_size
    rows = n * (1 if method.pairing is None else 2)
    noise, labels = torch.zeros(rows, experiment.latents), torch.zeros(rows, len(form.labels))
    batch = {"images": torch.zeros(rows, *form.shape), "noise": noise, "labels": labels}
    batch |= {"second_images": torch.zeros(n, *form.shape), "second_noise": noise[:n]}
    batch |= {"labelled_images": torch.zeros(n, *form.shape), "labelled_labels": labels[:n]}
    batch |= {"changed": labels[:n].to(torch.int64), "group": torch.zeros(n, dtype=torch.int64)}
    batch |= {"permutation": noise[:n].to(torch.int64)}
    own = method.draws(experiment.architecture(form.shape, form.labels))
    for part, drawn in own.items():
        whole = drawn.kind in ("words", "permutation")
        batch[part] = torch.zeros(n, drawn.columns, dtype=torch.int64 if whole else torch.float32)
    code = None
    for phase in method.phases():
        found = phase.loss(batch, Context(0, n, experiment.warmup, networks, code))[1]
        code = code if found is None else found


@torch.no_grad()
def rehearse_anywhere(experiment: Experiment, networks: Mapping[str, nn.Module], form: Form) -> None:
    """As :func:`rehearse`, of networks that have no weights yet."""
    if sum(parameter.numel() for network in networks.values() for parameter in network.parameters()) <= MOST_REHEARSED:
        with contextlib.suppress(Exception):  # which weights of nothing may be to blame for
            # shapes alone would make PyTorch import its compiler, which takes seconds
            rehearse(experiment, {name: _of_nothing(network) for name, network in networks.items()}, form)
            return
    with torch.device("meta"):
        rehearse(experiment, networks, form)


def _of_nothing(network: nn.Module) -> nn.Module:
    """The same network on the CPU, all zeros; made without a question to a meta tensor, which imports much too."""
    made = copy.deepcopy(network)
    for module in made.modules():
        for held in (cast(dict[str, Tensor | None], module._parameters), module._buffers):
            for name, tensor in list(held.items()):
                if tensor is not None:
                    zeros = torch.zeros(tuple(tensor.shape), dtype=tensor.dtype)
                    held[name] = nn.Parameter(zeros, False) if isinstance(tensor, nn.Parameter) else zeros
    return made


def batches(experiment: Experiment, data: Data, first: int, last: int) -> Iterator[Batch]:
    """The batches of steps first … last − 1 of one model, on the data's device."""
    source = source_of([experiment], data)
    drawing = Drawing(source)
    for step in range(first, last):
        yield batch_of_one(source, drawing(step))


DRAWN = {"normal": rng.normal, "uniform": rng.uniform, "words": rng.words, "permutation": rng.permutations}


def _rows_of(part: str) -> str:
    return f"rows of {part}"


def _rows(source: Source, places: Int[Tensor, "step model batch"]) -> Int[Tensor, "step model batch"]:
    rows = places if source.rows is None else _picked(source.rows, places)
    return rows if source.offset is None else rows + source.offset[:, None]


def _picked(
    rows: Int[Tensor, "model sample"], places: Int[Tensor, "step model batch"]
) -> Int[Tensor, "step model batch"]:
    return torch.gather(rows.expand(len(places), -1, -1), 2, places)


def _paired(source: Source, pairing: Pairing, first: Tensor, seeds: Tensor, steps: Tensor) -> Draws:
    """Rows of firsts and partners, and what is known of how they differ."""
    if source.data.pairs is not None:
        known = source.data.pairs
        one, other = known[first].unbind(-1)
        if isinstance(pairing, RandomPairs):  # the control: partners of others
            words = rng.words(seeds, Purpose.PAIR, steps, first.shape[-1], 1)[..., 0]
            other = known[(words * len(known)) >> 32, 1]
        return {_rows_of("images"): torch.cat([one, other], dim=-1)}
    space = source.data.space
    assert space is not None
    n_words = pairing.n_words(space)
    words = rng.words(seeds, Purpose.PAIR, steps, first.shape[-1], n_words + space.n_hidden)
    partners = pairing.partners(space, space.values(first), words[..., :n_words])
    second = space.rows_of(partners.factors, words[..., n_words:])
    drawn = {_rows_of("images"): torch.cat([first, second], dim=-1), "changed": partners.redrawn.to(torch.int64)}
    return drawn if partners.group is None else drawn | {"group": partners.group}


def _labelled(
    experiments: Sequence[Experiment], kept: Sequence[Tensor | None], n_examples: int, device: torch.device
) -> Int[Tensor, "model sample"] | None:
    """The examples whose labels each model may know: as many as its method says, chosen by its seed."""
    method = experiments[0].objective
    if "labelled_labels" not in method.batch:
        return None
    chosen = []
    for experiment, rows in zip(experiments, kept):
        pool = torch.arange(n_examples) if rows is None else rows
        order = rng.words(experiment.seed, Purpose.LABELLED, 0, len(pool), 1)[:, 0].argsort(stable=True)
        chosen.append(pool[order[: _n_labelled(method)]].to(device))
    return torch.stack(chosen)


def _thresholds(
    first: Experiment, data: Data, rows: Int[Tensor, "model sample"] | None, n_rows: Int[Tensor, " model"] | None
) -> Int[Tensor, "*model sample"] | None:
    if data.weights is None:
        return None
    if first.order != "iid":
        raise ValueError("correlated factors come more often together, and order=epochs takes all alike; set order=iid")
    weights = data.weights if rows is None else data.weights[rows]
    if n_rows is not None:
        weights = weights * (torch.arange(weights.shape[1], device=weights.device) < n_rows[:, None])
    return row_thresholds(weights)


def _n_labelled(method: Method) -> int:
    return int(getattr(method, "labelled"))  # noqa: B009  (only methods that name the part have the field)


def _places(source: Source, seeds: Tensor, steps: Tensor, purpose: Purpose) -> Int[Tensor, "step model batch"]:
    size, n_rows = source.first.batch_size, _n_drawn_from(source, purpose)
    if source.thresholds is not None:
        return draw_places(source.thresholds, rng.words(seeds, purpose, steps, size, 2))
    if source.n_rows is not None:
        return _places_of_each(source, seeds, steps, purpose, source.n_rows[:, None])
    if source.first.order == "iid":
        return rng.integers(n_rows, seeds, purpose, steps, size, 1)[..., 0]
    return _shuffled(source, seeds, steps, purpose, n_rows)


def _places_of_each(
    source: Source, seeds: Tensor, steps: Tensor, purpose: Purpose, n_rows: Int[Tensor, "model 1"]
) -> Int[Tensor, "step model batch"]:
    """As models draw that have so many rows each."""
    if source.first.order == "iid":
        return (rng.words(seeds, purpose, steps, source.first.batch_size, 1)[..., 0] * n_rows) >> 32
    first, *others = source.sizes
    places = _shuffled(source, seeds, steps, purpose, first)
    for size in others:
        places = torch.where(n_rows == size, _shuffled(source, seeds, steps, purpose, size), places)
    return places


def _shuffled(
    source: Source, seeds: Tensor, steps: Tensor, purpose: Purpose, n_rows: int
) -> Int[Tensor, "step model batch"]:
    """Places in the orders of the epochs that these steps fall in."""
    size = source.first.batch_size
    count = steps[..., None] * size + torch.arange(size, device=steps.device)
    count = count.expand(-1, seeds.shape[1], -1)
    return rng.shuffled(count % n_rows, n_rows, seeds[..., None], 256 + purpose, count // n_rows)


def _n_drawn_from(source: Source, purpose: Purpose) -> int:
    if purpose == Purpose.BATCH and source.pairing is not None and source.data.pairs is not None:
        return len(source.data.pairs)
    return source.n_examples if source.rows is None else source.rows.shape[1]


def _offsets(experiments: Sequence[Experiment], data: Data) -> Int[Tensor, " model"] | None:
    if not data.worlds:
        assert len({experiment.world for experiment in experiments}) == 1, "several worlds, and the data of one"
        return None
    begin = [data.worlds.index(experiment.world) * data.n_of_each for experiment in experiments]
    return torch.tensor(begin, device=data.store.device)


def _latent_mask(sizes: Sequence[int], device: torch.device) -> Float[Tensor, "model 1 latent"] | None:
    if len(set(sizes)) == 1:
        return None
    latent = torch.arange(max(sizes), device=device)
    return (latent < torch.tensor(sizes, device=device)[:, None]).to(torch.float32)[:, None]
