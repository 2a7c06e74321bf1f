"""Evaluate a run: its mean and its sampled codes under every metric, from one encoding per sampling plan."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from unweave.evaluation.encode import Encoded, encode, factor_names
from unweave.evaluation.measure import Measurer
from unweave.evaluation.rows import Metrics, find_rows, row_among
from unweave.evaluation.scores import Scores, about_few, about_one_factor
from unweave.evaluation.types import types_of
from unweave.metrics.supervised.split import N_TEST, N_TRAIN
from unweave.shapes import Shaped, Tensor
from unweave.training.run import Run
from unweave.words import number_of

Watch = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Evaluation:
    """Scores of both representations of a run, and what they were measured on."""

    scores: dict[str, Scores]
    """By representation: ``mean`` and ``sampled``."""
    sample: Encoded
    n_world: int | None
    """Rows that batches with one factor held fixed were drawn from, where it is not the sample itself."""
    factor_names: tuple[str, ...]
    asked: Mapping[str, Any] = field(default_factory=dict)
    """How many samples, and from where interventions: a world may have fewer."""
    correlated: tuple[str, ...] = ()
    """Factors that went together in training, ``x=y:0.2``; in what is measured they are independent."""

    def __repr__(self) -> str:
        examples = number_of(len(self.sample.rows), "example")
        return "\n".join(
            [*(f"{name} codes of {examples}\n{one}" for name, one in self.scores.items()), *self._to_mind()]
        )

    def _repr_html_(self) -> str:
        """A table a representation, for notebooks."""
        told = "".join(f"<p>{html.escape(words)}</p>" for words in self._to_mind())
        return "".join(f"<p>{name} codes</p>{one._repr_html_()}" for name, one in self.scores.items()) + told

    def _to_mind(self) -> list[str]:
        """What has to be known with the scores, the same of both representations."""
        one, n_factors = next(iter(self.scores.values())), len(self.factor_names)
        few = about_few(one, 'adjust="chance"') if n_factors else ""
        return [words for words in (about_one_factor(one, n_factors), few, self.about_correlated()) if words]

    def about_correlated(self) -> str:
        """A sentence on which world is measured, where training saw another; empty else."""
        told = f"Measured where factors are independent; training saw them go together: {', '.join(self.correlated)}."
        return told if self.correlated else ""

    def to_plain(self) -> dict[str, Any]:
        """As dictionaries, lists and numbers, ready for JSON."""
        code = self.sample
        types = types_of(code) if len(code.mean) > 1 else []
        return {
            "n_samples": len(code.rows),
            "n_world": self.n_world,
            "asked": dict(self.asked),
            **({"correlated_in_training": list(self.correlated)} if self.correlated else {}),
            "factor_names": list(self.factor_names),
            "latents": {
                "types": types,
                "kl": code.kl.mean(0).tolist(),
                "mean_variance": code.standardised().variance.mean(0).tolist(),
            },
        } | {name: scores.to_plain() for name, scores in self.scores.items()}


def evaluate(
    run: Run | Path | str,
    *,
    metrics: Metrics = None,
    n_samples: int = N_TRAIN + N_TEST,
    interventions: str = "world",
    representations: Sequence[str] = ("mean", "sampled"),
    seeds: int = 5,
    seed: int = 0,
    adjust: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    factor_bins: int | None = None,
    watch: Watch | None = None,
) -> Evaluation:
    """Encode a run, or the run in a folder, once per sampling plan, and measure mean and sampled codes.

    The sample are ``n_samples`` examples without repetition: the protocol's 10,000 to fit on and 5,000 to test on, or
    all there are. BetaVAE and FactorVAE ask for some three million images with one factor held fixed, more than any
    world has: with ``interventions="world"`` the world is encoded once and draws are looked up, with ``"table"`` they
    come from the sample, which spares the encoding.

    >>> import unweave as uw
    >>> run = uw.train("micro", "runs/tiny", network=uw.MLP((16,), (16,)), latents=3, steps=20, quiet=True)
    >>> found = uw.evaluate(run, metrics=["mig", "mcc"], n_samples=300, seeds=0)
    >>> 0 <= found.scores["mean"]["mig"].value <= 1
    True
    """
    if interventions not in ("world", "table"):
        raise ValueError(f"interventions must be world or table, not {interventions!r}")
    if unknown := set(representations) - {"mean", "sampled"}:
        raise ValueError(f"representations are mean and sampled, not {', '.join(sorted(unknown))}")
    rows, run = find_rows(metrics), (run if isinstance(run, Run) else Run(run)).bare
    sample = encode(run, run.rows(n_samples, seed), seed=seed, watch=_named(watch, "encoding the sample"))
    world = None
    if interventions == "world" and any("pairs" in row.needs.split() for row in rows) and _is_larger(run, sample):
        world = encode(run, torch.arange(len(run.data)), seed=seed, watch=_named(watch, "encoding the world"))
    split = (N_TRAIN, N_TEST) if len(sample.rows) == N_TRAIN + N_TEST else None
    truth = _exact(sample.factors)
    settings = settings_for(run, metrics, options or {})
    measurer = Measurer(truth, metrics, split, seeds, seed, adjust, settings, factor_bins)
    scores = {}
    for name in representations:
        pool = None if world is None else (getattr(world, name), world.factors)
        told = _named_more(watch, f"{name} codes")
        # what is asked of variances is how many latents carry their prior's noise
        variance = sample.standardised().variance if name == "mean" else None
        scores[name] = measurer.measure(getattr(sample, name), variance, pool, watch=told)
    asked = {"samples": n_samples, "interventions": interventions}
    correlated = tuple(getattr(run.experiment.world, "correlated", ()))
    n_world = None if world is None else len(world.rows)
    return Evaluation(scores, sample, n_world, factor_names(run.data), asked, correlated)


def settings_for(run: Run, metrics: Metrics, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The options of metrics by name: those that the run's method asks for, and over them those that are given."""
    rows = find_rows(metrics)
    asked = {row.name for row in rows}
    own = {name: values for name, values in run.experiment.objective.measured.items() if name in asked}
    given = {row_among(name, rows).name: values for name, values in options.items()}
    return own | {name: {**own.get(name, {}), **values} for name, values in given.items()}


