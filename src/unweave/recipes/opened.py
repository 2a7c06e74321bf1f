"""A run as one has it in a notebook: everything that can be asked of it is a method of it."""

import html
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.data.columns import Columns, shortened
from unweave.data.notebook import strip_of
from unweave.data.world import called
from unweave.evaluation.describe import describe
from unweave.evaluation.evaluation import Evaluation, evaluate
from unweave.evaluation.scores import ScoresOfCodes, scores_from_plain
from unweave.models.posteriors import Code
from unweave.recipes.diagnose import Diagnosed, diagnose_run
from unweave.runs.row import reading_scores
from unweave.shapes import Float, Tensor
from unweave.training import run as training
from unweave.training.experiment import Plan

if TYPE_CHECKING:
    import matplotlib.figure


class Run(training.Run):
    """A run by its folder: its model, its history, its data, and all that can be measured, told and drawn of them.

    Of a run on a table, rows go in and come out in the units of its columns: arrays, tensors, lists or data frames.
    """

    @cached_property
    def columns(self) -> Columns | None:
        """The columns of the table that it learned from, with their means and deviations; None for pictures."""
        return self.experiment.world.known_columns()

    @cached_property
    def bare(self) -> training.Run:
        """The same run in the units of its model, in which it is measured."""
        if self.columns is None:
            return self
        found = training.Run(self.path, self.device)
        found.__dict__ |= {name: self.__dict__[name] for name in ("model", "data") if name in self.__dict__}
        return found

    def images(self, n: int = 8, seed: int = 0) -> Float[Tensor, "sample ..."]:
        """Some examples of the data; rows of a table in the units of its columns."""
        found = super().images(n, seed)
        return found if self.columns is None else self.columns.in_units(found)

    def encode(self, images: Any, labels: Any = None, *, seed: int = 0, batch_size: int = 256) -> Code:
        """Mean, variance, sample and KL of every latent, in batches; the same seed gives the same samples.

        Images are tensors, arrays or lists, one or many, bytes or numbers from 0 to 1, channels first or last; rows of
        a table may be a data frame too. A model that reads labels needs a row of them for every example
        (:meth:`labels`); to others they mean nothing.
        """
        if self.columns is not None:
            images = self.columns.standardised(images)
        return super().encode(images, labels, seed=seed, batch_size=batch_size)

    def decode(self, codes: Any) -> Float[Tensor, "sample ..."]:
        """What the model shows for given codes: tensors, arrays or lists, one or many."""
        found = super().decode(codes)
        return found if self.columns is None else self.columns.in_units(found)

    def to(self, device: str) -> "Run":
        """The same run with its model on another device; results come on the CPU all the same."""
        return Run(self.path, Plan(device).resolve().device)

    @property
    def scores(self) -> ScoresOfCodes:
        """What `unweave evaluate` wrote into the folder, of ``mean`` and ``sampled`` codes; empty before that."""
        found = self.files.read_json("scores.json") if self.files.has("scores.json") else {}
        with reading_scores(self.files):
            kept = {name: scores_from_plain(found[name]) for name in ("mean", "sampled") if name in found}
        return ScoresOfCodes(kept)

    def evaluate(self, *, keep: bool = False, **options: Any) -> Evaluation:
        """Every metric of mean and sampled codes; options are those of :func:`unweave.evaluate`.

        With ``keep`` they are written into the run's folder, as `unweave evaluate` does: :attr:`scores`, reports and
        the explorer show them from then on.

        >>> import unweave as uw
        >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
        >>> found = run.evaluate(metrics=["mig"], n_samples=300, seeds=0)
        >>> 0 <= float(found.scores["mean"]["mig"]) <= 1
        True
        """
        if keep:
            self._require_own_folder("scores are")
        found = evaluate(self, **options)
        if keep:
            self.files.write_json("scores.json", found.to_plain())
        return found

    def diagnose(self, **options: Any) -> Diagnosed:
        """Which latents are used, and how; options are those of :func:`unweave.diagnose`."""
        return diagnose_run(self, **options)

    def report(self) -> Path:
        """Write the page and the pictures of the run into its folder, and return the page's path."""
        from unweave.pages.run_folder import write_run_page

        self._require_own_folder("a page is")
        return write_run_page(self)

    def _require_own_folder(self, what: str) -> None:
        """Refuse to write into the package's own models."""
        from unweave.recipes.zoo import OWN

        if self.path.resolve().is_relative_to(OWN.resolve()):
            name = self.path.name
            raise ValueError(
                f"{name} belongs to the package, and {what} written into the run's folder: bring it here with"
                f" `unweave zoo pull {name}` and open runs/{name}"
            )

    def plot_history(self) -> "matplotlib.figure.Figure":
        """Every term of the loss over training."""
        from unweave.plots.training import loss_curves

        history = self.history
        return loss_curves(np.array(history.steps), {name: history.column(name).numpy() for name in history.terms})

    def plot_latents(self) -> "matplotlib.figure.Figure":
        """The KL of every latent, coloured by its type."""
        from unweave.plots.latents import kl_bars

        found = describe(self)
        return kl_bars(found.kl.numpy(), found.types)

    def plot_reconstructions(self, images: Any = None, labels: Any = None) -> "matplotlib.figure.Figure":
        """Images above what the model makes of them: given ones, or eight of the data; of a table, a panel a column."""
        from unweave.plots.columns import column_reconstructions
        from unweave.plots.images import reconstructions
        from unweave.training.given_arrays import as_images

        if images is None:
            n = 8 if self.columns is None else 1000
            images, labels = self.images(n), self.labels(n)
        if self.columns is not None:
            given = self.columns.in_units(self.columns.standardised(images))
            return column_reconstructions(given.numpy(), self.reconstruct(given, labels).numpy(), self.columns.names)
        shown = as_images(images, self.model.architecture.shape)
        return reconstructions(shown.numpy(), self.reconstruct(shown, labels).numpy())

    def plot_traversals(
        self, image: Any = None, labels: Any = None, *, n: int = 9, width: float = 2.5
    ) -> "matplotlib.figure.Figure":
        """One row a latent, moved by ±width deviations of its prior; of a table, one panel a column."""
        from unweave.plots.columns import column_traversals
        from unweave.plots.images import traversals

        n = n if self.columns is None else max(n, 21)  # lines want more points than rows have room for pictures
        frames, found = self.traverse(image, labels, n=n, width=width), describe(self)
        order = found.kl.argsort(descending=True).tolist()
        types, values = [found.types[latent] for latent in order], np.linspace(-width, width, n)
        if self.columns is not None:
            return column_traversals(
                frames[order].numpy(), self.columns.names, types, values, order, np.array(self.columns.deviations)
            )
        return traversals(frames[order].numpy(), types, found.kl[order].numpy(), values, order)

    def _repr_html_(self) -> str:
        """What it is, and a few of its pictures above what it makes of them."""
        one = self.experiment
        words = f"{one.objective} on {called(one.world)}, {one.latents} latents, {one.steps:,} steps: {self.state}"
        told = f"<p><b>{html.escape(str(self.path))}</b><br>{html.escape(words)}</p>"
        if self.columns is not None:
            return f"{told}<p>{html.escape(f'{self.columns}: {shortened(self.columns.names)}')}</p>"
        if self.state != "done" or not (self.encodes and self.decodes and len(self.model.architecture.shape) == 3):
            return told
        images, labels = self.images(8), self.labels(8)
        return f"{told}{strip_of(images)}<br>{strip_of(self.reconstruct(images, labels))}"
