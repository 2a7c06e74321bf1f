"""The strength of an objective: the one number that published studies vary."""

from unweave.models import Method

STRENGTHS = {
    "beta_vae": "beta",
    "factor_vae": "gamma",
    "beta_tcvae": "beta",
    "dip_vae_i": "off_diagonal",
    "dip_vae_ii": "off_diagonal",
    "annealed_vae": "capacity",
}
"""Of each objective the field that is its strength. A larger capacity is a *weaker* regulariser."""


def strength_of(objective: Method) -> float:
    """β, γ, λ_od or the capacity; an objective without such a number is refused by name."""
    return float(getattr(objective, STRENGTHS[objective.name]))
