"""What a study has cost: hours of each kind of machine, and how many such models a day would give."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from unweave.studies.statistics.settings import column

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Cost:
    """Of the runs trained on one kind of device."""

    device: str
    n_models: int
    hours: float
    """Of one core, or of one GPU, for the training alone."""
    models_per_day: float | None

    def to_plain(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


def cost_of(table: "pl.DataFrame") -> tuple[Cost, ...]:
    """From the seconds that workers noted with each run; runs without a note are left out."""
    import polars as pl

    if "cost.seconds" not in table.columns or "cost.device" not in table.columns:
        return ()
    known = table.filter(pl.col("cost.seconds").is_not_null())
    return tuple(_cost(str(name), part) for (name,), part in known.group_by(["cost.device"], maintain_order=True))


def words_of(costs: tuple[Cost, ...]) -> str:
    """A sentence for each kind of device."""
    if not costs:
        return "no time was noted with these runs"
    return "; ".join(map(_words, costs))


def _words(cost: Cost) -> str:
    unit = "core" if cost.device == "cpu" else "GPU"
    pace = f", {cost.models_per_day:,.0f} such models a day" if cost.models_per_day else ""
    hours = f"{cost.hours:.2f}" if cost.hours >= 0.1 else f"{cost.hours:.2g}"
    return f"{hours} {unit}-hours on {cost.device} for {cost.n_models} models{pace}"


def _cost(device: str, part: "pl.DataFrame") -> Cost:
    seconds = column(part, "cost.seconds")
    total = float(seconds.sum())
    return Cost(device, part.height, total / 3600, 86400 * part.height / total if total > 0 else None)
