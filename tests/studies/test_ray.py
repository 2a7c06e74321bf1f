"""Ray: the same store as anywhere, and a node killed midway costs nothing but time."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from ray_cluster import PLACES, RayCluster
from test_local import mixed, results
from tiny_studies import tiny, tiny_study

from unweave.studies.executors.on_ray import OnRay, _heard
from unweave.studies.outage import Outage
from unweave.studies.pack import Pack
from unweave.studies.run import run_study
from unweave.studies.store import Store

pytest.importorskip("ray")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


def test_ray_makes_the_store_that_one_process_makes(tmp_path: Path) -> None:
    run_study(mixed(), tmp_path / "here")
    found = run_study(mixed(), tmp_path / "ray", execute=OnRay(2))
    assert found.table.height == 4
    assert results(tmp_path / "here") == results(tmp_path / "ray")


def test_workers_that_die_are_held_against_a_run_and_nodes_are_not(tmp_path: Path) -> None:
    import ray

    pack, ended = Pack((tiny(),)), list[Pack]()
    folder = Store(tmp_path).prepare().folder(pack.experiments[0].id)

    def heard(error: Exception) -> list[Pack]:
        def get(reference: None) -> None:
            raise error

        named = SimpleNamespace(get=get, exceptions=ray.exceptions)
        return _heard(named, None, pack, tmp_path, ended.append, Outage())

    assert heard(ray.exceptions.NodeDiedError("gone")) == [pack]
    assert not ended
    assert not folder.has("failure.json")
    assert heard(ray.exceptions.WorkerCrashedError()) == []
    assert ended == [pack]
    assert "died 4 times" in folder.read_json("failure.json")["reason"]


@pytest.fixture
def cluster() -> Iterator[RayCluster]:
    with RayCluster() as found:
        yield found


DRIVER = """
import sys
from tiny_studies import tiny, tiny_study
from unweave.studies.executors.on_ray import OnRay
from unweave.studies.run import run_study
from unweave.training.running import RunOptions
run_study(tiny_study(4, steps=600), sys.argv[1], execute=OnRay(2, sys.argv[2]), how=RunOptions((), 0.05))
"""


@pytest.mark.timeout(600)
def test_a_node_killed_midway_loses_nothing(tmp_path: Path, cluster: RayCluster) -> None:
    # Ray reads the token's environment once a process: so a process of its own
    command = [sys.executable, "-c", DRIVER, str(tmp_path / "ray"), cluster.address]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as driver:
        until, killed = time.monotonic() + 200, False
        while driver.poll() is None and not killed and time.monotonic() < until:
            killed = len({path.parent for path in (tmp_path / "ray").glob("fleet-*/checkpoints/*.safetensors")}) >= 2
            time.sleep(0.05)
        cluster.kill(PLACES[1], with_workers=False)
        said = driver.communicate()[1]
        assert driver.returncode == 0, said
    assert killed
    run_study(tiny_study(4, steps=600), tmp_path / "here")
    assert results(tmp_path / "here") == results(tmp_path / "ray")
    assert len(list((tmp_path / "ray").glob("micro-*/model.safetensors"))) == 4
