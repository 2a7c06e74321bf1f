"""Every command with inputs that nobody means: no traceback, no hang, no silent NaN, no exit 0 on failure, plain words.

python tests/fuzz/fuzzer.py --cases 10000 --seed 0                goes on where it was stopped; --again begins anew
python tests/fuzz/fuzzer.py --only 1234 --seed 0                  one case, with what it said and did

Each case is a fork of this process in a folder of its own, with limits on time, memory and the size of files.
"""

import argparse
import contextlib
import json
import math
import os
import re
import resource
import shlex
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cases import Case, make_case
from pool import make_pool

LIMIT, SERVING = 20.0, 2.0
"""Seconds until a call hangs; until a server is asked to stop."""
LONG = ("train", "resume", "dimension", "demo", "bench", "study", "reproduce")
"""What may work for hours: asked to stop, these must do so."""
MEMORY, FILE = 6 << 30, 300 << 20
LIBRARIES = ("matplotlib.pyplot", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg", "scipy.stats")
LIBRARIES += ("polars", "fastapi.testclient", "PIL.PngImagePlugin", "rich.table", "sklearn.linear_model", "torch.func")
"""What commands import when they need it. Polars begins its threads with its first table, and none is made here."""
INTERNAL = re.compile(
    r"KeyError|AttributeError|TypeError|NoneType|unhashable|has no attribute|list index|index out of range|Traceback"
    r"|[Pp]anic|not subscriptable|unexpected keyword|positional argument|object is not|unsupported operand"
    r"|not supported between|JSON compliant|invalid literal for|(?<!unicode error\) 'utf-8' )codec can't|state_dict"
    r"|mat1 and mat2|size mismatch|^unweave: '?[a-z_]+'?$|(?<!is no JSON: )Expecting (value|property)|recursion depth"
    r"|RuntimeError|0x[0-9a-f]{8}|alloc_cpu|expected str, bytes|must be real number, not|takes no arguments"
    r"|out of range for|unpack|<class |dtype\('|not enough values|math domain|broadcast|\.cpp|Errno",
    re.MULTILINE,
)
"""Words of the machine room. A sentence may quote what was given, so the given words are taken out before."""

NO_NUMBER = re.compile(r"(?<!became )(?<![\w/.\x22-])-?(nan|NaN|Infinity|inf)(?![\w/.-])")


@dataclass(frozen=True)
class Outcome:
    """How a call ended: its status, None for a hang; what it said; what is wrong with that, or nothing."""

    status: int | None
    out: str
    err: str
    seconds: float
    problem: str = ""


def try_case(number: int, seed: int, pool: Path, place: Path) -> tuple[Case, Outcome]:
    """Make a case, run it in a fork, and judge it."""
    shutil.rmtree(place, ignore_errors=True)
    place = place / "around" / "here"  # what is asked for in ../.. is gone before the next case
    case = make_case(number, seed, pool, place)
    begin = time.monotonic()
    pid = _forked(case, place)
    status = _waited(pid, case)
    said = [(place / name).read_text(errors="backslashreplace") for name in ("stdout", "stderr")]
    found = Outcome(status, said[0], said[1], time.monotonic() - begin)
    return case, Outcome(found.status, found.out, found.err, found.seconds, judge(case, found, place))


def judge(case: Case, found: Outcome, place: Path) -> str:
    """What is wrong with an outcome, in a few words; nothing where all is well."""
    said = _without_given(f"{found.err}\n{found.out if case.kind == 'request' else ''}", case)
    said = re.sub(r"the recipe failed \(.*", "", said)  # in the user's own code, and in Python's words
    if found.status is None:
        return "hang"
    if "Traceback" in said:
        return f"traceback: {found.err.strip().splitlines()[-1][:200]}"
    if found.status not in (0, 1, 2, 130):
        return f"status {found.status}: {found.err.strip()[-200:]}"
    if word := INTERNAL.search(said):
        line = next((line for line in said.splitlines() if word[0].splitlines()[0] in line), said)
        return f"internal word {word[0]!r}: {line[:240]}"
    if found.status and not found.err.strip() and not found.out.strip():
        return f"status {found.status} without a word"
    if found.status == 0 and re.search(r"^unweave: ", found.err, re.MULTILINE):
        return f"exit 0 with an error: {found.err.strip()[:200]}"
    if found.status == 0 and case.promised and not (place / case.promised).exists():
        return f"exit 0 without {case.promised}"
    shown = "" if found.status or case.kind == "request" else _without_given(found.out, case)
    return f"silent {number[0]}" if (number := NO_NUMBER.search(shown)) else ""


def _without_given(text: str, case: Case) -> str:
    """What was said, less the words that were given."""
    for word in sorted(case.argv, key=len, reverse=True):
        if len(word) > 2 and not word.startswith("--"):
            text = text.replace(word, "…")
    return text


def _forked(case: Case, place: Path) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        _limit(place)
        status = _ask(case) if case.kind == "request" else _call(case)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _limit(place: Path) -> None:
    os.setsid()
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), stream)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.chdir(place)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))


