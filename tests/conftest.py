"""Shapes are checked in every test; real data is used where it lies beside the checkout."""

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

from jaxtyping import install_import_hook

if "JAXTYPING_DISABLE" not in os.environ:
    install_import_hook("unweave", "beartype.beartype")

import hypothesis
import pytest
import torch

# no example is late on a shared machine, and the same ones come every time
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.load_profile("steady")

SHARED = Path(__file__).parents[2] / "shared"
SLOW_MAY_TAKE = 1800


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests train real models: on a busy machine they may take long, and still end."""
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_MAY_TAKE))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file stay in one process: what they share is made once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the user's data folder."""
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path_factory.getbasetemp() / "data"))


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """No test is slower, or rounds otherwise, because the one before it asked for threads."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data, where there is one."""
    if not SHARED.exists():
        pytest.skip("the folder `shared` with real data is not beside this checkout")
    return SHARED


@pytest.fixture
def real_cars(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Cars3D's own pictures, where they are: their file, which the data folder of the test has too."""
    source = shared / "data" / "cars3d_64.npz"
    if not source.exists():
        pytest.skip("cars3d_64.npz is not here")
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    (tmp_path / "cars3d").mkdir()
    (tmp_path / "cars3d" / source.name).symlink_to(source)
    return source


@pytest.fixture(scope="session")
def reference() -> Path:
    """Values that the original implementations gave; see tests/reference/README.md."""
    return Path(__file__).parent / "reference"


@pytest.fixture
def gpu() -> torch.device:
    """A CUDA device, or a visible skip."""
    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    return torch.device("cuda")
