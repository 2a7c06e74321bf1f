"""What every command has in common: help with examples that work, tables that fit, suggestions that can be pasted."""

import contextlib
import functools
import importlib
import io
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import unweave as uw
from unweave.cli import COMMANDS, EXTRAS, GROUPS, console, main
from unweave.cli.completion import all_words, bash, fish, zsh
from unweave.cli.narrow import narrow
from unweave.cli.options import parser_of, with_dashes
from unweave.cli.study import ACTIONS, EXAMPLES

Capture = pytest.CaptureFixture[str]
TINY = "--network mlp --network.encoder-widths 8 --network.decoder-widths 8 --latents 2 --steps 3 --plan.threads 1"

STUDY = """
import unweave as uw
from unweave.data.micro import Micro
from unweave.studies.study import Study

def study(size):
    given = dict(network=uw.MLP((8,), (8,)), latents=2, steps=5, batch_size=8, plan=uw.Plan("cpu", 1))
    rates = (1e-3, 1e30)
    return Study("mine", tuple(uw.Experiment(Micro(), optimiser=uw.Adam(rate), **given) for rate in rates))
"""


@pytest.fixture
def work(fresh: Path, small_run: Path) -> Path:
    """A folder with all that the examples speak of."""
    for name in ("demo", "a", "b", "mine"):
        shutil.copytree(small_run, f"runs/{name}")
    draw = np.random.default_rng(0)
    factors = draw.integers(0, 4, size=(200, 3))
    codes = factors + 0.1 * draw.normal(size=(200, 3))
    np.savez("codes.npz", codes=codes, factors=factors)
    np.savez("before.npz", codes=codes, factors=factors)
    np.savez("after.npz", codes=codes[:, ::-1], factors=factors)
    np.savez("posteriors.npz", mean=codes, variance=np.full(codes.shape, 0.1))
    rows = [",".join(map(str, row)) for row in np.concatenate([codes, codes, factors], 1)]
    Path("table.csv").write_text("\n".join(["z0,z1,z2,mu0,mu1,mu2,x,y,size", *rows]) + "\n")
    Path("people.csv").write_text("a,b,species\n" + "".join(f"{n},{n * n % 7},{'xy'[n % 2]}\n" for n in range(40)))
    Path("photos").mkdir()
    Path("my").mkdir()
    Path("my/study.py").write_text(STUDY)
    Path("mymodule.py").write_text("def my_metric(codes, *, power: int = 2):\n    return (codes**power).mean()\n")
    return fresh


def example_lines(name: str) -> list[str]:
    """The commands that the help of a command shows."""
    first = ["train"] if name == "bench" else ["micro"] if name in ("train", "dimension", "perturb") else ["--trained"]
    if name == "study":
        text = EXAMPLES
    else:
        text = parser_of(importlib.import_module(f"unweave.cli.{name}").run, first).epilog or ""
    lines = [line.strip() for line in text.splitlines() if line.startswith("  unweave ")]
    return [re.split(r" {3,}|  +(?=[a-z0-9])", line)[0] for line in lines]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_example_is_understood(name: str, work: Path) -> None:
    lines = example_lines(name)
    assert lines
    for line in lines:
        words = shlex.split(line.split(" > ")[0].split(" >> ")[0])[1:]
        if "--trust" in words:  # taken off before a command sees it
            del words[words.index("--trust") : words.index("--trust") + 2]
        if "--list" in words:  # answered before anything is imported
            continue
        command, rest = words[0], words[1:]
        parser = parser_of(importlib.import_module(f"unweave.cli.{command}").run, rest)
        given = rest[1:] if command in ("study", "bench") else rest
        _, left = parser.parse_known_args(with_dashes(given))
        assert left in ([], given[:1]), line


