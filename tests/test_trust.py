"""Opening what a stranger made runs none of the stranger's code, whichever way it is opened."""

import importlib
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import unweave as uw
from unweave import trusted
from unweave.cli import main
from unweave.models.objectives import Objective
from unweave.runs.folder import RunFolder
from unweave.studies.record import Record, write_record
from unweave.studies.store import Store
from unweave.trusted import Untrusted, find_code, trust

CODE = """
from pathlib import Path
Path({mark!r}).write_text("it ran")

import math
from dataclasses import dataclass
from typing import ClassVar
import torch
import unweave as uw
from unweave.data.micro import Micro
from unweave.metrics.row import Metric
from unweave.models.objectives import Objective
from unweave.models.networks import MLP
from unweave.studies.study import Study


@dataclass(frozen=True)
class Shrink(Objective):
    name: ClassVar[str] = "shrink"
    weight: float = 1.0

    def terms(self, code, context):
        return {{"regulariser": self.weight * code.kl.sum(-1).mean()}}


@dataclass(frozen=True)
class Mine(MLP):
    name: ClassVar[str] = "mine"


@dataclass(frozen=True)
class Spread:
    score: float


def spread(codes, *, power: int = 2):
    return Spread(float(abs(torch.as_tensor(codes) - torch.as_tensor(codes).mean(0)).pow(power).mean()))


ROW = Metric(
    spread, name="spread", title="Spread", tells="How far do codes lie apart?", kind="unsupervised", needs="codes",
    range=(0.0, math.inf), better="neither", invariant_to=("sample order",), at_chance="0", paper="", example="",
)


def study(size):
    given = dict(network=uw.MLP((8,), (8,)), latents=2, steps=5, batch_size=8, plan=uw.Plan("cpu", 1))
    return Study("own", (uw.Experiment(Micro(), Shrink(), **given),))
"""

SMALL: dict[str, Any] = {"network": uw.MLP((8,), (8,)), "latents": 2, "steps": 5, "batch_size": 8, "quiet": True}


@dataclass(frozen=True)
class Own(Objective):
    name: ClassVar[str] = "own"
    weight: float = 1.0

    def terms(self, code: Any, context: Any) -> Any:
        return {"regulariser": self.weight * code.kl.sum(-1).mean()}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return uw.train("micro", tmp_path_factory.mktemp("trained") / "run", **SMALL).path


@dataclass(frozen=True)
class Trap:
    """A store with a run and a study that name a module which leaves a mark when it is imported."""

    module: str
    store: Path
    mark: Path
    file: Path

    @property
    def run(self) -> Path:
        return self.store / "run"


@pytest.fixture(params=["working folder", "PYTHONPATH"])
def trap(
    request: pytest.FixtureRequest, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Trap]:
    module = f"evil_{abs(hash(str(tmp_path)))}"
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path)
    forget(module, monkeypatch)
    if request.param == "PYTHONPATH":
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
    file = (tmp_path / "site" if request.param == "PYTHONPATH" else tmp_path) / f"{module}.py"
    file.write_text(CODE.format(mark=str(tmp_path / "mark")))
    importlib.invalidate_caches()
    shutil.copytree(trained, tmp_path / "store" / "run")
    uses(tmp_path / "store" / "run", objective={"name": f"{module}:Shrink", "weight": 1.0})
    store = Store(tmp_path / "store").prepare()
    write_record(store.home, Record("own", "", ("run",), (), {"recipe": str(file), "size": "smoke"}))
    yield Trap(module, tmp_path / "store", tmp_path / "mark", file)
    sys.modules.pop(module, None)


