"""The codes that measures of one run share: encoded once, kept as long as the run is held."""

import weakref

from unweave.evaluation.encode import Encoded, encode
from unweave.training.run import Run

_kept: "weakref.WeakKeyDictionary[Run, dict[tuple[int, int], Encoded]]" = weakref.WeakKeyDictionary()


def encoded(run: Run, n_samples: int, seed: int = 0) -> Encoded:
    """Codes of ``n_samples`` rows (or all there are), drawn by ``seed``; equal arguments give the same object."""
    known = _kept.setdefault(run, {})
    if (n_samples, seed) not in known:
        known[n_samples, seed] = encode(run, run.rows(n_samples, seed), seed=seed)
    return known[n_samples, seed]