RUN = {
    "compare": "--examples 20 --permutations 2 --quiet",
    "completion": "",
    "diagnose": "--examples 50 --jacobians 4",
    "evaluate": "--samples 100 --metrics mig --seeds 0 --no-pictures --quiet",
    "explore": "--port 0 --no-browser",
    "export": "",
    "measure": "--metrics mig --seeds 0 --quiet",
    "new": "",
    "reproduce": "",
    "resume": "--quiet",
    "sample": "",
    "show": "--examples 50",
    "train": f"{TINY} --quiet",
    "traverse": "--steps 3",
    "worlds": "",
    "zoo": "",
}
"""Words with which the first example of a command runs in no time."""

RUN_SLOWLY = {
    "bench": "--ways alone --rounds 1 --seconds 0.01 --batch-size 2 --plan.threads 1",
    "demo": "--steps 2 --quiet --folder runs/another",
    "dimension": f"{TINY.replace('--latents 2', '')} --start 2 --most 2 --examples 60 --quiet",
    "perturb": "--network mlp --network.encoder-widths 32 --network.decoder-widths 32 --latents 5 --beta 0.01"
    " --steps 300 --lr 1e-2 --models 2 --ensemble 1 --perturb-steps 2 --executor here --quiet",
    "report": "",
}
"""The same for commands that draw whole pages, fit big models or train several."""

NOT_RUN = {
    "intrinsic": "renders the whole of dSprites, which takes minutes; other data: tests/end_to_end/test_diagnose.py",
    "study": "trains for minutes; the same study at a fifth of the length: tests/recipes/test_z_judges.py",
}


@pytest.mark.parametrize("name", [*RUN, *(pytest.param(name, marks=pytest.mark.slow) for name in RUN_SLOWLY)])
def test_the_first_example_works(name: str, work: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: sockets[0].close())  # it would serve until Ctrl-C
    if name == "compare":  # tests/end_to_end writes its page
        monkeypatch.setattr("unweave.cli.compare.write_comparison", lambda found, folder: folder / "comparison.html")
    monkeypatch.setattr("unweave.cli.completion.all_words", completed_words)
    line = example_lines(name)[0].split(" > ")[0].split(" >> ")[0]
    words = re.sub(r" --(steps|latents) \S+", "", line) if name == "train" else line
    assert main([*shlex.split(words)[1:], *(RUN | RUN_SLOWLY)[name].split()]) == 0, capsys.readouterr().err


def test_the_first_example_of_every_command_is_run_or_says_why_not() -> None:
    assert sorted([*RUN, *RUN_SLOWLY, *NOT_RUN]) == sorted(COMMANDS)


QUIET = {
    "diagnose": "runs/demo --examples 50 --jacobians 4",
    "export": "runs/demo out",
    "report": "runs/demo",
    "sample": "runs/demo",
    "show": "runs/demo --examples 50",
    "traverse": "runs/demo --steps 3",
}
"""Commands that may take their time, with words that make them short."""


@pytest.mark.parametrize(
    "name", [name if name != "report" else pytest.param(name, marks=pytest.mark.slow) for name in QUIET]
)
def test_quiet_commands_tell_results_alone(
    name: str, work: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "AGAIN", 0.001)
    words = [name, *QUIET[name].split()]
    assert main(words) == 0
    loud = capsys.readouterr()
    assert " s so far" in loud.err
    assert main([*words, "--quiet"]) == 0
    quiet = capsys.readouterr()
    assert quiet.err == ""
    assert quiet.out.splitlines()[0] == loud.out.splitlines()[0]