def _call(case: Case) -> int:
    from unweave.cli import main

    return main(case.argv)


def _ask(case: Case) -> int:
    from fastapi.testclient import TestClient

    from unweave.web.app import create_app
    from unweave.web.guard import Door

    app, wrong = create_app(case.argv[0], Door(("testserver",))), 0
    app.state.catalogue.refresh()
    with TestClient(app, raise_server_exceptions=False) as client:
        for method, path, body in case.requests:
            given = {"content": body} if isinstance(body, bytes) else {"content": json.dumps(body)} if body else {}
            answer = client.request(method, path, headers={"content-type": _type(body)} if body else None, **given)
            text = answer.text if "json" in answer.headers.get("content-type", "") else ""
            print(answer.status_code, method, path, text[:2000])
            wrong += answer.status_code >= 500
            if text and answer.status_code == 200:
                json.loads(text, parse_constant=_no_number)
    return 3 if wrong else 0


def _type(body: object) -> str:
    return "application/octet-stream" if isinstance(body, bytes) else "application/json"


def _no_number(word: str) -> float:
    raise ValueError(f"a silent {word} in an answer")


def _waited(pid: int, case: Case) -> int | None:
    begin, asked, limit = time.monotonic(), False, LIMIT
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        spent = time.monotonic() - begin
        if not asked and spent > (SERVING if case.serves else LIMIT if case.argv[0] in LONG else math.inf):
            os.kill(pid, signal.SIGINT)
            asked, limit = True, spent + LIMIT
        if spent > limit:
            _end_all(pid)
            os.waitpid(pid, 0)
            return None
        time.sleep(0.005)
    _end_all(pid)
    return os.waitstatus_to_exitcode(ended[1])


