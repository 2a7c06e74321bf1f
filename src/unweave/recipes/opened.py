"""A run as one has it in a notebook: everything that can be asked of it is a method of it."""

import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from unweave.data.notebook import strip_of
from unweave.data.world import called
from unweave.evaluation.describe import describe
from unweave.evaluation.evaluation import Evaluation, evaluate
from unweave.recipes.diagnose import Diagnosed, diagnose_run
from unweave.training import run as training

if TYPE_CHECKING:
    import matplotlib.figure


class Run(training.Run):
    """A run by its folder: its model, its history, its data, and all that can be measured, told and drawn of them."""

    def to(self, device: str) -> "Run":
        """The same run with its model on another device; results come on the CPU all the same."""
        return Run(self.path, device)

    @property
    def scores(self) -> dict[str, Any]:
        """What `unweave evaluate` wrote into the folder, or nothing."""
        return self.files.read_json("scores.json") if self.files.has("scores.json") else {}

    def evaluate(self, **options: Any) -> Evaluation:
        """Every metric of mean and sampled codes; options are those of :func:`unweave.evaluate`.

        >>> import unweave as uw
        >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
        >>> found = run.evaluate(metrics=["mig"], n_samples=300, seeds=0)
        >>> 0 <= float(found.scores["mean"]["mig"]) <= 1
        True
        """
        return evaluate(self, **options)

    def diagnose(self, **options: Any) -> Diagnosed:
        """Which latents are used, and how; options are those of :func:`unweave.diagnose`."""
        return diagnose_run(self, **options)

    def report(self) -> Path:
        """Write the page and the pictures of the run into its folder, and return the page's path."""
        from unweave.pages.run_folder import write_run_page

        return write_run_page(self)

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
        """Images above what the model makes of them: given ones, or eight of the data."""
        from unweave.plots.images import reconstructions
        from unweave.training.given_arrays import as_images

        if images is None:
            images, labels = self.images(8), self.labels(8)
        shown = as_images(images, self.model.architecture.shape)
        return reconstructions(shown.numpy(), self.reconstruct(shown, labels).numpy())

    def plot_traversals(
        self, image: Any = None, labels: Any = None, *, n: int = 9, width: float = 2.5
    ) -> "matplotlib.figure.Figure":
        """One row a latent, moved by ±width deviations of its prior, the most used latent first."""
        from unweave.plots.images import traversals

        frames, found = self.traverse(image, labels, n=n, width=width), describe(self)
        order = found.kl.argsort(descending=True).tolist()
        types, values = [found.types[latent] for latent in order], np.linspace(-width, width, n)
        return traversals(frames[order].numpy(), types, found.kl[order].numpy(), values, order)

    def _repr_html_(self) -> str:
        """What it is, and a few of its pictures above what it makes of them."""
        one = self.experiment
        words = f"{one.objective} on {called(one.world)}, {one.latents} latents, {one.steps:,} steps: {self.state}"
        told = f"<p><b>{html.escape(str(self.path))}</b><br>{html.escape(words)}</p>"
        if self.state != "done" or not (self.encodes and self.decodes and len(self.model.architecture.shape) == 3):
            return told
        images, labels = self.images(8), self.labels(8)
        return f"{told}{strip_of(images)}<br>{strip_of(self.reconstruct(images, labels))}"
