"""A run that can be asked: its experiment, its model, its history, and what the model makes of images and codes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import torch

from unweave import rng
from unweave.config import unknown
from unweave.data.world import Data, called
from unweave.files import require_folder
from unweave.models import Architecture, Model
from unweave.models.method import NoCodes, NoDecoder
from unweave.models.posteriors import Code, Deterministic
from unweave.runs.folder import DamagedFile, RunFolder
from unweave.runs.nearby import others_in_words
from unweave.runs.state import state_of, steps
from unweave.shapes import Float, Int, Tensor
from unweave.training.batches import training_rows
from unweave.training.checkpoint import model_with, read_tensors
from unweave.training.experiment import Experiment, Form, experiment_to, read_experiment, resume_words
from unweave.training.given_arrays import as_codes, as_images
from unweave.training.history import History, read_history
from unweave.training.labels import checked_labels, with_chosen

RUN = "the folder of a run, with the config.json and model.safetensors that `unweave train` writes"

N_CODES = 2048
"""Examples whose codes stand in for a prior where there is none."""


class Run:
    """A run by its folder. Every file is checked against its checksum before it is used; results come on the CPU."""

    def __init__(self, folder: Path | str, device: str = "cpu", *, follow_links: bool = False) -> None:
        self.files, self.device = RunFolder(require_folder(folder, RUN), follow_links=follow_links), device
        if str(folder).startswith("zoo:") and not self.files.path.exists():
            name = str(folder).removeprefix("zoo:") or "NAME"
            bring = f"bring it here with: unweave zoo pull {name}"
            raise FileNotFoundError(
                f"{folder} is no folder; {bring}    or open it in Python with uw.load('zoo:{name}')"
            )
        if not self.files.has("config.json"):
            none = f"{self.files.path} is not a run folder: it has no config.json of ours"
            raise FileNotFoundError(none + others_in_words(self.files.path))

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {called(self.experiment.world)}, {self.experiment.objective}, {self.state})"

    @property
    def path(self) -> Path:
        return self.files.path

    @property
    def bare(self) -> "Run":
        """This run in the units of its model, in which it is measured."""
        return self

    @property
    def state(self) -> str:
        """``done``, ``failed`` (see failure.json), ``running``, ``unfinished`` or ``damaged``."""
        return state_of(self.files).column

    @property
    def config(self) -> dict[str, Any]:
        """All settings, as config.json has them."""
        return experiment_to(self.experiment)

    @cached_property
    def experiment(self) -> Experiment:
        return read_experiment(self.files)

    @property
    def decodes(self) -> bool:
        """Whether the model can turn codes into examples; some methods train an encoder alone."""
        return self.experiment.objective.decodes

    @property
    def encodes(self) -> bool:
        """Whether the model makes codes of examples; a manipulation of images does not."""
        return self.experiment.objective.encodes

    def require_codes(self) -> None:
        """Raise the one sentence about runs that make no codes, where this is one."""
        if not self.encodes:
            raise NoCodes(self.experiment.objective.name)

    def require_decoder(self) -> None:
        """Raise the one sentence about models without a decoder, where this is one."""
        self.require_codes()
        if not self.decodes:
            raise NoDecoder(self.experiment.objective.name)

    @cached_property
    def model(self) -> Model:
        """The trained model, ready to use."""
        self._require_done()
        if not self.files.has("model.safetensors"):
            raise FileNotFoundError(f"{self.path} has no weights: only its measures were brought here (weights.json)")
        return self.load_weights("model.safetensors")

    @cached_property
    def history(self) -> History:
        """Every loss term and the statistics of every latent over training; of a failed run, up to its failure."""
        if state_of(self.files).word != "failed" or not self.files.names("history."):
            self._require_done()
        return read_history(self.files)

    @cached_property
    def data(self) -> Data:
        """The data the run was trained on."""
        return self.experiment.world.load()

    @property
    def snapshots(self) -> dict[int, str]:
        """Step to file name, for the weights kept during training."""
        return steps(self.files, "snapshots/")

    def load_weights(self, name: str) -> Model:
        """The model with the weights of one file of this folder: a snapshot, for example."""
        place, experiment = self.path / name, self.experiment
        tensors, metadata = read_tensors(self.files.read(name), place)
        architecture = _architecture(experiment, _form(metadata, place), place)
        model = model_with(experiment.objective, architecture, tensors, place)
        return model.to(self.device, memory_format=torch.channels_last).eval().requires_grad_(False)  # type: ignore[call-overload]

    def rows(self, n: int, seed: int = 0) -> Int[Tensor, " sample"]:
        """Rows of the data, drawn without repetition; held-out ones where the run kept some."""
        _require_count(n, "examples")
        trained = training_rows(self.experiment, len(self.data))
        pool = torch.arange(len(self.data))
        if trained is not None:
            pool = pool[~torch.isin(pool, trained)]
        order = rng.words(seed, rng.Purpose.EVALUATE, 0, len(pool), 1)[:, 0].argsort(stable=True)
        return pool[order[: min(n, len(pool))]]

    def images(self, n: int = 8, seed: int = 0) -> Float[Tensor, "sample ..."]:
        """Some examples of the data."""
        return self.data.examples(self.rows(n, seed), seed=seed)

    @property
    def reads_labels(self) -> bool:
        """Whether the model encodes examples together with their labels."""
        return self.experiment.objective.reads_labels

    def labels(
        self, n: int = 8, seed: int = 0, *, rows: Int[Tensor, " sample"] | None = None
    ) -> Float[Tensor, "sample label"] | None:
        """The labels that go with :meth:`images`, or with given rows; None for a model that reads none."""
        if not self.reads_labels:
            return None
        return self.data.given(self.rows(n, seed) if rows is None else rows).to(torch.float32)

    @torch.no_grad()
    def encode(
        self,
        images: Any,
        labels: Any = None,
        *,
        seed: int = 0,
        batch_size: int = 256,
    ) -> Code:
        """Mean, variance, sample and KL of every latent, in batches; the same seed gives the same samples.

        Images are tensors, arrays or lists, one or many, bytes or numbers from 0 to 1, channels first or last. A model
        that reads labels needs a row of them for every image (:meth:`labels`); to others they mean nothing.
        """
        self.require_codes()
        images = as_images(images, self.model.architecture.shape)
        told = () if not self.reads_labels else (self._checked(labels, len(images)),)
        parts = []
        for place, (images_here, *labels_here) in enumerate(zip(*(part.split(batch_size) for part in (images, *told)))):
            noise = rng.normal(seed, rng.Purpose.EVALUATE, place, len(images_here), self.experiment.latents)
            moved = (part.to(self.device) for part in (images_here, noise, *labels_here))
            parts.append(self.model.code(*moved).map(Tensor.cpu))
        return joined(parts)

    @torch.no_grad()
    def outputs(self, codes: Any) -> Float[Tensor, "sample ..."]:
        """The decoder's raw outputs for codes: logits, for a Bernoulli likelihood."""
        self.require_decoder()
        codes = as_codes(codes, self.model.architecture.latents)
        return torch.cat([self.model.decoder(part.to(self.device)).cpu() for part in codes.split(256)])

    def decode(self, codes: Any) -> Float[Tensor, "sample ..."]:
        """What the model shows for given codes: tensors, arrays or lists, one or many."""
        return self.model.architecture.likelihood.mean(self.outputs(codes))

    def reconstruct(self, images: Any, labels: Any = None) -> Float[Tensor, "sample ..."]:
        """Images through the mean code and back."""
        return self.decode(self.encode(images, labels).mean)

    def traverse(
        self,
        image: Any = None,
        labels: Any = None,
        *,
        latents: list[int] | None = None,
        n: int = 9,
        width: float = 2.5,
    ) -> Float[Tensor, "latent step ..."]:
        """One row a latent: the image's code with that latent moved by ±width deviations of its prior.

        Where there is no prior (``ae``, ``qlae``) these are deviations of the codes of examples, from their mean.
        """
        self.require_decoder()
        chosen = list(range(self.experiment.latents)) if latents is None else list(latents)
        if unknown := [latent for latent in chosen if latent not in range(self.experiment.latents)]:
            raise ValueError(f"this model has the latents 0 to {self.experiment.latents - 1}, and not {unknown[0]!r}")
        start = self.start(image, labels)
        codes = start.mean[0].repeat(len(chosen), n, 1)
        for row, latent in enumerate(chosen):
            codes[row, :, latent] = start.in_deviations(0, latent, torch.linspace(-width, width, n))
        return self.decode(codes.flatten(0, 1)).unflatten(0, (len(chosen), n))

    def start(self, image: Any = None, labels: Any = None) -> Code:
        """The code of one image, or of the first example; of a model without a prior, with that of its codes."""
        if image is None:
            found = self.encode(self.images(1), self.labels(1))
        else:
            found = self.encode(image, None if labels is None else labels[None])
        if len(found.mean) != 1:
            raise ValueError(f"a traversal starts from one example, and {len(found.mean)} were given: choose one")
        if self.has_prior:
            return found
        codes = self._codes_of_examples
        spread = codes.var(0, correction=0, keepdim=True).log()
        return replace(found, prior_mean=codes.mean(0, keepdim=True), prior_log_variance=spread)

    @property
    def has_prior(self) -> bool:
        """Whether training has drawn codes to a prior, or from one."""
        return not isinstance(self.experiment.objective.posterior, Deterministic)

    @cached_property
    def _codes_of_examples(self) -> Float[Tensor, "sample latent"]:
        return self.encode(self.images(N_CODES), self.labels(N_CODES)).mean

    @torch.no_grad()
    def sample(
        self, n: int = 8, *, labels: Mapping[str, Any] | None = None, seed: int = 0
    ) -> Float[Tensor, "sample ..."]:
        """New examples: codes drawn from the prior, decoded.

        Where there is none (``ae``, ``qlae``) every latent is that of some example. Where the prior is one of labels,
        ``labels`` chooses some by name, ``{"shape": 2}``; the others are those of examples of the data.
        """
        _require_count(n, "examples")
        self.require_decoder()
        noise = rng.normal(seed, rng.Purpose.EVALUATE, 0, n, self.experiment.latents)
        if not self.experiment.objective.samples_by_label:
            if labels:
                raise ValueError(f"{self.path} knows no labels: it was trained by {self.experiment.objective.name}")
            return self.decode(noise if self.has_prior else self._mixed_codes(n, seed))
        mean, log_variance = self._prior_codes(n, labels or {}, seed)
        return self.decode(mean + torch.exp(0.5 * log_variance) * noise)

    def _mixed_codes(self, n: int, seed: int) -> Float[Tensor, "sample latent"]:
        """Codes put together of those of examples, each latent of another one."""
        codes = self._codes_of_examples
        return codes.gather(0, rng.integers(len(codes), seed, rng.Purpose.EVALUATE, 2, n, codes.shape[1]))

    def _prior_codes(self, n: int, chosen: Mapping[str, Any], seed: int) -> tuple[Tensor, Tensor]:
        """Mean and log-variance of the prior for labels of the data, some of them chosen."""
        data, sizes = self.data, self.model.architecture.labels
        told = self.experiment.objective.labels_of_samples(data.given_names)
        for name in (name for name in chosen if name not in told):
            raise unknown("label", name, told)
        rows = rng.integers(len(data), seed, rng.Purpose.EVALUATE, 1, n, 1)[:, 0]
        table = with_chosen(data.given(rows).to(torch.float32), chosen, data.given_names)
        model: Any = self.model
        mean, log_variance = model.prior_of(checked_labels(table, n, data.given_names, sizes).to(self.device))
        return mean.cpu(), log_variance.cpu()

    def _checked(self, labels: Any, n: int) -> Float[Tensor, "sample label"]:
        sizes, space = self.model.architecture.labels, self.experiment.world.card().space
        names = space.names if space is not None and len(space.names) == len(sizes) else map(str, range(len(sizes)))
        return checked_labels(labels, n, tuple(names), sizes)

    def _require_done(self) -> None:
        state = state_of(self.files)
        if state.word == "damaged":
            raise DamagedFile(f"{self.path} is {state}")
        if state.word == "failed":
            raise ValueError(f"{self.path} has no trained model: {state}. {state.reason}")
        if state.word != "done":
            advice = (
                "wait for its end"
                if state.word == "training"
                else f"finish it with: {resume_words(self.path, self.experiment)}"
            )
            raise ValueError(f"{self.path} is {state.column}; {advice}")