def protocol_of_scores(plain: Mapping[str, Any]) -> str:
    """In words, what the numbers of a ``scores.json`` were measured on."""
    settings: Mapping[str, Any] = next((plain[name]["settings"] for name in ("mean", "sampled") if name in plain), {})
    words = [f"{plain['n_samples']:,} examples, drawn by seed {settings.get('seed', 0)}"]
    if split := settings.get("split"):
        words.append(f"{split[0]:,} to fit on and {split[1]:,} to test on")
    words.append(f"interventions from all {plain['n_world']:,}" if plain.get("n_world") else "interventions among them")
    if settings.get("seeds"):
        words.append(f"intervals from {settings['seeds']} random halves")
    if together := plain.get("correlated_in_training"):
        words.append(f"factors independent, though training saw {', '.join(map(str, together))}")
    return ", ".join(words)


def _is_larger(run: Run, sample: Encoded) -> bool:
    """Whether there is a world of factors beyond the sample."""
    return run.data.space is not None and len(run.data) > len(sample.rows)


def _exact(factors: Shaped[Tensor, "sample factor"] | None) -> Tensor | None:
    return None if factors is None else factors.to(torch.float64 if factors.is_floating_point() else torch.int64)


def _named(watch: Watch | None, name: str) -> Callable[[int, int], None] | None:
    return None if watch is None else lambda done, total: watch(done, total, name)


def _named_more(watch: Watch | None, name: str) -> Watch | None:
    return None if watch is None else lambda done, total, what: watch(done, total, f"{name}: {what}")