def _end_all(pid: int) -> None:
    """The call and the workers it has left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


class State:
    """What was tried, one line a failure and one a hundred cases, in a file that a killed run goes on from."""

    def __init__(self, path: Path, seed: int, again: bool) -> None:
        self.path, self.seed, self.failures, self.next = path, seed, list[dict[str, object]](), 0
        if again:
            path.unlink(missing_ok=True)
        for line in path.read_text().splitlines() if path.exists() else ():
            self._take(json.loads(line))

    def _take(self, told: dict[str, object]) -> None:
        if told["seed"] == self.seed:
            self.next = max(self.next, int(str(told["case"])) + 1)
            self.failures += [told] if told.get("problem") else []

    def add(self, case: Case, found: Outcome) -> None:
        told = {"seed": self.seed, "case": case.number}
        if found.problem:
            told |= {"problem": found.problem, "kind": case.kind, "argv": case.argv, "changes": case.changes}
            told |= {"again": f"python tests/fuzz/fuzzer.py --seed {self.seed} --only {case.number}"}
        if found.problem or case.number % 20 == 0 or case.kind == "so far":
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a") as file:
                file.write(json.dumps(told) + "\n")
        self._take(told)


def report(state: State, tried: int) -> str:
    """Distinct failures, most frequent first."""
    groups = Counter(_alike(str(told["problem"])) for told in state.failures)
    lines = [f"{tried} cases tried, {len(state.failures)} failures of {len(groups)} kinds"]
    for alike, count in groups.most_common():
        one = next(told for told in state.failures if _alike(str(told["problem"])) == alike)
        lines += [f"{count:5}  {one['problem']}", f"       {shlex.join(map(str, one['argv']))[:300]}"]  # type: ignore[call-overload]
        lines += [f"       {one['changes']}", f"       {one['again']}"]
    return "\n".join(lines).encode(errors="backslashreplace").decode()


def _alike(problem: str) -> str:
    return re.sub(r"[0-9]+|'[^']*'|/\S+", "·", problem)[:90]


def _numbers(given: argparse.Namespace, state: State) -> Iterator[int]:
    begin, until = given.begin if given.begin is not None else state.next, time.monotonic() + given.minutes * 60
    for number in range(begin, given.cases):
        if time.monotonic() > until:
            return
        yield number


def main() -> int:
    """Try cases and report; 1 where any failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000, metavar="N", help="up to this number")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--from", dest="begin", type=int, metavar="K", help="begin here, whatever was tried before")
    parser.add_argument("--only", type=int, metavar="K", help="one case, and all about it")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many, to go on later")
    parser.add_argument(
        "--state", type=Path, default=Path("build/fuzz.jsonl"), help="what was tried (build/fuzz.jsonl)"
    )
    parser.add_argument("--again", action="store_true", help="forget what was tried")
    parser.add_argument("--failed", action="store_true", help="first try again what failed, and forget what is mended")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="with --only: leave the case's folder there")
    given = parser.parse_args()
    place = Path(tempfile.mkdtemp(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    os.environ |= {"UNWEAVE_DATA": str(place / "data"), "NO_COLOR": "1", "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
    os.environ |= dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")  # nothing is fetched
    try:
        return _all(given, place)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _all(given: argparse.Namespace, place: Path) -> int:
    _prepare(place)
    if given.only is not None:
        case, found = try_case(given.only, given.seed, place / "pool", place / "case")
        print(
            shlex.join(case.argv).encode(errors="backslashreplace").decode(), *case.changes, *case.requests, sep="\n  "
        )
        print(f"{found.out[:3000]}\n{found.err[:3000]}\nstatus {found.status}, {found.seconds:.1f} s")
        print(found.problem or "as it should be")
        if given.keep:
            shutil.copytree(place / "case", given.keep, symlinks=True, dirs_exist_ok=True)
        return bool(found.problem)
    state = State(given.state, given.seed, given.again)
    if given.failed:
        known, state.failures = [int(str(told["case"])) for told in state.failures], []
        given.state.unlink()
        state.add(Case(state.next - 1, "so far"), Outcome(0, "", "", 0.0))
        for number in known:
            state.add(*try_case(number, given.seed, place / "pool", place / "case"))
    for number in _numbers(given, state):
        state.add(*try_case(number, given.seed, place / "pool", place / "case"))
    told = report(state, state.next)
    given.state.with_suffix(".txt").write_text(told + "\n")
    print(told)
    return bool(state.failures)


def _prepare(place: Path) -> None:
    """Import what commands import, so that forks need not, and make the pool in a fork: its threads end with it."""
    import gc
    import importlib
    import pkgutil

    import torch

    import unweave
    from unweave.cli import COMMANDS

    torch.set_num_threads(1)
    for name in LIBRARIES:
        importlib.import_module(name)
    for name in COMMANDS:
        importlib.import_module(f"unweave.cli.{name}")
    for module in pkgutil.walk_packages(unweave.__path__, "unweave."):
        if module.name.startswith(
            ("unweave.web.", "unweave.pages", "unweave.plots", "unweave.evaluation", "unweave.recipes.")
        ):
            importlib.import_module(module.name)
    _warm_up()
    gc.freeze()  # what is never looked at again is not copied into every fork
    pid = os.fork()
    if not pid:
        status = 1
        try:
            make_pool(place / "pool")
            status = 0
        finally:
            os._exit(status)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("the pool of runs and files could not be made")


def _warm_up() -> None:
    """What libraries do once a process: fonts are found, operations on shapes alone are imported."""
    import torch

    from unweave.plots.save import to_png, to_svg
    from unweave.plots.style import new_figure

    figure, axes = new_figure(2, 2)
    axes[0, 0].set_title("µ² $x$")
    to_svg(figure)
    to_png(figure)
    shape = torch.empty(2, 2, device="meta")
    with torch.device("meta"):
        torch.nn.functional.linear(shape, shape, shape[0])


if __name__ == "__main__":
    sys.exit(main())