def _architecture(experiment: Experiment, form: Form, place: Path) -> Architecture:
    try:
        return experiment.architecture(form.shape, form.labels)
    except ValueError as error:
        words = "×".join(map(str, form.shape))
        raise ValueError(
            f"{place} says that examples are {words}, which the run's settings do not fit: {error}"
        ) from error


def _require_count(n: Any, what: str) -> None:
    if not isinstance(n, Integral) or n < 0:
        raise ValueError(f"n is how many {what} to draw, a whole number from 0 on, not {n!r}")


def joined(codes: Sequence[Code]) -> Code:
    """The codes of several batches as one."""
    names = [name for name, value in vars(codes[0]).items() if value is not None]
    return Code(**{name: torch.cat([getattr(code, name) for code in codes]) for name in names})


def _form(metadata: dict[str, str], place: Path) -> Form:
    parts = [part.split(",") for part in str(metadata.get("shape", "")).split(" ")]
    if len(parts) > 2 or not all(
        size.isascii() and size.isdecimal() and len(size) < 10 for sizes in parts for size in sizes
    ):
        raise ValueError(f"{place} does not say of which shape the examples are")
    shape, *labels = (tuple(map(int, sizes)) for sizes in parts)
    if not all(0 < size <= 100_000 for size in shape):
        raise ValueError(f"{place} does not say of which shape the examples are")
    return Form(shape, *labels)
