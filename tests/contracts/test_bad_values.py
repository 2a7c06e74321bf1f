"""Every number of every component says what it may be; nonsense is refused in one line that names its field."""

import dataclasses
import json
import math
import shutil
import typing
from pathlib import Path
from typing import Any

import pytest

import unweave as uw
from unweave.cli import main
from unweave.cli.options import numbers
from unweave.config import from_plain, hints, to_plain
from unweave.models import POSTERIORS, Architecture
from unweave.runs.folder import RunFolder
from unweave.training.experiment import TABLES, Experiment, Plan, experiment_from
from unweave.training.loop import train
from unweave.training.running import NotFinite

NASTY: list[Any] = [
    -1, 0, 1, -2030, 10**6, 10**13, 10**20, 10**400, 0.5, -0.5, 1.5, 1e-300, 1e300, math.nan, math.inf, -math.inf,
    True, None, "",
    "many", "\ud800", "../x", [], [0], [-1], [10**9], [math.nan], [1] * 20_000, [[1]], {}, {"name": []},
]  # fmt: skip
INTERNAL = (
    "unhashable",
    "NoneType",
    "' object",
    "argument",
    "KeyError",
    "attribute",
    "positional",
    "<class",
    "Traceback",
)

COMPONENTS = [
    (place, name, cls)
    for place, kind in hints(Experiment).items()
    if kind in TABLES
    for name, cls in TABLES[kind].items()
]
FIELDS = [(place, name, field.name) for place, name, cls in COMPONENTS for field in dataclasses.fields(cls)]
SETTINGS = [field.name for field in dataclasses.fields(Experiment) if hints(Experiment)[field.name] not in TABLES]

SMALL = {
    "world": "micro",
    "network": {"name": "mlp", "encoder_widths": [4], "decoder_widths": [4]},
    "latents": 2,
    "steps": 1,
    "batch_size": 2,
    "plan": {"device": "cpu", "threads": 1},
}


def refused(plain: Any) -> str:
    """The sentence, or nothing where the config is accepted."""
    try:
        experiment_from(plain)
    except ValueError as error:
        return str(error)
    return ""


def is_one_sentence(sentence: str) -> bool:
    return "\n" not in sentence and len(sentence) < 600 and not any(word in sentence for word in INTERNAL)


@pytest.mark.parametrize(("place", "name", "field"), FIELDS)
def test_nasty_values_of_components(place: str, name: str, field: str) -> None:
    for value in NASTY:
        sentence = refused(SMALL | {place: {"name": name, field: value}})
        assert is_one_sentence(sentence), (value, sentence)
        assert not sentence or f"config.{place}.{field}" in sentence, (value, sentence)
        if value in (-1, 10**400) or (isinstance(value, float) and not math.isfinite(value)):
            assert sentence, value


@pytest.mark.parametrize("field", SETTINGS)
def test_nasty_values_of_settings(field: str) -> None:
    for value in NASTY:
        sentence = refused(SMALL | {field: value})
        assert is_one_sentence(sentence), (value, sentence)
        assert not sentence or f"config.{field}" in sentence, (value, sentence)


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("place", [place for place, kind in hints(Experiment).items() if kind in TABLES])
def test_nasty_components(place: str, value: Any) -> None:
    for given in (value, {"name": value}):
        sentence = refused(SMALL | {place: given})
        assert sentence
        assert is_one_sentence(sentence), sentence


CHEAP = {"objective", "likelihood", "optimiser"}

NEEDED: dict[str, dict[str, Any]] = {
    "semi_vae": {"latents": 3},
    "gvae": {"latents": 3},
    "ml_vae": {"latents": 3},
    "known_factors": {"latents": 3},
    "ws_gan": {"latents": 3, "network": {"name": "conv", "channels": [2, 2], "kernels": [4, 4], "hidden": 2}},
    "label_gan": {"latents": 3, "network": {"name": "conv", "channels": [2, 2], "kernels": [4, 4], "hidden": 2}},
}
"""What a method cannot be trained without."""


