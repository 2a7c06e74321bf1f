"""The codes of a run to take away: npz for numpy, parquet for tables."""

import io

import numpy as np

from unweave.evaluation.encode import Encoded, encode, factor_names
from unweave.web.open_runs import OpenRun

MOST = 20_000


def codes_of(opened: OpenRun, n: int) -> Encoded:
    """Codes of up to ``n`` examples with their rows and factors."""
    run = opened.with_data()
    return encode(run, run.rows(n), device="cpu")


def as_npz(opened: OpenRun, n: int) -> bytes:
    """Arrays ``row``, ``mean``, ``variance``, ``sampled``, ``kl`` and, where known, ``factors``."""
    found = codes_of(opened, n)
    arrays = {name: getattr(found, name).numpy() for name in ("mean", "variance", "sampled", "kl")}
    arrays["row"] = found.rows.numpy()
    if found.factors is not None:
        arrays["factors"] = found.factors.numpy()
        arrays["factor_names"] = np.array(factor_names(opened.run.data))
    content = io.BytesIO()
    np.savez_compressed(content, **arrays)
    return content.getvalue()


def as_parquet(opened: OpenRun, n: int) -> bytes:
    """One row an example: ``row``, ``mean_0`` …, ``variance_0`` …, ``sampled_0`` …, ``kl_0`` …, and its factors."""
    import polars as pl

    found = codes_of(opened, n)
    columns: dict[str, np.ndarray] = {"row": found.rows.numpy()}
    for name in ("mean", "variance", "sampled", "kl"):
        columns |= {f"{name}_{place}": column for place, column in enumerate(getattr(found, name).numpy().T)}
    if found.factors is not None:
        columns |= dict(zip(factor_names(opened.run.data), found.factors.numpy().T))
    content = io.BytesIO()
    pl.DataFrame(columns).write_parquet(content)
    return content.getvalue()