def forget(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a new process: nothing is trusted, and the module is not imported."""
    for name in ("_NAMED", "_PASSED", "_CARRIED"):
        monkeypatch.setattr(trusted, name, type(getattr(trusted, name))())
    monkeypatch.setattr(sys, "path", list(sys.path))
    sys.modules.pop(module, None)


def uses(run: Path, **changes: Any) -> None:
    folder = RunFolder(run)
    folder.write_json("config.json", folder.read_json("config.json") | changes)


def unfinished(run: Path) -> None:
    RunFolder(run).remove("model.safetensors", "history.parquet")


OPENING = [
    "show {run}",
    "show {run} --json",
    "resume {run} --quiet",
    "evaluate {run} --quiet",
    "report {run}",
    "diagnose {run}",
    "traverse {run}",
    "export {run} exported",
    "compare {run} {run}",
    "intrinsic {run}",
    "train --config {run}/config.json --quiet --folder again",
    "dimension --config {run}/config.json --quiet --folder again",
    "study resume --store {store} --quiet",
    "study retry --store {store} --quiet",
]


@pytest.mark.parametrize("words", OPENING)
@pytest.mark.parametrize("done", [True, False])
def test_no_command_runs_it(words: str, done: bool, trap: Trap, capsys: pytest.CaptureFixture[str]) -> None:
    if not done:
        unfinished(trap.run)
    status = main(words.format(run=trap.run, store=trap.store).split())
    said = capsys.readouterr().err.strip()
    assert not trap.mark.exists()
    assert trap.module not in sys.modules
    assert status == 2
    assert said.count("\n") == 0
    if done or not words.startswith(("evaluate", "report", "diagnose", "traverse", "export", "compare", "intrinsic")):
        assert f"--trust {trap.module}" in said


def test_a_study_is_counted_and_reported_without_its_code(trap: Trap) -> None:
    for words in ("status", "report", "export all.csv", "gc", "sql SELECT"):
        main(["study", *words.split(), "--store", str(trap.store)])
    assert not trap.mark.exists()


def test_python_does_not_run_it(trap: Trap) -> None:
    run = uw.load(trap.run)
    for ask in (
        lambda: run.experiment,
        lambda: run.model,
        lambda: run.data,
        lambda: uw.resume(trap.run, quiet=True),
        lambda: uw.diagnose(run),
        lambda: uw.evaluate(run),
        lambda: uw.compare(run, run),
        lambda: uw.train("micro", objective=f"{trap.module}:Shrink"),
    ):
        with pytest.raises(Untrusted, match=r"which is not part of unweave; if you trust that code, add --trust"):
            ask()
    assert run.state == "done"
    assert not trap.mark.exists()


def test_a_model_for_others_does_not_run_it(trap: Trap, trained: Path) -> None:
    folder = RunFolder(uw.export(uw.load(trained), trap.store.parent / "model"))
    config = folder.read_json("config.json")
    config["architecture"]["network"] |= {"name": f"{trap.module}:Mine"}
    folder.write_json("config.json", config)
    with pytest.raises(Untrusted, match=f"this run uses the network {trap.module}:Mine"):
        uw.from_pretrained(folder.path)
    assert not trap.mark.exists()
    uw.trust(trap.module)
    assert uw.from_pretrained(folder.path).architecture.latents == 2


def test_the_explorer_shows_it_without_its_code(trap: Trap) -> None:
    testing = pytest.importorskip("fastapi.testclient")
    from unweave.web.app import create_app

    with testing.TestClient(create_app(trap.store), base_url="http://127.0.0.1") as client:
        found = client.get("/api/runs/run").json()
        assert f"--trust {trap.module}" in found["message"]
        assert (found["state"], found["latents"], found["steps"], found["step"]) == ("done", 2, 5, 5)
        assert found["config"]["objective"]["name"] == found["objective"] == f"{trap.module}:Shrink"
        assert "model.safetensors" in found["files"]
        assert client.get("/api/runs/run/history").json()["steps"]
        for asked in ("latents", "diagnosis", "scores", "examples", "codes.npz"):
            answer = client.get(f"/api/runs/run/{asked}")
            assert answer.status_code == 409
            assert f"--trust {trap.module}" in answer.json()["detail"]
        client.app.state.catalogue.refresh()
        assert client.app.state.catalogue.rows()["run"]["state"] == "done"
    assert not trap.mark.exists()


def test_it_opens_for_whoever_trusts_it(trap: Trap, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(trap.run), "--trust", trap.module, "--examples", "50"]) == 0
    assert trap.mark.exists()
    assert "shrink on micro" in capsys.readouterr().out
    assert uw.load(trap.run).experiment.objective.name == "shrink"


def test_who_types_a_name_trusts_it(trap: Trap) -> None:
    words = "train micro --network mlp --network.encoder-widths 8 --network.decoder-widths 8 --latents 2 --steps 5"
    own = ["--objective", f"{trap.module}:Shrink", "--objective.weight", "3", "--folder", "mine", "--quiet"]
    assert main([*words.split(), *own]) == 0
    assert trap.mark.exists()
    assert uw.load("mine").experiment.objective.weight == 3.0  # type: ignore[attr-defined]


def test_who_runs_a_file_trusts_it_and_goes_on_by_naming_it(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", "mine", "--quiet", "--json"]
    assert main(["study", "run", str(trap.file), "--workers", "1", *store]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 1
    forget(trap.module, monkeypatch)
    assert main(["study", "resume", *store]) == 2
    assert f"--trust {trap.module}" in capsys.readouterr().err
    assert main(["study", "resume", "--trust", trap.module, *store]) == 0


def test_a_study_whose_file_is_gone_goes_on_from_the_copy_in_its_store(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", "mine", "--quiet", "--json"]
    assert main(["study", "run", str(trap.file), "--workers", "1", *store]) == 0
    trap.file.unlink()
    forget(trap.module, monkeypatch)
    trap.mark.unlink()
    capsys.readouterr()
    assert main(["study", "resume", *store]) == 2
    told, kept = capsys.readouterr().err, f"mine/.unweave/modules/{trap.file.name}"
    assert f"unweave study run {kept} --store mine" in told
    assert not trap.mark.exists()
    assert main(["study", "resume", "--trust", kept, *store]) == 0
    assert trap.mark.exists()


def test_a_record_does_not_choose_the_cluster(trap: Trap, capsys: pytest.CaptureFixture[str]) -> None:
    options = {"recipe": "k-1", "size": "smoke", "executor": "ray", "address": "ray://elsewhere:10001"}
    write_record(Store(trap.store).home, Record("own", "", (), (), options))
    for action in ("resume", "retry"):
        assert main(["study", action, "--store", str(trap.store), "--quiet"]) == 2
        assert "say --address again" in capsys.readouterr().err


def test_objects_from_python_are_fine_and_known_in_this_process(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Local(Own):
        name: ClassVar[str] = "local"

    for objective in (Own(2), Local(3)):
        run = uw.train("micro", tmp_path / objective.name, objective=objective, **SMALL)
        assert run.experiment.objective == objective
        assert run.model.architecture.latents == 2
        assert isinstance(run.experiment.objective.weight, float)  # type: ignore[attr-defined]


def test_a_module_that_is_merely_imported_is_not_trusted(trap: Trap) -> None:
    sys.modules[trap.module] = sys.modules[__name__]
    with pytest.raises(Untrusted):
        _ = uw.load(trap.run).experiment
    with pytest.raises(Untrusted, match="__main__"):
        find_code("objective", "__main__:Shrink")


@pytest.mark.parametrize(
    "name",
    [
        "os:system", "os.path:join", "builtins:eval", "unweave.__main__:main", "unweave.cli.__main__:x", "..evil:X",
        ".:X", ":", "a:", "a b:c", "a:b c", "a/b:c", "a\\b:c", "a\0:c", "../x:c", "a-b:c", "x:y:z", "x" * 10**6 + ":y",
        ":b", "unweaver:x", "unweave\n:x", "a..b:c", "/etc/passwd:x", "a.b:c()", "\ud800:x",
    ],
)  # fmt: skip
def test_nasty_names_never_reach_the_import_machinery(name: str, trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib, "import_module", lambda *_: pytest.fail("imported"))
    with pytest.raises(ValueError, match=r"is no import path|is not part of unweave") as told:
        find_code("objective", name)
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("path", ["unweave.models.method:Method", "unweave.models.objectives:Objective"])
def test_what_only_others_are_made_of_is_refused_in_words(path: str) -> None:
    with pytest.raises(ValueError, match="is no dataclass with settings, which every Method must be"):
        uw.train("micro", objective=path)


@pytest.mark.parametrize("name", ["", ".", "a b", "../x", "a:b", "a-b", "os;x"])
def test_only_modules_can_be_trusted(name: str) -> None:
    with pytest.raises(ValueError, match="a module is named as in an import"):
        trust(name)


def test_a_package_is_trusted_with_what_is_in_it(trap: Trap) -> None:
    trust("labs.one")
    assert trusted.is_trusted("labs.one")
    assert trusted.is_trusted("labs.one.two")
    assert not trusted.is_trusted("labs")
    assert not trusted.is_trusted("labs.ones")


def test_installed_plug_ins_are_found_by_name_and_by_path(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    sys.path.insert(0, str(trap.file.parent))
    entry = EntryPoint("shrink", f"{trap.module}:Shrink", "unweave.methods")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == entry.group else [])
    with pytest.raises(ValueError, match="unknown objective 'shrunk'"):
        uw.train("micro", objective="shrunk", **SMALL)
    assert not trap.mark.exists()
    run = uw.train("micro", trap.store / "plugged", objective="shrink", **SMALL)
    assert RunFolder(run.path).read_json("config.json")["objective"]["name"] == f"{trap.module}:Shrink"
    assert uw.load(trap.run).experiment.objective.name == "shrink"


FEW = "--samples 100 --seeds 0 --interventions table --no-pictures --quiet --json"


def test_a_metric_of_a_module_is_asked_for_by_its_name_or_after_trust(
    trap: Trap, trained: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez("codes.npz", codes=np.array([[0.0], [2.0]]))
    name = f"{trap.module}:ROW"
    with pytest.raises(
        Untrusted, match=f"uses the metric {name}, which is not part of unweave; if you trust that code"
    ):
        uw.measure(np.eye(3), metrics=[name])
    assert not trap.mark.exists()
    words = ["measure", "codes.npz", "--metrics", name, "--seeds", "0", "--quiet", "--json"]
    assert main(words) == 0  # who types it trusts it
    assert trap.mark.exists()
    assert json.loads(capsys.readouterr().out)["scores"]["spread"]["value"] == 1.0
    assert main([*words, "--set", f"{name}.power=4"]) == 0
    assert main([*words, "--metrics", f"{trap.module}:Shrink"]) == 2
    assert "Shrink is not a row of METRICS" in capsys.readouterr().err
    assert uw.measure(np.eye(3), metrics=[name], seeds=0)["spread"].value > 0


@pytest.mark.parametrize("allowed", [True, False], ids=["installed", "in the working folder"])
def test_a_metric_of_a_plug_in_is_found_where_it_is_installed(
    allowed: bool, trap: Trap, trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = EntryPoint("spread", f"{trap.module}:ROW", "unweave.metrics")
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [entry] if group == entry.group else [])
    monkeypatch.setattr(trusted, "_is_installed", lambda found: allowed)
    sys.path.insert(0, str(trap.file.parent))
    shutil.copytree(trained, "mine")
    status = main(["evaluate", "mine", "--metrics", "mig,spread", *FEW.split()])
    said = capsys.readouterr()
    assert (status, trap.mark.exists()) == ((0, True) if allowed else (2, False)), said.err
    if not allowed:
        assert "unknown metric 'spread'" in said.err
        return
    kept = RunFolder("mine").read_json("scores.json")["mean"]["scores"]
    assert {"mig", "spread"} <= set(kept)
    shutil.move("mine", trap.store / "mine")
    sys.modules.pop(trap.module)
    trap.mark.unlink()
    row = Store(trap.store).table(["mine"]).row(0, named=True)  # what was scored is shown without the code
    assert row["scores.mean.spread"] == kept["spread"]["value"]
    assert not trap.mark.exists()


def test_what_lies_in_the_working_folder_is_not_installed(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    information = Path("evil-1.0.dist-info")
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(f"[unweave.methods]\nshrink = {trap.module}:Shrink\n")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    with pytest.raises(ValueError, match="unknown objective 'shrink'"):
        uw.train("micro", objective="shrink", **SMALL)
    with pytest.raises(Untrusted):
        _ = uw.load(trap.run).experiment
    assert not trap.mark.exists()


def test_workers_trust_what_their_parent_does_and_no_other_file(trap: Trap) -> None:
    from unweave.data.micro import Micro
    from unweave.studies.pack import Pack, pack_from, pack_to

    trust("labs")
    text = pack_to(Pack((uw.Experiment(Micro(), Own()),)))
    assert json.loads(text)["trusts"] == sorted({"labs", Own.__module__})
    plain = json.loads(pack_to(Pack((uw.Experiment(Micro()),)))) | {"files": {trap.module: "0" * 64}}
    with pytest.raises(Untrusted, match="is not the file that was sent with the study"):
        pack_from(json.dumps(plain), trap.file.parent)
    with pytest.raises(ValueError, match="no plain name"):
        pack_from(json.dumps(plain | {"files": {"../evil": "0" * 64}}), trap.file.parent)
    assert not trap.mark.exists()
    trusted.carry(trap.file, trap.file.read_bytes())
    pack_from(pack_to(Pack((uw.Experiment(Micro()),))), trap.file.parent)
    assert trap.mark.exists()
