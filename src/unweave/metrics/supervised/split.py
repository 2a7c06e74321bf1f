"""One table in two parts: the rows to fit on and the rows to test on."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from unweave.metrics.estimators.arrays import as_codes, as_factors, as_numbers, check_count, check_lengths
from unweave.shapes import Float, Int, Shaped, Tensor

N_TRAIN = 10_000
N_TEST = 5_000
MOST_ROWS = N_TRAIN + N_TEST


@dataclass(frozen=True)
class Split:
    """Codes and factors to fit on and to test on. Categories are numbered 0 … size − 1 over both parts together."""

    codes: Float[np.ndarray, "sample latent"]
    factors: Shaped[np.ndarray, "sample factor"]
    test_codes: Float[np.ndarray, "test latent"]
    test_factors: Shaped[np.ndarray, "test factor"]
    sizes: tuple[int, ...]


def split(
    codes: Any,
    factors: Any,
    test_codes: Any = None,
    test_factors: Any = None,
    *,
    n_train: int | None = None,
    n_test: int | None = None,
    seed: int | None = None,
    share: float | None = None,
    numbers: bool = False,
) -> Split:
    """The first ``n_train`` rows to fit on, the next ``n_test`` to test on; or two tables as they are.

    Without numbers the protocol's 10,000 and 5,000 rows are taken, or all rows in the same proportion where there are
    fewer (``share`` asks for another proportion of all rows). A seed shuffles the rows first. Rows that are sorted
    by a factor would make the parts different worlds: a factor that stands still in the first part alone is refused.
    """
    if (test_codes is None) != (test_factors is None):
        raise ValueError("test_codes and test_factors come together: give both, or neither to split one table")
    if test_codes is not None:
        return _two_tables(codes, factors, test_codes, test_factors, (n_train, n_test), seed, numbers)
    table, (truth, sizes) = _array(codes, "codes"), _truth(factors, "factors", numbers)
    _check_rows(table, truth, "codes", "factors")
    train, test = _rows(len(table), n_train, n_test, seed, share)
    _check_moving(truth, train)
    return Split(table[train], truth[train], table[test], truth[test], sizes)


def drawn_rows(n_rows: int, seed: int | None) -> Int[np.ndarray, " sample"]:
    """The row numbers in the order given, or shuffled."""
    return np.arange(n_rows) if seed is None else np.random.default_rng(seed).permutation(n_rows)


def _two_tables(
    codes: Any, factors: Any, test_codes: Any, test_factors: Any, counts: tuple[Any, Any], seed: Any, numbers: bool
) -> Split:
    train, test = _array(codes, "codes"), _array(test_codes, "test_codes")
    if train.shape[1] != test.shape[1]:
        raise ValueError(f"codes has {train.shape[1]} latents and test_codes {test.shape[1]}: they must agree")
    truth, sizes = _truth(_stack(factors, test_factors), "factors", numbers)
    _check_rows(train, _plain(factors), "codes", "factors")
    _check_rows(test, _plain(test_factors), "test_codes", "test_factors")
    parts = []
    for table, labels, count, name in (
        (train, truth[: len(train)], counts[0], "n_train"),
        (test, truth[len(train) :], counts[1], "n_test"),
    ):
        rows = drawn_rows(len(table), seed)[: _at_most(count, len(table), name)]
        parts += [table[rows], labels[rows]]
    return Split(parts[0], parts[1], parts[2], parts[3], sizes)


def _rows(n_rows: int, n_train: Any, n_test: Any, seed: int | None, share: float | None) -> tuple[Any, Any]:
    order = drawn_rows(n_rows, seed)
    if n_rows < 2:
        raise ValueError(f"codes has {n_rows} row; at least 2 are needed, one to fit on and one to test on")
    if n_train is None and n_test is None and (share is not None or n_rows < N_TRAIN + N_TEST):
        part = share if share is not None else N_TRAIN / (N_TRAIN + N_TEST)
        n_train = min(max(1, round(part * n_rows)), n_rows - 1)
        n_test = n_rows - n_train
    n_test = N_TEST if n_test is None and n_train is None else n_test
    n_train = _at_most(n_train if n_train is not None else min(N_TRAIN, n_rows - int(n_test)), n_rows - 1, "n_train")
    n_test = _at_most(n_test if n_test is not None else min(N_TEST, n_rows - n_train), n_rows - n_train, "n_test")
    return order[:n_train], order[n_train : n_train + n_test]


def _at_most(count: int | None, available: int, name: str) -> int:
    if count is None:
        return available
    check_count(count, name)
    if count > available:
        raise ValueError(
            f"{name} is {count} but only {available} rows are left for it; ask for fewer or give more rows"
        )
    return int(count)


def _check_moving(truth: np.ndarray, train: np.ndarray) -> None:
    still = (truth[train] == truth[train[0]]).all(0) & ~(truth == truth[0]).all(0)
    if still.any() and len(train) > 1:
        raise ValueError(
            f"factors column {int(still.argmax())} has one value in the {len(train)} rows to fit on but more in the "
            "table: the rows look sorted; pass seed=0 to shuffle them"
        )


def _array(codes: Any, name: str) -> Float[np.ndarray, "sample latent"]:
    return np.ascontiguousarray(as_codes(codes, name).to("cpu", torch.float64).numpy())


def _truth(factors: Any, name: str, numbers: bool) -> tuple[np.ndarray, tuple[int, ...]]:
    if numbers:
        return as_numbers(factors, name).cpu().numpy(), ()
    categories = as_factors(factors, name)
    return categories.values.cpu().numpy(), categories.sizes


def _plain(factors: Any) -> np.ndarray:
    table = factors.detach().cpu().numpy() if isinstance(factors, Tensor) else np.asarray(factors)
    return table[:, None] if table.ndim == 1 else table


def _stack(factors: Any, test_factors: Any) -> np.ndarray:
    train, test = _plain(factors), _plain(test_factors)
    if train.shape[1:] != test.shape[1:]:
        raise ValueError(f"factors and test_factors must have the same columns, given {train.shape} and {test.shape}")
    return np.concatenate([train, test])


def _check_rows(table: np.ndarray, truth: np.ndarray, left: str, right: str) -> None:
    check_lengths(torch.empty(len(table), 1), torch.empty(len(truth), 1), (left, right))