@pytest.mark.parametrize(
    # a perturbation begins with runs: tests/models/test_perturbation.py
    ("place", "name"),
    [(p, n) for p, n, cls in COMPONENTS if p in CHEAP and n != "perturbation"],
)
def test_what_is_accepted_trains_a_step(place: str, name: str, tmp_path: Path) -> None:
    cls = TABLES[hints(Experiment)[place]][name]
    smaller = {"width": 4, "depth": 1} if name == "factor_vae" else {}
    data = uw.world("micro")
    for field in dataclasses.fields(cls):
        for number, value in enumerate(NASTY):
            plain = SMALL | NEEDED.get(name, {}) | {place: {"name": name} | smaller | {field.name: value}}
            if field.name in ("width", "depth") or refused(plain):
                continue
            try:
                train(experiment_from(plain), tmp_path / f"{field.name}-{number}", data=data)
            except NotFinite:
                continue  # said in words, and no number among the results


def every_dataclass() -> list[type]:
    return [Experiment, Plan, Architecture, *(cls for _, _, cls in COMPONENTS), *POSTERIORS.values()]


@pytest.mark.parametrize("cls", every_dataclass())
def test_every_number_declares_its_range(cls: type) -> None:
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        kinds = str(hints(cls)[field.name])
        plain = typing.get_origin(hints(cls)[field.name]) is typing.Literal
        if not plain and any(word in kinds for word in ("int", "float")):
            assert str(field.metadata["range"]), field.name


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": uw.BetaVAE(-4.0)}, "config.objective.beta must be 0 or more, not -4.0"),
        ({"optimiser": uw.Adam(-1e-3)}, "config.optimiser.learning_rate must be above 0"),
        ({"optimiser": uw.Adam(beta1=1.5)}, r"config.optimiser.beta1 must lie in \[0, 1\), not 1.5"),
        ({"optimiser": uw.Adam(epsilon=-1.0)}, "config.optimiser.epsilon must be above 0"),
        ({"network": uw.MLP((0,), (4,))}, r"config.network.encoder_widths\[0\] must be at least 1"),
        ({"latents": 10**9}, "config.latents must be at most 10,000"),
        ({"plan": Plan("cpu", -1)}, "config.plan.threads must be 0 or more"),
    ],
)
def test_objects_are_checked_like_files(changes: dict[str, Any], message: str) -> None:
    from unweave.data.micro import Micro

    with pytest.raises(ValueError, match=message):
        Experiment(Micro(), **changes).resolve()


def test_a_model_that_no_machine_holds_is_refused_before_it_is_made() -> None:
    wide = experiment_from(SMALL | {"network": {"name": "mlp", "encoder_widths": [100_000] * 3}})
    with pytest.raises(ValueError, match=r"such a model would have 20,.* weights, more than 2,000,000,000"):
        wide.architecture((1, 32, 32))


def test_ranges_do_not_enter_a_config() -> None:
    assert to_plain(uw.BetaVAE(4.0)) == {"name": "beta_vae", "beta": 4.0}
    assert from_plain(Experiment, SMALL, TABLES).resolve().id == "micro-beta_vae-475f015c0e8d"


@pytest.mark.parametrize("text", ["0:100000000000000000000", "0:" + "9" * 5000, "0:100002", "²:³", "1:2:3"])
def test_endless_ranges_are_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match=r"at most 100,000 are taken|a range is FIRST:END"):
        numbers(text)


