"""Modularity (Ridgeway and Mozer, 2018).

```
modularity = mean over latents j of 1 − Σ_{k≠best} I(z_j; v_k)² / (I(z_j; v_best)² (K − 1))
```

**Protocol.** The same counts as MIG, 20 bins; disentanglement_lib reports it with explicitness as
`modularity_explicitness`.

**Rewards.** Latents with one factor each, however many share it.

**Misses.** Whether the factors are represented at all, and how well: only ratios enter. **Noise looks modular**, for
of several tiny informations one is always the largest.

## Known defects, and what is done about them

- **Chance is high.** Random codes get 0.35 to 0.65 depending on the factors: the more values one factor has, the more
  biased its information, the more modular noise looks (the ideal code of Cars3D with noise gets 0.99, that of
  dSprites 0.82). Use `--adjust chance`.
- **Idle latents count.** Dead ones with 0, noise with its chance level, so an ideal code loses by having latents to
  spare. Mended: `average="information"` weighs every latent by what it tells.
- Exactly constant codes got 0.45 from the original under old scikit-learn (rounding dust of 1e-16 was taken for
  information) and 0 under new; here 0.
"""

from dataclasses import dataclass
from typing import Any

import torch

from unweave.metrics.estimators.arrays import Score, as_score
from unweave.metrics.estimators.information import informed
from unweave.metrics.row import COUNTED, Metric
from unweave.shapes import Float, Tensor


@dataclass(frozen=True)
class Modularity:
    """``score`` is the mean of ``per_latent``, plain or weighted by what each latent tells."""

    score: Score
    per_latent: Float[Tensor, "*model latent"]
    mutual: Float[Tensor, "*model latent factor"]


def modularity(codes: Any, factors: Any = None, *, n_bins: int = 20, average: str = "latents") -> Modularity:
    """How nearly each latent tells about one factor only: 1 less its mean squared deviation from that template.

    The published ``average="latents"`` counts every latent alike, dead ones with 0 and noise with about 0.4, so an
    ideal code with idle latents loses (0.82 for ten latents on dSprites). ``"information"`` weights every latent by
    the information it holds, Σ_k I(z_j; v_k): idle latents drop out.

    With one factor every latent that tells anything is modular. A code that tells nothing scores 0. A constant
    factor counts among the factors a latent does not tell about, which raises the score.
    """
    if average not in ("latents", "information"):
        raise ValueError(f"average must be 'latents' or 'information', not {average!r}")
    mutual = informed(codes, factors, n_bins).mutual
    per_latent = _per_latent(mutual)
    weight = mutual.sum(-1) if average == "information" else torch.ones_like(per_latent)
    score = (weight * per_latent).sum(-1) / weight.sum(-1).clamp(min=1e-300)
    return Modularity(as_score(score), per_latent, mutual)


def _per_latent(mutual: Float[Tensor, "*model latent factor"]) -> Float[Tensor, "*model latent"]:
    best = mutual.amax(-1)
    # by the largest entry before squaring: an information of 1e-200 nats must not vanish
    squares = (mutual / best.clamp(min=1e-300)[..., None]).square()
    # 1 − (Σ_k I_jk² − max_k I_jk²) / (max_k I_jk² (K − 1))
    deviation = (squares.sum(-1) - 1.0) / max(1, mutual.shape[-1] - 1)
    return torch.where(best > 0, 1.0 - deviation, 0.0)


ROW = Metric(
    modularity,
    name="modularity",
    title="Modularity",
    tells="Is each latent informative about one factor at most?",
    kind="supervised",
    needs="codes factors",
    range=(0.0, 1.0),
    better="more",
    invariant_to=COUNTED,
    at_chance="0 for a constant code, but about 0.35 for random codes and more beside a factor of many values",
    paper="ridgeway2018learning",
    example='modularity(codes, factors, average="information").per_latent',
    counted=True,
    batched=True,
)