def test_help_is_grouped_and_narrow(capsys: Capture) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(f"{group}:" in lines for group in GROUPS)
    assert [line.split()[0] for line in lines if line[:2] == "  " and line[2] != " "] == list(COMMANDS)
    modules = {path.stem for path in Path(console.__file__).parent.glob("*.py")}
    shared = {"__init__", "console", "download", "measuring", "narrow", "options", "own_data", "study_look"}
    assert modules - shared == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_fits_and_its_examples_can_be_pasted(
    name: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main([name, "--help"])
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    joined = text.replace(" \\\n    ", " ")
    assert [line for line in example_lines(name) if f"  {line}" not in joined] == []


def test_long_lines_are_broken_where_a_person_would() -> None:
    text = """Prose in lines
that are long enough to be broken.

files:
  a.csv   a table with a header and rows
  unweave show runs/a    a comment
  unweave train micro --steps 10 --seed 3"""
    assert narrow(text, 26).splitlines() == [
        "Prose in lines that are",
        "long enough to be broken.",
        "",
        "files:",
        "  a.csv   a table with a",
        "          header and rows",
        "  unweave show runs/a",
        "      a comment",
        "  unweave train micro \\",
        "    --steps 10 --seed 3",
    ]


class Shown:
    """Everything that tables were given to print."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells: list[str] = []
        before = console._cell

        def cell(value: object) -> str:
            self.cells.append(before(value))
            return self.cells[-1]

        monkeypatch.setattr(console, "_cell", cell)
        monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Iterator[Shown]:
    return Shown(monkeypatch)  # type: ignore[return-value]


TABLES = [
    "worlds",
    "zoo",
    "show runs/demo --examples 50",
    f"train micro {TINY} --seed 0:2 --quiet",
    "measure codes.npz --metrics mig,dci,gaussian_wasserstein_correlation --seeds 2 --adjust chance --quiet",
    "measure before.npz after.npz --metrics mig,gaussian_wasserstein_correlation --seeds 2 --quiet",
    "evaluate runs/demo --measures polarised",
    "diagnose runs/demo --examples 50 --jacobians 4",
    "compare runs/a runs/b --examples 20 --permutations 2 --quiet",
    "intrinsic codes.npz --seeds 1",
    "study status --store store",
    "study sql --store store 'select * from runs'",
]


def test_tables_fit_eighty_columns_and_break_no_word(
    work: Path, shown: Shown, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unweave.cli.compare.write_comparison", lambda found, folder: folder / "comparison.html")
    assert main("study run my/study.py --store store --executor here --quiet".split()) == 1  # one of two fails
    for words in TABLES:
        shown.cells.clear()
        capsys.readouterr()
        assert main(shlex.split(words)) == 0, words
        out = capsys.readouterr().out
        lines = [line for line in out.splitlines() if line[:1] in "┏┃┡│└"]
        assert all(len(line.rstrip()) <= 80 for line in lines), words
        assert shown.cells
        missing = [word for text in shown.cells for word in text.split() if word not in out]
        assert not missing, (words, missing)


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_a_table_prints_every_word_whatever_its_width(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    rows = [
        ("micro-beta_vae-0ccf88c0df6f", 1.5, "a sentence of some length, with [red] in it", None),
        ("b", 2.0, "", ""),
    ]
    console.print_table("a title that is longer than the table", ("run", "one number", "why", "empty"), rows, "a note")
    out = capsys.readouterr().out
    assert all(word in out for word in "micro-beta_vae-0ccf88c0df6f 1.5 sentence length, [red] number why".split())
    assert all(len(line) <= width for line in out.splitlines() if line[:1] in "┏┃┡│└")


def suggestions(text: str) -> list[str]:
    """The commands that a text tells someone to type."""
    found = re.findall(r"(?:with|or|again|it|on): (unweave .+?)(?: {2,}|$)", text, re.MULTILINE)
    return [line.rstrip(".") for line in found]


def test_what_is_suggested_can_be_pasted(work: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.cli.report.write_run_page", lambda run: run.path / "report.html")
    printed, collected = f"train micro {TINY} --quiet".split(), []
    assert main([*printed, "--folder", "runs/one of mine"]) == 0
    collected += suggestions(capsys.readouterr().out)
    Path("own.py").write_text(
        "from dataclasses import dataclass\nimport unweave as uw\n@dataclass(frozen=True)\n"
        "class Own(uw.VAE):\n    name = 'own'\n"
    )
    assert main([*printed, "--objective", "own:Own", "--folder", "runs/own"]) == 0
    collected += suggestions(capsys.readouterr().out)
    with monkeypatch.context() as stopped:
        stopped.setattr("unweave.cli.train.stopping", lambda: contextlib.nullcontext(lambda: True))
        assert main([*printed, "--objective", "own:Own", "--folder", "runs/cut off"]) == 130
    collected += suggestions(capsys.readouterr().err)
    assert main(["show", "runs/cut off", "--trust", "own"]) == 0
    collected += suggestions(capsys.readouterr().out)
    assert main(["compare", "runs/a", "runs/cut off", "--trust", "own"]) == 2
    collected += suggestions(capsys.readouterr().err)
    assert main("study run my/study.py --store some/store --executor here --quiet".split()) == 1
    retry = suggestions(capsys.readouterr().out)
    assert main(["export", "runs/demo", "models/demo"]) == 0
    assert len(collected) == 7
    for line in collected:
        assert main([*shlex.split(line)[1:], *(["--quiet"] if " resume " in line else [])]) == 0, line
    assert retry == ["unweave study retry mine --store some/store --trust study"]
    assert main([*shlex.split(retry[0])[1:], "--executor", "here", "--quiet"]) == 1  # it fails again, and says so
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("module", EXTRAS)
def test_what_is_missing_says_what_to_install(module: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    def run(argv: object) -> None:
        importlib.import_module(module)

    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr("unweave.cli.show.run", run)
    assert main(["show", "x"]) == 2
    assert f"pip install 'unweave[{EXTRAS[module]}]'" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "module"), [("explore runs", "uvicorn"), ("study sql x --store runs", "duckdb")])
def test_commands_that_need_an_extra(
    words: str, module: str, work: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    assert main(words.split()) == 2
    assert f"pip install 'unweave[{EXTRAS[module]}]'" in capsys.readouterr().err


def test_silence_ends(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr(console, "AGAIN", 0.02)
    with console.patiently("counting"):
        time.sleep(0.2)
    assert "counting: 0 s so far" in capsys.readouterr().err
    with console.patiently("counting", quiet=True):
        time.sleep(0.05)
    assert not capsys.readouterr().err
    monkeypatch.setattr(console, "AGAIN", 1000.0)
    monkeypatch.setattr(console, "PATIENCE", 0.02)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with console.patiently("counting"):
        time.sleep(0.2)
    assert "counting: 0 s so far" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    ["intrinsic table.npy --seeds 2", pytest.param("dimension micro --steps 2 --most 2", marks=pytest.mark.slow)],
)
def test_commands_that_take_long_say_so(
    words: str, work: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(console, "AGAIN", 1e-4)
    np.save("table.npy", np.random.default_rng(0).normal(size=(3000, 40)))
    assert main(words.split()) == 0
    assert re.search(r"(estimating|reading).*s so far", capsys.readouterr().err)


BASH_TEST = """
try() {{ COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); COMPREPLY=(); _unweave; echo "${{COMPREPLY[*]}}"; }}
{lines}
"""


completed_words = functools.cache(all_words)


def test_bash_completes(work: Path) -> None:
    words = completed_words()
    tries = {
        "unweave di": {"diagnose", "dimension"},
        "unweave train micro_": {"micro_segments"},
        "unweave train micro --objective beta_v": {"beta_vae", "beta_vae_full"},
        "unweave train micro --objective.gam": {"--objective.gamma", "--objective.gamma1"}
        & set(words["train"].options),
        "unweave train micro --lr": {"--lr"},
        "unweave train micro --order ''": {"iid", "epochs"},
        "unweave show runs/d": {"runs/demo"},
        "unweave show ''": {"runs/a", "runs/b", "runs/demo", "runs/mine"},
        "unweave evaluate runs/a --metrics mig,dcim": {"mig,dcimig"},
        "unweave study re": {name for name in ACTIONS if name.startswith("re")},
        "unweave reproduce k-theo": {"k-theorem-1"},
        "unweave new me": {"method", "metric", "measure"},
        "unweave measure cod": {"codes.npz"},
    }
    lines = "\n".join(f"try {line}" for line in tries)
    script = io.StringIO(f"{bash(words)}\n{BASH_TEST.format(lines=lines)}")
    done = subprocess.run(["bash", "--norc"], input=script.getvalue(), capture_output=True, text=True, check=True)
    assert not done.stderr
    for (line, expected), found in zip(tries.items(), done.stdout.splitlines()):
        assert set(found.split()) == expected, line


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed: apt install fish")
def test_fish_completes(work: Path) -> None:
    tries = {
        "unweave di": {"diagnose", "dimension"},
        "unweave train micro_": {"micro_segments"},
        "unweave train micro --objective beta_v": {"beta_vae", "beta_vae_full"},
        "unweave train micro --lr": {"--lr"},
        "unweave train micro --order ": {"iid", "epochs"},
        "unweave show runs/d": {"runs/demo/"},
        "unweave evaluate runs/a --metrics mig,dcim": {"mig,dcimig"},
        "unweave evaluate runs/a --metrics dcim": {"dcimig"},
        "unweave study report --trust": {"--trust"},
        "unweave study report micro_": set(),  # the words of study, not those of report or of train
        "unweave bench train dspri": {"dsprites"} & set(completed_words()["bench"].first),
    }
    Path("unweave.fish").write_text(fish(completed_words()))
    asked = "\n".join(f"echo {shlex.quote(line)}; complete -C {shlex.quote(line)}; echo" for line in tries)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source unweave.fish\n{asked}"],
        env=os.environ | {"HOME": str(work)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    answers = [part.split("\n") for part in done.stdout.strip("\n").split("\n\n")]
    assert {line: set(found) for line, *found in answers} == tries


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed: apt install zsh")
def test_zsh_completes(work: Path) -> None:
    """Typed at a terminal with a real Tab: zsh itself completes what has one ending."""
    tries = {
        "unweave dime": "dimension",
        "unweave train micro_": "train micro_segments",
        "unweave train micro --objective annea": "train micro --objective annealed_vae",
        "unweave train micro --lr": "train micro --lr",
        "unweave show runs/d": "show runs/demo",
        "unweave evaluate runs/a --metrics mig,dcim": "evaluate runs/a --metrics mig,dcimig",
        "unweave measure cod": "measure codes.npz",
    }
    Path("unweave.zsh").write_text(zsh(completed_words()))
    with typed("zsh", "-f", "-i") as terminal:
        terminal.send('PS1= ; unweave() { print -r -- "<" $* ">" }; source unweave.zsh; print begin:\n')
        terminal.until("begin:\r\n")
        for line, expected in tries.items():
            terminal.send(f"{line}\t\n")
            assert terminal.until(" >\r\n").rpartition("< ")[2].split() == [*expected.split(), ">"], line


class Terminal:
    """What a program says at a terminal of its own."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.read = descriptor, ""

    def send(self, words: str) -> None:
        os.write(self.descriptor, words.encode())

    def until(self, end: str) -> str:
        """All that is said up to these words, which come within a minute."""
        last = time.monotonic() + 60
        while end not in self.read:
            assert select.select([self.descriptor], [], [], max(0.0, last - time.monotonic()))[0], self.read
            self.read += os.read(self.descriptor, 65_536).decode(errors="replace")
        said, _, self.read = self.read.partition(end)
        return said + end


