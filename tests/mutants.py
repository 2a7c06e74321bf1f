"""Change one expression at a time in a copy of the package, and see whether a test minds.

python tests/mutants.py --changes 200 --seed 0         goes on where it was stopped; --again begins anew
python tests/mutants.py --only 17                      one change, with what its tests said
python tests/mutants.py --survivors                    what survived, against the tests of today

Comparisons, operators, numbers, negations and slices are changed, as many in each part as it has lines. The tests that
should mind are those that run the line (covering.py records them once), the nearest and the quickest first, and then
those of the files that import the module, nearest first. The first failure ends a trial, and so does the time that a
change may take. What survives is read: it gets a test, or is shown to change nothing.
"""

import argparse
import ast
import contextlib
import copy
import importlib
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import covering

ROOT = Path(__file__).parents[1]
PARTS = ("models", "metrics", "training", "studies", "data", "evaluation")
SLOW = r"fuzz|kills|browser|test_ray|slurm|gpu|test_faults|end_to_end|recipes/|pages/|figures|memory|web/"
SLOWEST = r"fuzz|kills|browser|test_ray|slurm|gpu|test_faults|memory"
"""Test files that take long, and look at whole commands rather than at one expression; those that always do."""
EVERYWHERE = ("tests/contracts/test_defaults.py", "tests/contracts/test_same_numbers.py")
"""Contracts over all modules, which they do not import by name."""
ENOUGH, HUNG, PATIENCE, NEAREST, MOST_FILES = 60, 240, 900.0, 3, 7
"""Seconds of the processor after which no further test is begun, after which one hangs; seconds on a busy machine;
test files that are asked besides those that run the line, and where none does."""
LIBRARIES = (
    "torch",
    "numpy",
    "scipy.stats",
    "sklearn.ensemble",
    "polars",
    "matplotlib",
    "PIL.Image",
)
LIBRARIES += (
    "safetensors.torch",
    "sklearn.linear_model",
    "sklearn.svm",
    "rich.table",
    "h5py",
    "hypothesis.extra.numpy",
)
LIBRARIES += ("beartype.door", "jaxtyping", "pytest_timeout", "scipy.optimize", "scipy.spatial", "sklearn.metrics")
QUICK = ["-q", "-x", "-m", "not slow", "--assert=plain", "-p", "pytest_timeout", "-p", "no:cacheprovider"]
QUICK += ["-p", "no:unraisableexception", "-p", "no:threadexception", "--timeout=300"]
"""Nothing but the tests: plug-ins that they do not need take longer to load than most of them to run."""

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.MatMult: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Change:
    """One expression of one file, and what it becomes."""

    file: str
    line: int
    before: str
    after: str
    place: int
    """Which of the file's expressions that can be changed."""


def changes_of(file: Path) -> list[Change]:
    """Every change that a file allows."""
    tree = ast.parse(file.read_text())
    return [
        Change(file.relative_to(ROOT).as_posix(), _line(node), ast.unparse(node)[:100], ast.unparse(new)[:100], place)
        for place, (node, new) in enumerate(_changes(tree))
    ]


def changed_text(file: Path, place: int) -> str:
    """The file with one change."""
    tree = ast.parse(file.read_text())
    node, new = list(_changes(tree))[place]
    return ast.unparse(_Swap(node, new).visit(tree))


class _Swap(ast.NodeTransformer):
    def __init__(self, node: ast.AST, new: ast.AST) -> None:
        self.node, self.new = node, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self.new if node is self.node else self.generic_visit(node)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.AST]]:
    skipped = {id(inner) for node in _not_computed(tree) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) not in skipped and (new := _other(node)) is not None:
            yield node, ast.copy_location(new, node)


