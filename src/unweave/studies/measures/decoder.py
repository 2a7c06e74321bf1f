"""Distance to orthogonality, disentanglement score, IMA contrast and reconstruction of a run (Zietlow, 2022, ch. 3)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.data.world import Data
from unweave.evaluation.describe import reconstruction_losses
from unweave.evaluation.encode import Encoded
from unweave.evaluation.types import types_of
from unweave.metrics.geometry.ima import ima_contrast
from unweave.metrics.geometry.jacobian import decoder_gram
from unweave.metrics.geometry.orthogonality import dto
from unweave.metrics.polarised.reconstruction import reconstruction_split
from unweave.metrics.supervised.ds import ds
from unweave.shapes import Float, Tensor
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run

N_REBUILT = 2048


@dataclass(frozen=True)
class DecoderGeometry(Measure):
    """How well the latents of a run line up with the directions of its decoder, and with the factors.

    ``dto`` is over all latents, as in the source; ``dto_active`` over those with std(μ) > 0.5. ``ds`` is None where
    there are no factors to predict; class labels are no replacement for them (§3.3.3).
    """

    name: ClassVar[str] = "decoder"
    n_samples: int = 10_000
    n_jacobians: int = 256

    def __call__(self, run: Run) -> Mapping[str, Any]:
        run.require_decoder()
        code = encoded(run, self.n_samples)
        gram = decoder_gram(run.model.decode, code.mean[: self.n_jacobians].to(run.device)).cpu()
        active = [kind == "active" for kind in types_of(code, "spread")]
        aligned = dto(gram)
        return {
            "dto": aligned.score,
            "degenerate": aligned.degenerate,
            "singular_values": aligned.singular_values.mean(0).tolist(),
            "dto_active": dto(gram, active=active).score if any(active) else None,
            "n_active": sum(active),
            "ima": _finite(ima_contrast(gram, active=active).score) if any(active) else None,
            "ds": disentanglement(code, run.data),
            "reconstruction": _reconstruction(run, code),
        }


def disentanglement(code: Encoded, data: Data) -> float | None:
    """DS of the mean codes. Categorical factors are classified, all others regressed; None without factors."""
    if code.factors is None or (data.space is None and not code.factors.is_floating_point()):
        return None
    kinds = None if data.space is None else [_KINDS[factor.kind] for factor in data.space.factors]
    return ds(code.mean, code.factors, kinds=kinds, seed=0).score


def _reconstruction(run: Run, code: Encoded) -> dict[str, float | None]:
    rows = code.rows[:N_REBUILT]
    images = run.data.examples(rows)
    means, sampled = code.mean[:N_REBUILT], code.sampled[:N_REBUILT]
    split = reconstruction_split(images, run.decode(means), run.decode(sampled)[None])
    loss = reconstruction_losses(run, images, run.outputs(sampled)).mean()
    return {
        "loss": _finite(loss.item()),
        "deterministic": split.deterministic,
        "stochastic": split.stochastic,
        "variance": _variance(images),
    }


def _variance(images: Float[Tensor, "sample ..."]) -> float:
    """What the best constant would lose."""
    return float(images.flatten(1).double().var(0, correction=0).sum())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


_KINDS = {"ordinal": "regression", "cyclic": "regression", "categorical": "classification"}