@contextlib.contextmanager
def typed(*command: str) -> Iterator[Terminal]:
    ours, theirs = os.openpty()
    given = os.environ | {"TERM": "dumb", "HOME": os.getcwd(), "ZDOTDIR": os.getcwd()}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=given, start_new_session=True)
    os.close(theirs)
    try:
        yield Terminal(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def trained(folder: Path, name: str, **settings: object) -> uw.Run:
    from unweave.data.synthetic import SynthLin

    given = {"seed": 0, "steps": 250, "objective": uw.BetaVAE(1.0)} | settings
    linear = {"network": uw.Linear(), "likelihood": uw.Gaussian(0.02), "optimiser": uw.Adam(1e-2), "latents": 3}
    return uw.train(SynthLin(n_points=2000), folder / name, **linear, **given, quiet=True)  # type: ignore[arg-type]


def test_compare_answers_first(fresh: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.cli.compare.write_comparison", lambda found, folder: folder / "comparison.html")
    for name, settings in {"a": {}, "b": {"seed": 1}, "none": {"objective": uw.BetaVAE(1000.0)}}.items():
        trained(fresh, name, **settings)
    trained(fresh, "short", steps=1)
    shutil.copytree("a", "again")
    answers = {
        names: str(uw.compare(*names.split(), n=100, n_permutations=1))
        for names in ("a again", "a b", "a none", "a short", "a b short")
    }
    assert main("compare a b --examples 100 --permutations 1 --quiet".split()) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == answers["a b"]
    assert lines[2] == "1: a  –  2: b, layer by layer"
    assert answers["a again"] == "They learnt the same: their weights are equal to the last bit."
    assert answers["a b"].startswith("They learnt the same: their mean codes are alike to 0.")
    assert "0.8 or more counts as the same" in answers["a b"]
    assert answers["a none"] == "They differ: 1: a uses 3 latents, 2: none uses no latents."
    assert answers["a short"].startswith("They differ: their mean codes are alike to 0.")
    assert answers["a b short"].startswith("They differ: 2 of 3 pairs, most of all ")


def test_packages_that_are_missing_are_named_as_they_are_installed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Training needs few of them; what needs more says which."""
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(tmp_path / "a.png")
    Image.fromarray(np.ones((4, 4), np.uint8)).save(tmp_path / "b.png")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["train", str(tmp_path), "--quiet"]) == 2
    assert capsys.readouterr().err == "unweave: this needs pillow, which is not installed; run: pip install pillow\n"


def test_help_says_nothing_of_none_and_gives_every_group_a_title(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("dimension", "perturb", "train images"):
        with pytest.raises(SystemExit):
            main([*words.split(), "--help"])
        told = capsys.readouterr().out
        titles = [line for line in told.splitlines() if line.endswith(":") and not line.startswith(" ")]
        assert "default None" not in told
        assert len(titles) == len({*titles})


def test_data_that_is_there_in_a_moment_needs_no_progress(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("photos").mkdir()
    for number in range(4):
        Image.fromarray(np.full((8, 8), number, np.uint8)).save(f"photos/{number}.png")
    few = "--network mlp --network.encoder-widths 4 --network.decoder-widths 4 --latents 2 --steps 3"
    assert main(f"train photos {few} --plan.threads 1".split()) == 0
    told = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in told] == ["photos", "beta_vae on photos"]


def test_a_study_says_in_a_log_how_far_it_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "AGAIN", 0.01)
    one = "uw.Experiment(Micro(), network=uw.MLP((4,), (4,)), latents=2, steps=300, seed=seed)"
    Path("two.py").write_text(
        "import unweave as uw\nfrom unweave.data.micro import Micro\n\n"
        f"def study(size):\n    return uw.Study('two', tuple({one} for seed in (0, 1)))\n"
    )
    assert main("study run two.py --size smoke --store runs/two --executor here".split()) == 0
    told = capsys.readouterr().err.splitlines()
    assert any(re.fullmatch(r"two: \d of 2 models: \d+ s so far", line) for line in told), told
