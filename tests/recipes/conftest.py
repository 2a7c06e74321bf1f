"""One store for all smoke sizes: reproductions that ask the same models train them once."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def smokes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store for the session, or the one that UNWEAVE_SMOKES names: what is trained there is judged, not trained."""
    given = os.environ.get("UNWEAVE_SMOKES")
    return Path(given) if given else tmp_path_factory.mktemp("smokes")
