"""What a run's latents are: type, KL and variances over examples."""

from dataclasses import dataclass

from unweave.evaluation.types import types_of
from unweave.metrics.polarised.types import Rule, Type
from unweave.models.method import Method, NoDecoder
from unweave.models.posteriors import Code
from unweave.shapes import Float, Tensor
from unweave.training.run import Run


@dataclass(frozen=True)
class Description:
    """Every latent over a sample of examples, and how well examples are rebuilt from their mean codes.

    Variances are in units of the prior's, where a model learned one. ``reconstruction`` is None, and ``no_decoder``
    says why, where the method trains an encoder alone. ``without_kl`` is the name of a method that has none.
    """

    types: list[Type]
    kl: Float[Tensor, " latent"]
    mean_variance: Float[Tensor, " latent"]
    variance_of_variance: Float[Tensor, " latent"]
    variance_of_mean: Float[Tensor, " latent"]
    reconstruction: float | None
    n_examples: int
    code: Code
    rule: Rule = "variance"
    no_decoder: str = ""
    without_kl: str = ""

    def rows(self) -> list[dict[str, int | float | str]]:
        """One row a latent, the most informative first."""
        names = ("kl", "mean_variance", "variance_of_variance", "variance_of_mean")
        rows: list[dict[str, int | float | str]] = [
            {"latent": latent, "type": kind} | {name: getattr(self, name)[latent].item() for name in names}
            for latent, kind in enumerate(self.types)
        ]
        return sorted(rows, key=lambda row: -float(row["kl"]))


def describe(run: Run, *, n: int = 2048, seed: int = 0, rule: Rule = "variance") -> Description:
    """Encode up to ``n`` examples and say what every latent is."""
    run = run.bare
    images = run.images(n, seed)
    code = run.encode(images, run.labels(n, seed), seed=seed)
    plain = code.standardised()
    variance = plain.variance
    return Description(
        types_of(code, rule),
        code.kl.mean(0),
        variance.mean(0),
        variance.var(0, correction=0),
        plain.mean.var(0, correction=0),
        reconstruction_losses(run, images, run.outputs(code.mean)).mean().item() if run.decodes else None,
        len(images),
        code,
        rule,
        "" if run.decodes else str(NoDecoder(run.experiment.objective.name)),
        without_kl(run.experiment.objective),
    )


def without_kl(method: Method) -> str:
    """The name of a method that has no KL, or anything else that could fade in; nothing for the others."""
    return "" if method.warms_up else method.name


def reconstruction_losses(
    run: Run, images: Float[Tensor, "sample ..."], outputs: Float[Tensor, "sample ..."]
) -> Float[Tensor, " sample"]:
    """The reconstruction loss of every example for given outputs of the decoder."""
    noise = None if run.model.log_noise is None else run.model.log_noise.cpu()
    return run.model.architecture.likelihood.loss(images, outputs, noise)
