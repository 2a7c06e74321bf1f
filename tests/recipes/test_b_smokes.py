"""Every reproduction of Bonheme (2023) at smoke size, all in one store, so that nothing is trained twice."""

import pytest

from unweave.recipes.reproduce import reproduce
from unweave.recipes.reproductions import REPRODUCTIONS
from unweave.studies.run import run_study

QUICK = ("b-fig-7.1", "b-fig-8.4")
"""Nothing is trained for these."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in REPRODUCTIONS
        if name.startswith("b-")
    ],
)
def test_smoke(name, smokes, tmp_path):
    found = reproduce(name, "smoke", smokes, lambda study: run_study(study, smokes), output=tmp_path)
    assert found.outcome.comparisons
    assert found.outcome.figures
    assert found.outcome.notes
    for one in found.outcome.comparisons:
        assert one.rule
        assert one.n > 0 or one.ours is None
        assert one.verdict == "runs"
        assert one.controls
    assert found.page.exists()
