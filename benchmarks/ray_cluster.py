"""A Ray cluster on loopback, of a head without cores and two nodes with one core each, whose nodes can be killed."""

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

HEAD, PLACES = "127.0.0.2", ("127.0.0.3", "127.0.0.4")


class RayCluster:
    """Every node is a session of processes, so that it can be found and killed as a whole."""

    def __enter__(self) -> "RayCluster":
        self.environment = dict(os.environ)
        self.home = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))  # the paths of its sockets must be short
        # a cluster asks for a token: this one gets its own, and so does whoever this process starts
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
        os.environ |= {"RAY_worker_niceness": "0"}  # 15 unless told; a busy machine would hardly let them work
        port, self.nodes = _free_port(), dict[str, subprocess.Popen[bytes]]()
        self.address = f"{HEAD}:{port}"
        head = ["--head", f"--port={port}", "--include-dashboard=false", "--num-cpus=0", f"--temp-dir={self.home}"]
        try:
            self._start(HEAD, head)
            for place in PLACES:
                self._start(place, [f"--address={self.address}", "--num-cpus=1"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for place in reversed(self.nodes):
            self.kill(place, with_workers=True)
        shutil.rmtree(self.home, ignore_errors=True)
        os.environ.clear()
        os.environ.update(self.environment)

    def replace(self, place: str, with_workers: bool) -> None:
        """Kill a node, and start another in its place. Workers that are spared outlive it for a while."""
        self.kill(place, with_workers)
        self._start(place, [f"--address={self.address}", "--num-cpus=1"])

    def _start(self, place: str, options: list[str]) -> None:
        command = [str(Path(sys.executable).with_name("ray")), "start", "--block", "--disable-usage-stats"]
        command += ["--object-store-memory", "80000000", f"--node-ip-address={place}", *options]
        log = self.home / f"{place}-{time.monotonic_ns()}.txt"
        with log.open("wb") as file:
            self.nodes[place] = subprocess.Popen(command, stdout=file, stderr=file, start_new_session=True)
        until = time.monotonic() + 120
        while b"Ray runtime started" not in log.read_bytes():
            if time.monotonic() > until or self.nodes[place].poll() is not None:
                raise RuntimeError(f"the node {place} does not start: {log.read_text()}")
            time.sleep(0.1)

    def kill(self, place: str, with_workers: bool) -> None:
        """Kill a node; a dead one stays dead."""
        node = self.nodes[place]
        session = [pid for pid, _, session in living() if session == node.pid]
        with contextlib.suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)  # the raylet and its agents; every worker has a group of its own
        for pid in session if with_workers else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        node.wait()


def living() -> Iterator[tuple[int, int, int]]:
    """Process, parent and session of everything that runs on this machine."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            if state != "Z":
                yield int(stat.parent.name), int(parent), int(session)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HEAD, 0))
        return int(free.getsockname()[1])
