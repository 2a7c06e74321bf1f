"""Ray: the same store as anywhere, and a node killed midway costs nothing but time."""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_local import mixed, results
from tiny_studies import tiny_study

from unweave.studies.executors import on_ray
from unweave.studies.executors.on_ray import OnRay
from unweave.studies.run import run_study
from unweave.train.loop import Manner

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

RAY = Path(sys.executable).with_name("ray")
PORT = 26379


def test_ray_makes_the_store_that_one_process_makes(tmp_path: Path) -> None:
    run_study(mixed(), tmp_path / "here")
    found = run_study(mixed(), tmp_path / "ray", execute=OnRay(2))
    assert found.table.height == 4
    assert results(tmp_path / "here") == results(tmp_path / "ray")


@pytest.fixture
def two_nodes(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Callable[[], None]]]:
    """A head without cores on 127.0.0.2 and two nodes with one core each; the second of them can be killed."""
    place = tmp_path_factory.mktemp("ray")
    home = Path("/tmp") / f"ray-test-{os.getpid()}"  # the paths of its sockets must be short
    # a cluster asks for a token: this one gets its own, and so does whoever connects to it
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    environment = os.environ | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    base = [str(RAY), "start", "--block", "--disable-usage-stats", "--object-store-memory", "80000000"]
    head = ["--head", "--node-ip-address=127.0.0.2", f"--port={PORT}", "--include-dashboard=false", "--num-cpus=0"]
    nodes = []
    for name, given in (
        ("head", [*head, f"--temp-dir={home}"]),
        ("one", [f"--address=127.0.0.2:{PORT}", "--node-ip-address=127.0.0.3", "--num-cpus=1"]),
        ("two", [f"--address=127.0.0.2:{PORT}", "--node-ip-address=127.0.0.4", "--num-cpus=1"]),
    ):
        with (place / f"{name}.txt").open("wb") as log:
            command = [*base, *given]
            nodes.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True))
        time.sleep(6 if name == "head" else 1)

    def kill_the_second() -> None:
        os.killpg(nodes[2].pid, signal.SIGKILL)

    yield f"127.0.0.2:{PORT}", kill_the_second
    for node in nodes:
        try:
            os.killpg(node.pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
        node.wait()
    shutil.rmtree(home, ignore_errors=True)


@pytest.mark.timeout(280)
def test_a_node_killed_midway_loses_nothing(
    tmp_path: Path, two_nodes: tuple[str, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    address, kill = two_nodes
    study = replace(tiny_study(4, steps=600), name="nodes")
    run_study(study, tmp_path / "here")
    killed: list[int] = []

    def watch() -> bool:
        """Asked again and again by the executor: kills the node once both have begun to save."""
        if not killed and len(list((tmp_path / "ray").glob("fleet-*/checkpoints/*"))) >= 2:
            killed.append(1)
            kill()
        return False

    monkeypatch.setattr(on_ray, "ASK_EVERY", 0.05)
    found = run_study(study, tmp_path / "ray", execute=OnRay(2, address), how=Manner((), 0.05, watch))
    assert killed
    assert found.table.height == 4
    assert results(tmp_path / "here") == results(tmp_path / "ray")
