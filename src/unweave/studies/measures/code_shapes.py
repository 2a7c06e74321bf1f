"""Peaks of the codes of every latent: the excess kurtosis of mean and sampled codes (Bonheme, 2023, §6.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from unweave.evaluation.types import types_of
from unweave.shapes import Float, Tensor
from unweave.studies.measures.encoded import encoded
from unweave.studies.measures.measure import Measure
from unweave.training.run import Run


@dataclass(frozen=True)
class CodeShapes(Measure):
    """``shapes.kurtosis_of_mean`` and ``shapes.kurtosis_of_sampled``, latent by latent, beside their types.

    0 for a normal distribution, −1.2 for a uniform one, above 0 for one with a sharp peak; 0 for a constant.
    """

    name: ClassVar[str] = "shapes"
    n_samples: int = 10_000

    def __call__(self, run: Run) -> Mapping[str, Any]:
        code = encoded(run, self.n_samples)
        types = types_of(code)
        return {
            "types": list(types),
            **{f"n_{kind}": types.count(kind) for kind in ("active", "mixed", "passive")},
            "kurtosis_of_mean": _kurtosis(code.mean).tolist(),
            "kurtosis_of_sampled": _kurtosis(code.sampled).tolist(),
        }


def _kurtosis(codes: Float[Tensor, "sample latent"]) -> Float[Tensor, " latent"]:
    centred = codes.double() - codes.double().mean(0)
    square = centred.square().mean(0)
    # E[(z − z̄)⁴] / Var[z]² − 3
    found = centred.pow(4).mean(0) / square.square().clamp(min=1e-300) - 3
    return found.where(square > 1e-12, 0.0)
