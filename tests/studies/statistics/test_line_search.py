"""A line search: over-pruned runs are counted and left out."""

import numpy as np
import pytest

from unweave.studies.statistics.line_search import line_search


def test_over_pruned_runs_do_not_decide() -> None:
    strengths = np.repeat([1.0, 2.0, 4.0], 4)
    scores = np.array([0.1, 0.2, 0.1, 0.2, 0.5, 0.6, 0.5, 0.6, 0.9, 0.9, 0.9, 0.3])
    n_active = np.array([5, 5, 5, 5, 5, 5, 5, 4, 2, 2, 2, 5])
    found = line_search(strengths, scores, n_active, 5)
    assert found.best == 2.0
    assert [point.n_discarded for point in found.points] == [0, 1, 3]
    assert found.points[1].mean == pytest.approx(np.mean([0.5, 0.6, 0.5]))
    assert found.points[1].interval is not None
    assert line_search(strengths, scores, np.zeros(12), 5).best is None


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="3, 2 and 3"):
        line_search([1.0, 2.0, 3.0], [0.1, 0.2], [3, 3, 3], 2)
