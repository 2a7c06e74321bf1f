"""What people install: a wheel that runs the demo, shows the explorer and has its models, without the repository."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SEES = """
import unweave, sys
assert unweave.__file__.startswith(sys.argv[1]), unweave.__file__
assert unweave.load("zoo:demo-0").state == "done"
from starlette.testclient import TestClient
from unweave.web.app import create_app
page = TestClient(create_app("runs"), base_url="http://127.0.0.1").get("/")
assert page.status_code == 200 and "<script" in page.text
"""


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_wheel_runs_without_the_repository(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(tmp_path / "dist"), str(ROOT)], check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    installed, empty = tmp_path / "installed", tmp_path / "empty"
    subprocess.run([*pip, "install", "--no-deps", "--target", str(installed), str(wheel)], check=True)
    empty.mkdir()
    told = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    for words in (["-m", "unweave", "demo"], ["-m", "unweave", "zoo"], ["-c", SEES, str(installed)]):
        subprocess.run([sys.executable, *words], check=True, cwd=empty, env=told)
    assert (empty / "runs/demo/report.html").stat().st_size > 10_000
