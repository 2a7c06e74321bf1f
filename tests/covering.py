"""Which test runs which line, and how long it takes: recorded once by the default suite, asked by mutants.py."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACE = ROOT / "build" / "covering"
LINES, KNOWN = PLACE / "lines", PLACE / "known.json"
LEFT_OUT = ("fuzz", "kills", "browser", "test_ray", "slurm", "gpu", "test_faults", "test_architecture", "test_memory")
"""Parts of names of test files that run whole commands for long, or measure the machine."""
MUCH = 0.2
"""Share of test files that differ, from which everything is recorded again."""


def recorded(processes: int = 2) -> None:
    """Bring the record up to date: all of it, or the test files that are new or differ."""
    now = {path: _sum(ROOT / path, *_helpers(ROOT / path)) for path in _test_files()}
    known = _known()
    other = sorted(path for path, checksum in now.items() if known["tests"].get(path) != checksum)
    if len(other) > MUCH * len(now):
        LINES.unlink(missing_ok=True)
        known, other = _known(nothing=True), sorted(now)
        known["sources"] = {path.relative_to(ROOT).as_posix(): _sum(path) for path in (ROOT / "src").rglob("*.py")}
    if not other:
        return
    known["seconds"] |= _run(other, processes)
    known["tests"] = now
    KNOWN.write_text(json.dumps(known))
    _known.cache_clear()


def tests_of(file: str, lines: Iterable[int]) -> tuple[list[str], list[str]]:
    """Tests that run one of the lines, and test files that run it while something for several tests is made."""
    if not LINES.exists() or _known()["sources"].get(file) != _sum(ROOT / file):
        return [], []
    by_line = _contexts(file)
    contexts = {context for line in lines for context in by_line.get(line, ()) if context}
    called = {test for test, _, when in (context.rpartition("|") for context in contexts) if when == "run"}
    files = {
        test.partition("::")[0]
        for test, _, when in (context.rpartition("|") for context in contexts)
        if when == "setup"
    }
    present = set(_test_files())
    return sorted(test for test in called if test.partition("::")[0] in present), sorted(files & present)


def seconds(test: str) -> float:
    """What a test took when it was recorded."""
    return float(_known()["seconds"].get(test, 1.0))


@cache
def _contexts(file: str) -> dict[int, list[str]]:
    from coverage import CoverageData

    data = CoverageData(basename=str(LINES))
    data.read()
    return data.contexts_by_lineno(str(ROOT / file))


@cache
def _known(nothing: bool = False) -> dict[str, dict[str, object]]:
    if nothing or not KNOWN.exists():
        return {"tests": {}, "sources": {}, "seconds": {}}
    return json.loads(KNOWN.read_text())


def _run(files: list[str], processes: int) -> dict[str, float]:
    PLACE.mkdir(parents=True, exist_ok=True)
    os.environ |= {"COVERAGE_FILE": str(LINES), "OMP_NUM_THREADS": "1"}
    clock = _Clock()
    chosen = ["-q", "-n", str(processes), "-m", "not slow and not browser and not gpu", "-p", "no:cacheprovider"]
    pytest.main([*chosen, "--cov=unweave", "--cov-context=test", "--cov-report=", "--cov-append", *files], [clock])
    return clock.seconds


class _Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] = round(self.seconds.get(report.nodeid, 0.0) + report.duration, 3)


def _test_files() -> Iterator[str]:
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        name = path.relative_to(ROOT).as_posix()
        if not any(part in name for part in LEFT_OUT):
            yield name


def _helpers(test: Path) -> list[Path]:
    """Modules beside a test that are no tests: it may import them."""
    return sorted(path for path in test.parent.glob("*.py") if not path.name.startswith("test_"))


def _sum(*paths: Path) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


if __name__ == "__main__":
    recorded()