def _not_computed(tree: ast.Module) -> Iterator[ast.AST]:
    """Types, texts for people, and what is asked only while types are checked."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.returns is not None:
            yield node.returns
        elif isinstance(node, ast.JoinedStr | ast.Raise | ast.Assert | ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        ):
            yield node
        elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id[0].isupper():
            yield node  # Float[Tensor, "…"]
        elif (
            isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
        ):
            yield node


def _other(node: ast.AST) -> ast.AST | None:
    new = copy.deepcopy(node)
    if isinstance(new, ast.Compare) and type(new.ops[0]) in COMPARED:
        new.ops[0] = COMPARED[type(new.ops[0])]()
    elif isinstance(new, ast.BinOp) and type(new.op) in OPERATORS and not _is_text(new):
        new.op = OPERATORS[type(new.op)]()
    elif isinstance(new, ast.BoolOp):
        new.op = ast.And() if isinstance(new.op, ast.Or) else ast.Or()
    elif isinstance(new, ast.UnaryOp) and isinstance(new.op, ast.Not | ast.USub):
        return new.operand
    elif isinstance(new, ast.Constant) and type(new.value) in (int, float):
        new.value = new.value + 1 if isinstance(new.value, int) else new.value * 2 or 1.0
    elif isinstance(new, ast.Constant) and isinstance(new.value, bool):
        new.value = not new.value
    elif isinstance(new, ast.Slice) and (new.lower or new.upper):
        new.lower, new.upper = new.upper, new.lower
    else:
        return None
    return new


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str))
        for side in sides
    )


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 0)


def drawn(seed: int, n: int) -> list[Change]:
    """Changes without repetition, each part in proportion to what can be changed there."""
    files = [file for part in PARTS for file in sorted((ROOT / "src" / "unweave" / part).rglob("*.py"))]
    known = [change for file in files if "kernels" not in file.parts for change in changes_of(file)]
    return random.Random(seed).sample(known, min(n, len(known)))


def tests_for(change: Change) -> tuple[list[str], list[str]]:
    """Tests that should mind a change, and those that are asked where none of them does."""
    near = tests_near(change.file)
    exact, making = covering.tests_of(change.file, _statement(change))
    if not exact:
        return making or near[:NEAREST], near if making else near[NEAREST:]
    # what is written down once is run by whoever imports the module first, and minded by the contract over all modules
    return _quick_first(exact, near), list(dict.fromkeys([EVERYWHERE[0], *making, *near[:NEAREST]]))


def _statement(change: Change) -> range:
    """The lines of the statement that is changed, without those of its body."""
    tree, found = ast.parse((ROOT / change.file).read_text()), range(change.line, change.line + 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.excepthandler) and node.lineno <= change.line <= (node.end_lineno or 0):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or 0) + 1
            found = range(node.lineno, max(end, node.lineno + 1)) if change.line < max(end, node.lineno + 1) else found
    return found


def _quick_first(tests: list[str], near: list[str]) -> list[str]:
    """Near tests and a few of every file before further ones of the same, as many as there is time for, by file."""
    ranked, seen = [], dict.fromkeys(near, 0)
    for test in sorted(tests, key=covering.seconds):
        file = test.partition("::")[0]
        seen[file] = seen.get(file, -1) + 1
        ranked.append((seen[file] // 8 + (covering.seconds(test) > 2.0) + 2 * (covering.seconds(test) > 10.0), test))
    chosen, spent = [], 0.0
    for rank, test in sorted(ranked, key=lambda pair: (pair[0], covering.seconds(pair[1]))):
        spent += covering.seconds(test)
        if spent > 2 * ENOUGH:
            break
        chosen.append((rank > 1, test.partition("::")[0], test))
    first = {}
    for late, file, test in chosen:
        first.setdefault((late, file), (near.index(file) if file in near else len(near), covering.seconds(test)))
    return [test for late, file, test in sorted(chosen, key=lambda one: (one[0], first[one[:2]], one[1]))]


def tests_near(file: str) -> list[str]:
    """Test files that import a module, the nearest first."""
    module = file.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    stem = module.rpartition(".")[2]
    near = {
        test: reached
        for test, found in _imports_of_tests().items()
        if (reached := _distance(found, module)) is not None
    }

    def rank(test: str) -> tuple[bool, int, int, int]:
        named = stem in Path(test).stem or Path(test).stem.removeprefix("test_") in stem
        shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(module.split(".")[1:], Path(test).parts[1:]))
        return not named, -len(list(shared)), near[test], len(test)

    direct = [test for test in near if near[test] == 1 and test not in EVERYWHERE]
    # those that take long are asked where nobody else imports the module
    slow = re.compile(SLOW) if any(not re.search(SLOW, test) for test in direct) else re.compile(SLOWEST)
    known = [test for test in sorted(near, key=rank) if not slow.search(test) and test not in EVERYWHERE]
    first, others = known[:NEAREST], sorted(known[NEAREST:], key=lambda test: (near[test], len(test)))
    return [*first, *EVERYWHERE, *others[: MOST_FILES - len(first)]]


def _distance(found: frozenset[str], module: str) -> int | None:
    """How many imports lie between a test and a module: 1 where the test imports it; None where nothing leads there."""
    if module in found or any(name.startswith(module + ".") for name in found):
        return 1
    seen, now, steps = set(found), set(found), 1
    while now and steps < 6:
        steps += 1
        now = {name for one in now for name in _graph().get(one, ())} - seen
        if module in now:
            return steps
        seen |= now
    return None


@cache
def _graph() -> dict[str, frozenset[str]]:
    """Module to modules of the package that it imports, also inside functions."""
    source = ROOT / "src"
    names = {
        path: ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        for path in source.rglob("*.py")
    }
    return {name: _imported(path, frozenset(names.values())) for path, name in names.items()}


@cache
def _imports_of_tests() -> dict[str, frozenset[str]]:
    known = frozenset(_graph())
    tests = sorted((ROOT / "tests").rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix(): _imported(path, known) for path in tests}


def _imported(path: Path, known: frozenset[str]) -> frozenset[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # python -m unweave.studies.worker
    found |= {"unweave.api"} if "unweave" in found else set()
    return frozenset(found & known)


def tried(change: Change, place: Path) -> tuple[str, str]:
    """``noticed``, ``hung``, ``survived`` or ``broken``, and what pytest said last; the copy is as before then."""
    target = place / change.file
    kept = target.read_text()
    target.write_text(changed_text(target, change.place))
    try:
        first, others = tests_for(change)
        outcome, said = _run(first, place)
        return _run(others, place) if outcome == "survived" and others else (outcome, said)
    finally:
        target.write_text(kept)


def _run(tests: list[str], place: Path) -> tuple[str, str]:
    """The tests in a fork, which has the libraries imported already, and none of the package."""
    said, pid = place / "said", _forked(tests, place)
    until = time.monotonic() + PATIENCE
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    words = said.read_text(errors="replace") if said.exists() else ""
    if ended == (0, 0):
        ended = os.waitpid(pid, 0)
    if os.WIFSIGNALED(ended[1]) and os.WTERMSIG(ended[1]) in (signal.SIGKILL, signal.SIGXCPU):
        return ("noticed" if re.search(r"^[.sx]*[FE]", words, re.MULTILINE) else "hung"), words[-1500:]
    outcomes = {0: "survived", 1: "noticed", 2: "noticed"}  # 2: a test file cannot even be imported
    return outcomes.get(
        os.waitstatus_to_exitcode(ended[1]), "noticed" if os.WIFSIGNALED(ended[1]) else "broken"
    ), words[-1500:]


class _Chosen:
    """Only the tests that are asked for, in their order, until enough time has gone."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: number for number, test in reversed(list(enumerate(tests)))}
        self.until = sum(os.times()[:2]) + ENOUGH

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        places = {item: self._place(item.nodeid) for item in items}
        items[:] = sorted((item for item in items if places[item] is not None), key=lambda item: places[item] or 0)

    def _place(self, test: str) -> int | None:
        return self.order.get(test, self.order.get(test.partition("::")[0]))

    def pytest_runtest_logfinish(self) -> None:
        if sum(os.times()[:2]) > self.until and self.session.testsfailed == 0:
            self.session.shouldstop = "enough"

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self.session = session

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.shouldstop == "enough":
            os._exit(0)