COMMANDS = [
    ("evaluate {} --samples -1", "--samples must be at least 1, not -1"),
    ("show {} --examples -2030", "--examples must be at least 1, not -2030"),
    ("show {} --examples x", "--examples must be a whole number, not 'x'"),
    ("train micro --save-every nan", "--save-every must be a finite number, not nan"),
    ("train micro --save-every -1", "--save-every must be 0 or more, not -1.0"),
    ("train micro --seeds 0:100000000000000000000", "at most 100,000 are taken"),
    ("train micro --optimiser.learning-rate -1e-3", "config.optimiser.learning_rate must be above 0, not -0.001"),
    ("train micro --optimiser.learning-rate nan", "config.optimiser.learning_rate must be a finite number, not nan"),
    ("train micro --optimiser.beta1 1.5", "config.optimiser.beta1 must lie in [0, 1), not 1.5"),
    ("train micro --objective.beta -4", "config.objective.beta must be 0 or more, not -4.0"),
    ("train micro --latents 1000000000", "config.latents must be at most 10,000, not 1000000000"),
    ("study run k-1 --workers -3", "--workers must be at least 1, not -3"),
    ("diagnose {} --examples 0", "--examples must be at least 1, not 0"),
    ("compare {} {} --permutations -1", "--permutations must be 0 or more, not -1"),
    ("traverse {} --width inf", "--width must be a finite number, not inf"),
    ("intrinsic micro --seeds 99999999999", "--seeds must be at most 10,000, not 99999999999"),
    ("explore . --port 70000", "--port must be at most 65,535, not 70000"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train(experiment_from(SMALL), tmp_path_factory.mktemp("trained") / "run")


@pytest.mark.parametrize(("words", "message"), COMMANDS)
def test_commands_refuse_nonsense(words: str, message: str, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.format(trained, trained).split()) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_help_tells_the_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "micro", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    for words in (
        "(0 or more; default 4.0)",
        "(1 to 10,000; default 10)",
        "(in [0, 1); default 0.9)",
        "--trust MODULE",
    ):
        assert words in said


DEEP = "[" * 100_000 + "]" * 100_000

MALFORMED = [
    "[]", "3", "null", '"text"', "{}", "{", "\x00", DEEP, f'{{"world": {DEEP}}}', '{"world": "micro"', '{"world": 1}',
    '{"world": {"name": ["micro"]}}', '{"world": "micro", "latents": "two"}', '{"world": "micro", "latents": null}',
    '{"world": "micro", "colour": 3}', '{"world": "micro", "objective": {"name": "beta_vae", "gamma": 1}}',
    '{"world": "micro", "latents": 1e999}', '{"world": "micro", "latents": ' + "9" * 5000 + "}",
    '{"world": "micro", "seed": NaN}', '{"world": "\\ud800"}', '{"world": "micro", "\\ud800": 1}',
    '{"world": {"name": "images", "path": "\\ud800"}}', '{"world": {"name": "images", "digest": "../../x"}}',
    '{"world": "micro", "snapshots": {}}', '{"world": "micro", "plan": []}', '{"world": "micro", "network": {}}',
]  # fmt: skip


@pytest.mark.parametrize("content", MALFORMED)
def test_malformed_run_folders(content: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(trained, tmp_path / "run")
    RunFolder(tmp_path / "run").write("config.json", content)
    for command in ("show", "resume", "diagnose", "export"):
        assert main([command, str(tmp_path / "run"), *(["out"] if command == "export" else [])]) in (1, 2)
        said = capsys.readouterr().err
        assert said.count("\n") == 1
        assert "config.json" in said
        assert is_one_sentence(said.strip()), said


@pytest.mark.parametrize("change", ["no shape", "bad shape", "other shape", "not tensors", "other weights"])
def test_malformed_weights(change: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from unweave.training.checkpoint import from_bytes, to_bytes

    shutil.copytree(trained, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    tensors, metadata = from_bytes(folder.read("model.safetensors"))
    if change == "other weights":
        tensors |= {"more": tensors.pop(next(iter(tensors)))}
    shapes = {"no shape": {}, "bad shape": {"shape": "a,²"}, "other shape": {"shape": "1,99999,99999"}}
    content = b"\xff" * 99 if change == "not tensors" else to_bytes(tensors, shapes.get(change, metadata))
    folder.write("model.safetensors", content)
    assert main(["show", str(tmp_path / "run")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert is_one_sentence(said.strip()), said
    if change != "other shape":
        assert "model.safetensors" in said


@pytest.mark.parametrize(
    "content",
    ["[]", "{}", '{"library_name": "unweave"}', '{"library_name": "unweave", "format": 1}',
     '{"library_name": "unweave", "format": "1"}', '{"library_name": "unweave", "format": 1, "architecture": []}',
     '{"library_name": "unweave", "format": 1, "architecture": {"shape": [1, 99999999999]}}', DEEP],
)  # fmt: skip
def test_malformed_exports(content: str, trained: Path, tmp_path: Path) -> None:
    folder = RunFolder(uw.export(uw.load(trained), tmp_path / "model"))
    folder.write("config.json", content)
    with pytest.raises(ValueError, match=r"config\.json") as told:
        uw.from_pretrained(folder.path)
    assert is_one_sentence(str(told.value))


def test_json_is_what_a_run_writes(trained: Path) -> None:
    assert experiment_from(json.loads((trained / "config.json").read_text())).latents == 2
