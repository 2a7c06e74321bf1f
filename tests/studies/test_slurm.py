"""SLURM: a one-node cluster on loopback, array jobs, and a signal that saves and requeues."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_local import mixed, results
from tiny_studies import tiny, tiny_study

from unweave.studies.executors import on_slurm
from unweave.studies.executors.executor import Ended
from unweave.studies.executors.on_slurm import OnSlurm
from unweave.studies.pack import Pack
from unweave.studies.run import run_study
from unweave.training.running import RunOptions

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort=26817
SlurmdPort=26818
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={place}/munge.sock
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_res
SelectTypeParameters=CR_Core
SchedulerParameters=bf_interval=1,sched_min_interval=1000
JobRequeue=1
KillWait=60
MpiDefault=none
ReturnToService=2
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
SlurmctldLogFile={place}/slurmctld.log
SlurmdLogFile={place}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def test_packs_that_follow_are_submitted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Pack((tiny(0).resolve(),)), Pack((tiny(1).resolve(),))
    rounds: list[list[Pack]] = []

    def one_round(
        self: OnSlurm, packs: list[Pack], root: Path, how: RunOptions, ended: Ended, file: Path
    ) -> list[Pack]:
        rounds.append(packs)
        for pack in packs:
            ended(pack)
        return []

    monkeypatch.setattr(OnSlurm, "_round", one_round)
    OnSlurm()([first], tmp_path, RunOptions(), lambda pack: [second] if pack is first else None)
    assert rounds == [[first], [second]]


def test_options_of_sbatch_are_read() -> None:
    assert on_slurm._options("partition=gpu, time=240,mem=16GB") == {"partition": "gpu", "time": 240, "mem": "16GB"}
    with pytest.raises(ValueError, match="NAME=VALUE"):
        on_slurm._options("partition")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """munged, slurmctld and slurmd of Debian's packages, on loopback."""
    pytest.importorskip("submitit")
    missing = [name for name in ("slurmctld", "slurmd", "munged", "sbatch") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"needs root and Debian's slurm-wlm and munge; missing: {', '.join(missing) or 'root'}")
    place = Path("/tmp") / f"slurm-test-{os.getpid()}"
    for folder in (place / "state", place / "spool"):
        folder.mkdir(parents=True)
    (place / "slurm.conf").write_text(CONF.format(host=socket.gethostname(), place=place))
    before = os.environ.get("SLURM_CONF")
    os.environ["SLURM_CONF"] = str(place / "slurm.conf")
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        _start(place, daemons)
        yield place
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()
    if before is None:
        del os.environ["SLURM_CONF"]
    shutil.rmtree(place, ignore_errors=True)


def _start(place: Path, daemons: "list[subprocess.Popen[bytes]]") -> None:
    key = place / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    log = (place / "daemons.txt").open("wb")
    commands = (
        ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={place}/munge.sock",
         f"--pid-file={place}/munged.pid", f"--log-file={place}/munged.log", f"--seed-file={place}/munged.seed"],
        ["slurmctld", "-D", "-f", f"{place}/slurm.conf"],
        ["slurmd", "-D", "-f", f"{place}/slurm.conf", "-N", socket.gethostname()],
    )  # fmt: skip
    for command in commands:
        daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
        time.sleep(3)
    log.close()
    until = time.monotonic() + 60
    while "idle" not in subprocess.run(["sinfo", "-h"], capture_output=True, text=True, check=False).stdout:
        if time.monotonic() > until or any(daemon.poll() is not None for daemon in daemons):
            logs = "\n".join(path.read_text(errors="replace")[-2000:] for path in place.glob("*.log"))
            raise RuntimeError(f"slurm does not start: {(place / 'daemons.txt').read_text()} {logs}")
        time.sleep(0.5)


def test_an_array_of_jobs_makes_the_store_that_one_process_makes(tmp_path: Path, slurm: Path) -> None:
    run_study(mixed(), tmp_path / "here")
    found = run_study(mixed(), tmp_path / "slurm", execute=OnSlurm(2))
    assert found.table.height == 4
    assert results(tmp_path / "here") == results(tmp_path / "slurm")


def test_a_signal_saves_requeues_and_goes_on(tmp_path: Path, slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_slurm, "LOOK_EVERY", 0.2)
    study, root, sent = replace(tiny_study(2, steps=800), name="signal"), tmp_path / "slurm", list[str]()
    run_study(study, tmp_path / "here")

    def watch() -> bool:
        """Asked again and again by the executor: sends the signal of a preemption once, when the fleet is under way."""
        if not sent and list(root.glob("fleet-*/fleet.json")):
            jobs = subprocess.run(["squeue", "-h", "-r", "-o", "%i"], capture_output=True, text=True, check=True)
            for job in jobs.stdout.split():
                subprocess.run(["scancel", "--signal=USR2", job], check=True)
                sent.append(job)
        return False

    found = run_study(study, root, execute=OnSlurm(2), how=RunOptions((), 1000.0, watch))
    assert sent
    assert found.table.height == 2
    assert results(tmp_path / "here") == results(root)
    logs = "".join(path.read_text(errors="replace") for path in (root / ".unweave" / "slurm").glob("*.err"))
    logs += "".join(path.read_text(errors="replace") for path in (root / ".unweave" / "slurm").glob("*.out"))
    assert "Requeued job" in logs