def _forked(tests: list[str], place: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    os.setsid()
    os.chdir(place)
    spent = int(sum(os.times()[:2]))
    resource.setrlimit(resource.RLIMIT_CPU, (spent + HUNG, spent + HUNG))
    said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    sys.path.insert(0, str(place / "src"))
    os.environ |= {"PYTHONPATH": str(place / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    status, files = 70, dict.fromkeys(test.partition("::")[0] for test in tests)
    try:
        status = int(pytest.main([*QUICK, *files], [_Chosen(tests)]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def copied(place: Path) -> Path:
    """The working tree, less what is not code."""
    for name in ("src", "tests", "benchmarks", "docs"):
        shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "Makefile", "ARCHITECTURE.md", "CITATION.cff"):
        if (ROOT / name).exists():
            shutil.copy(ROOT / name, place / name)
    shared = ROOT.parent / "shared"
    if shared.exists():
        (place.parent / "shared").symlink_to(shared)
    return place


def report(told: list[dict[str, Any]]) -> str:
    """The share that was noticed, and every survivor to read."""
    counts = {word: sum(one["outcome"] == word for one in told) for word in ("noticed", "hung", "survived", "broken")}
    share = (counts["noticed"] + counts["hung"]) / max(1, len(told))
    lines = [f"{len(told)} changes: {counts}; noticed, or hung, {share:.1%}"]
    lines += [
        f"{one['outcome']:9} {one['number']:>4}  {one['file']}:{one['line']}  {one['before']}  →  {one['after']}"
        for one in told
        if one["outcome"] != "noticed"
    ]
    return "\n".join(lines)


def main() -> int:
    """Try changes and report."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=200, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, metavar="K", help="one change, and what its tests said")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many, to go on later")
    parser.add_argument("--state", type=Path, default=ROOT / "build" / "mutants.jsonl", help="what was tried")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every Nth change, for N of these side by side")
    parser.add_argument("--survivors", action="store_true", help="try again what survived")
    parser.add_argument("--again", action="store_true", help="forget what was tried")
    parser.add_argument("--list", action="store_true", help="only say what would be changed, and what would mind")
    given = parser.parse_args()
    chosen = drawn(given.seed, given.changes)
    if given.list:
        for number, change in enumerate(chosen):
            print(number, f"{change.file}:{change.line}", change.before, "→", change.after, *tests_for(change)[0][:3])
        return 0
    covering.recorded()
    for name in LIBRARIES:
        importlib.import_module(name)
    with tempfile.TemporaryDirectory() as made:
        place = copied(Path(made) / "copy")
        if given.only is not None:
            print(
                chosen[given.only], tests_for(chosen[given.only])[0][:20], *tried(chosen[given.only], place), sep="\n"
            )
            return 0
        told = _told(given, chosen, lambda change: tried(change, place))
    print(report(told))
    return 0


def _told(
    given: argparse.Namespace, chosen: list[Change], trial: Callable[[Change], tuple[str, str]]
) -> list[dict[str, Any]]:
    if given.again:
        given.state.unlink(missing_ok=True)
    given.state.parent.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + given.minutes * 60
    for number, change in _to_try(given, chosen):
        if time.monotonic() > until:
            break
        began = time.monotonic()
        outcome, said = trial(change)
        one = {"seed": given.seed, "number": number, "outcome": outcome} | vars(change)
        lines = said.strip().splitlines()
        minded = [line for line in lines[:-1] if line.startswith(("FAILED", "ERROR"))]
        one |= {"seconds": round(time.monotonic() - began), "said": [*minded, *lines[-1:]]}
        with given.state.open("a") as file:
            file.write(json.dumps(one) + "\n")
    return list(_state(given).values())


def _state(given: argparse.Namespace) -> dict[int, dict[str, Any]]:
    """What was tried last, by its number."""
    lines = given.state.read_text().splitlines() if given.state.exists() else []
    return {one["number"]: one for one in map(json.loads, lines) if one["seed"] == given.seed}


def _to_try(given: argparse.Namespace, chosen: list[Change]) -> list[tuple[int, Change]]:
    part, parts = map(int, given.part.split("/"))
    known = _state(given)
    if not given.survivors:
        todo = [(number, change) for number, change in enumerate(chosen) if number not in known]
        return [(number, change) for number, change in todo if number % parts == part % parts]
    survived = [one for one in known.values() if one["outcome"] == "survived"]
    found = [(one["number"], _where_now(one)) for one in survived[part - 1 :: parts]]
    return [(number, change) for number, change in found if change is not None]


def _where_now(one: dict[str, Any]) -> Change | None:
    """The same change, where it stands in the file of today."""
    same = [c for c in changes_of(ROOT / one["file"]) if (c.before, c.after) == (one["before"], one["after"])]
    return min(same, key=lambda c: (abs(c.line - one["line"]), abs(c.place - one["place"])), default=None)


if __name__ == "__main__":
    sys.exit(main())
