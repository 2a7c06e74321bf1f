"""Trained models to begin with: a list, checked files, and scores that come out again."""

import functools
import http.server
import io
import json
import random
import shutil
import threading
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import polars as pl
import pytest
import torch

import unweave as uw
from unweave.cli import main
from unweave.files import digest
from unweave.recipes import zoo as zoos
from unweave.recipes.zoo import OWN, Filter, build_zoo, put, runs_in, shown_scores, zoo

SMALL = ["--network", "mlp", "--network.encoder-widths", "6", "--network.decoder-widths", "6", "--latents", "3"]
QUICK = ["--steps", "4", "--batch-size", "8", "--plan.threads", "1", "--plan.device", "cpu", "--quiet"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    store = tmp_path_factory.mktemp("zoo") / "runs"
    folders = [store / name for name in ("one", "two")]
    for seed, folder in enumerate(folders):
        assert main(["train", "micro", *SMALL, *QUICK, "--seed", str(seed), "--folder", str(folder)]) == 0
        assert main(["evaluate", str(folder), "--metrics", "mig,mcc", "--samples", "300", "--no-pictures"]) == 0
    return folders


def test_the_package_brings_models_whose_printed_scores_come_out_again() -> None:
    found = uw.zoo()
    assert len(found) >= 10
    model = found.find("demo-3")
    run = uw.load("zoo:demo-3")
    again = run.evaluate(metrics=["mig", "mcc", "sap_score"], seeds=0).scores["mean"]
    for name in ("mig", "mcc", "sap_score"):
        assert float(again[name]) == pytest.approx(model.scores[name], abs=2e-3), name
    card = (run.path / "README.md").read_text()
    assert f"| mig | {model.scores['mig']:.3f}" in card
    assert "demo-3" in repr(found)
    assert "<td>demo-3</td>" in found._repr_html_()
    assert found.to_pandas().loc["demo-3", "mig"] == model.scores["mig"]
    assert found.to_polars().row(by_predicate=pl.col("name") == "demo-3", named=True)["mig"] == model.scores["mig"]


METHODS = ("beta_vae", "beta_tcvae", "factor_vae")
DRAWN = {method: random.Random(f"zoo {method}").randrange(10) for method in METHODS}
"""Of ten seeds of each method one that is measured again: all would take an hour."""


def test_every_model_of_the_package_is_the_one_that_is_listed() -> None:
    found = uw.zoo()
    assert sorted(path.parent.name for path in OWN.glob("*/config.json")) == sorted(one.name for one in found)
    for one in found:
        run = uw.load(f"zoo:{one.name}")
        assert run.state == "done"
        sizes = {name: ((run.path / name).stat().st_size, digest(run.path / name)) for name in one.files}
        assert sizes == one.files, one.name
        assert shown_scores(run.files.read_json("scores.json")) == one.scores
        assert one.seed == int(one.name.rpartition("-")[2])
        assert run.model.architecture.latents == one.latents
    for method in METHODS:
        assert [one.seed for one in found if one.name.startswith(f"dsprites-{method}-")] == list(range(10))
    assert [one.seed for one in found if one.world == "cars3d"] == list(range(10))


@pytest.mark.parametrize("name", ["demo-0", *(f"dsprites-{method}-{seed}" for method, seed in DRAWN.items())])
def test_models_of_the_package_use_their_latents(name: str) -> None:
    run = uw.load(f"zoo:{name}")
    code = run.encode(run.images(500))
    n_used = sum(kind != "passive" for kind in uw.variable_types(code.mean, code.variance))
    assert n_used == (3 if name.startswith("demo") else 5)


@pytest.mark.parametrize("method", [METHODS[0], *(pytest.param(name, marks=pytest.mark.slow) for name in METHODS[1:])])
def test_the_printed_scores_of_larger_models_come_out_again(method: str) -> None:
    model = uw.zoo().find(f"dsprites-{method}-{DRAWN[method]}")
    again = uw.load(f"zoo:{model.name}").evaluate(metrics=["mig", "mcc", "sap_score"], seeds=0).scores["mean"]
    for name in ("mig", "mcc", "sap_score"):
        assert float(again[name]) == pytest.approx(model.scores[name], abs=2e-3), name


def test_cars_are_drawn_without_their_pictures_and_these_are_asked_for_by_name() -> None:
    run = uw.load("zoo:cars3d-beta_vae-0")
    assert run.decode(torch.zeros(2, 10)).shape == (2, 3, 64, 64)
    assert run.sample(3).shape == (3, 3, 64, 64)
    with pytest.raises(FileNotFoundError, match=r"cars3d needs .* not on this machine"):
        run.images(1)


def test_the_printed_scores_of_cars_come_out_again(real_cars: Path) -> None:
    seed = random.Random("zoo cars3d").randrange(10)
    model = uw.zoo().find(f"cars3d-beta_vae-{seed}")
    again = uw.load(f"zoo:{model.name}").evaluate(metrics=["mig", "mcc"], seeds=0).scores["mean"]
    for name in ("mig", "mcc"):
        assert float(again[name]) == pytest.approx(model.scores[name], abs=2e-3), name


def test_a_zoo_is_built_listed_and_pulled(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["zoo", "build", "mine", *map(str, runs)]) == 0
    capsys.readouterr()
    assert main(["zoo", "--zoo", "mine", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == ["one", "two"]
    assert listed[0]["scores"]["mig"] == pytest.approx(float(uw.load(runs[0]).scores["mean"]["mig"]), abs=1e-4)
    assert main(["zoo", "pull", "two", "--zoo", "mine"]) == 0
    assert main(["show", "runs/two"]) == 0
    assert (tmp_path / "runs/two/model.safetensors").read_bytes() == (runs[1] / "model.safetensors").read_bytes()
    assert main(["zoo", "pull", "two", "--zoo", "mine"]) == 2
    assert "not empty" in capsys.readouterr().err
    monkeypatch.setenv("UNWEAVE_ZOO", "mine")
    assert uw.load("zoo:one").experiment.seed == 0
    assert uw.from_pretrained("mine/one").encode(uw.load("zoo:one").images(2)).mean.shape == (2, 3)


def test_a_zoo_that_was_stopped_goes_on_and_a_model_stays_until_the_new_one_is_whole(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(name: str, place: int, total: int) -> None:
        if place == stopped:
            raise KeyboardInterrupt

    for stopped in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            build_zoo(runs, tmp_path / "mine", watch=stop)
        assert [one.name for one in zoo(tmp_path / "mine")] == ["one"][: stopped - 1]
    assert [one.name for one in build_zoo(runs, tmp_path / "mine")] == ["one", "two"]
    before = (tmp_path / "mine/one/README.md").read_bytes()
    monkeypatch.setattr(zoos, "_without_long_lists", Mock(side_effect=OSError("the disk is full")))
    with pytest.raises(OSError, match="full"):
        put(uw.load(runs[1]), tmp_path / "mine/one")
    assert (tmp_path / "mine/one/README.md").read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "mine").iterdir()) == ["one", "two", "zoo.json"]


class Server:
    """An https server as urllib would show it, of a folder."""

    def __init__(self, root: Path) -> None:
        self.root, self.asked = root, list[str]()

    def __call__(self, address: str) -> Any:
        name = address.removeprefix("https://zoo.example/")
        self.asked.append(name)
        content = (self.root / name).read_bytes()
        answer = io.BytesIO(content)
        answer.headers = Message()  # type: ignore[attr-defined]
        answer.headers["Content-Length"] = str(len(content))  # type: ignore[attr-defined]
        return answer


def test_a_zoo_on_a_server_is_fetched_once_and_checked(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "cache"))
    build_zoo(runs, tmp_path / "hosted")
    server = Server(tmp_path / "hosted")
    found = zoo("https://zoo.example", server)
    assert found.load("one").experiment.seed == 0
    n = len(server.asked)
    assert found.load("one").state == "done"
    assert len(server.asked) == n
    damaged = tmp_path / "hosted/two/model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="sha256 differs"):
        found.load("two")
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(ValueError, match="another file"):
        found.load("two")
    assert [path.name for path in (tmp_path / "cache/zoo").iterdir() if not path.name.startswith("one-")] == []


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """A server on this machine of what will lie in ``hosted``."""
    handler = functools.partial(Silent, directory=str(tmp_path / "hosted"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


MEASURED = ["--measure", "--metrics", "mig,mcc", "--samples", "300", "--draws", "0"]


@pytest.mark.parametrize(("bits", "share"), [(16, 0.6), (8, 0.4)])
def test_a_store_becomes_a_zoo_of_rounded_weights_that_a_server_holds(
    bits: int,
    share: float,
    runs: list[Path],
    tmp_path: Path,
    served: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path / "cache"))
    store = str(runs[0].parent)
    chosen = ["zoo", "build", "hosted", store, "--method", "beta_vae", "--world", "micro", "--bits", str(bits)]
    assert main([*chosen, "--seeds", "1"]) == 2
    assert "no scores of its rounded weights; add --measure" in capsys.readouterr().err
    assert main([*chosen, "--seeds", "1", *MEASURED]) == 0
    out, progress = capsys.readouterr()
    assert "micro-beta_vae-1" in out
    assert " kB" in out
    assert progress == "micro-beta_vae-1, 1 of 1\n"
    assert main([*chosen, "--seeds", "0:2", *MEASURED, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["models"] == ["micro-beta_vae-1", "micro-beta_vae-0"]
    assert told["bytes"] == sum(told["sizes"].values())
    monkeypatch.setattr("unweave.recipes.opened.evaluate", None)  # the same weights are not measured twice
    capsys.readouterr()
    assert main([*chosen, *MEASURED, "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["zoo", "--zoo", served]) == 0
    assert f"unweave zoo pull NAME --zoo {served}" in " ".join(capsys.readouterr().out.split())
    assert main(["zoo", "pull", "micro-beta_vae-1", "runs/pulled", "--zoo", served]) == 0
    small, large = (uw.load(place) for place in ("runs/pulled", runs[1]))
    sizes = [(one.path / "model.safetensors").stat().st_size for one in (small, large)]
    assert sizes[0] < share * sizes[1]
    rows = small.images(50)
    assert torch.allclose(small.encode(rows).mean, large.encode(rows).mean, atol=1e-2)
    assert all(one.dtype == torch.float32 for one in small.model.state_dict().values())
    card = (small.path / "README.md").read_text()
    assert f"rounded to {bits} bits; the scores are those of the rounded weights" in card
    assert f"| mig | {float(small.scores['mean']['mig']):.3f} |" in card
    assert "Of 300 examples.\n" in card
    assert zoo(served).find("micro-beta_vae-1").scores["mig"] == zoo("hosted").find("micro-beta_vae-1").scores["mig"]


def test_runs_of_a_store_are_named_by_what_they_are_where_that_is_enough(runs: list[Path], tmp_path: Path) -> None:
    store = runs[0].parent
    assert list(runs_in([store])) == ["micro-beta_vae-0", "micro-beta_vae-1"]
    assert list(runs_in([store], Filter(seeds=[1]))) == ["micro-beta_vae-1"]
    assert list(runs_in([runs[0]], Filter(worlds=["micro"]))) == ["one"]
    shutil.copytree(store, tmp_path / "store")
    shutil.copytree(runs[0], tmp_path / "store/again")
    assert list(runs_in([tmp_path / "store"])) == ["again", "one", "micro-beta_vae-1"]
    with pytest.raises(ValueError, match=r"no finished run in .* is one of those"):
        runs_in([store], Filter(methods=["vae"]))
    with pytest.raises(ValueError, match="two runs are called one"):
        runs_in([runs[0], runs[0]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda plain: plain | {"format": 9}, "is no list of a zoo"),
        (lambda plain: [], "is no list of a zoo"),
        (lambda plain: plain | {"models": [plain["models"][0] | {"name": "../out"}]}, "none of a zoo"),
        (lambda plain: plain | {"models": [plain["models"][0] | {"name": "a/b"}]}, "none of a zoo"),
        (lambda plain: plain | {"models": [plain["models"][0] | {"files": {"../../x": [1, "0"]}}]}, "none of a zoo"),
        (lambda plain: plain | {"models": [plain["models"][0] | {"files": {"x": [-1, "0"]}}]}, "none of a zoo"),
        (lambda plain: plain | {"models": [{}]}, "none of a zoo"),
    ],
)
def test_a_strangers_list_stays_inside(runs: list[Path], tmp_path: Path, change: Any, words: str) -> None:
    build_zoo(runs[:1], tmp_path / "z")
    place = tmp_path / "z/zoo.json"
    place.write_text(json.dumps(change(json.loads(place.read_text()))))
    with pytest.raises(ValueError, match=words):
        zoo(tmp_path / "z")


def test_wrong_calls_are_one_sentence(
    runs: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    bare = tmp_path / "bare"
    shutil.copytree(runs[0], bare)
    uw.load(bare).files.remove("scores.json")
    for words, said in {
        ("zoo", "feed"): "it can list, pull, build, push",
        ("zoo", "list", "x"): "--zoo",
        ("zoo", "pull"): "takes a name",
        ("zoo", "pull", "unicorn"): "there is no 'unicorn' in the zoo",
        ("zoo", "--zoo", str(tmp_path)): "is no zoo",
        ("zoo", "--zoo", "http://zoo.example"): "no https",
        ("zoo", "build", "x"): "at least one run",
        ("zoo", "build", "x", str(bare)): "unweave evaluate",
        ("zoo", "build", str(tmp_path), str(runs[0])): "is no zoo; choose another folder",
        ("zoo", "push", str(runs[0]), "name"): "owner/model",
    }.items():
        assert main(list(words)) == 2, words
        said_now = capsys.readouterr().err
        assert said in said_now, said_now
        assert said_now.count("\n") == 1, said_now


def test_commands_say_how_a_zoo_model_comes_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["show", "zoo:demo-0"]) == 2
    told = capsys.readouterr().err
    assert "bring it here with: unweave zoo pull demo-0 " in told
    assert main(["zoo", "pull", "demo-0"]) == 0
    assert main(["show", "runs/demo-0"]) == 0


def test_nothing_is_written_among_the_packages_models() -> None:
    before = sorted(OWN.rglob("*"))
    with pytest.raises(ValueError, match=r"demo-0 belongs to the package, .* with `unweave zoo pull demo-0`"):
        uw.report("zoo:demo-0")
    assert sorted(OWN.rglob("*")) == before


def test_every_function_takes_a_model_of_the_zoo_by_its_name() -> None:
    assert uw.traverse("zoo:demo-0", latents=[0], n=2).shape == (1, 2, 1, 32, 32)
    assert "equal to the last bit" in str(uw.compare("zoo:demo-0", "zoo:demo-0", n=50, n_permutations=9))
    assert uw.diagnose("zoo:demo-0").title.startswith("beta_vae on micro")
