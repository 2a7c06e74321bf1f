"""What a study has cost: hours of each kind of machine, and how many such models a day would give."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from unweave.studies.statistics.settings import column
from unweave.words import number_of

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
    share: float | None = None
    """Of a GPU: what the steps had to move at the least, beside what the card could copy in that time."""

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


def share_of(table: "pl.DataFrame") -> float | None:
    """How much of a GPU was in use, over all the time that was noted together with a share; None where none was."""
    import polars as pl

    if "cost.share" not in table.columns:
        return None
    known = table.filter(pl.col("cost.share").is_not_null())
    seconds = column(known, "cost.seconds")
    return float((column(known, "cost.share") * seconds).sum() / seconds.sum()) if seconds.sum() > 0 else None


def words_of(costs: tuple[Cost, ...]) -> str:
    """A sentence for each kind of device."""
    if not costs:
        return "no time was noted with these runs"
    return "; ".join(map(_words, costs))


def _words(cost: Cost) -> str:
    unit = "core" if cost.device == "cpu" else "GPU"
    pace = f", {cost.models_per_day:,.0f} such models a day" if cost.models_per_day else ""
    hours = f"{cost.hours:.2f}" if cost.hours >= 0.1 else f"{cost.hours:.2g}"
    share = f", {cost.share:.0%} of the card in use" if cost.share is not None else ""
    return f"{hours} {unit}-hours on {cost.device} for {number_of(cost.n_models, 'model')}{pace}{share}"


def _cost(device: str, part: "pl.DataFrame") -> Cost:
    seconds = column(part, "cost.seconds")
    total = float(seconds.sum())
    pace = 86400 * part.height / total if total > 0 else None
    return Cost(device, part.height, total / 3600, pace, share_of(part))
