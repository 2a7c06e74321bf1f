"""unweave bench train: a table or JSON from any device."""

import json

import pytest

from unweave.cli import main

SMALL = (
    "bench train synth_nonlin --network mlp --network.encoder-widths 4 --network.decoder-widths 4"
    " --likelihood gaussian --batch-size 4 --latents 2 --models 3 --rounds 1 --seconds 0.01 --plan.threads 1"
)


def test_json_names_device_floor_and_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL.split(), "--json", "--plan.device", "cpu"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["device"].startswith("CPU")
    assert found["floor_us"] > 0
    assert [way["way"] for way in found["ways"]] == ["eager", "alone", "fleet"]


def test_the_table_has_a_row_for_every_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL.split(), "--ways", "alone,fleet", "--plan.device", "cpu"]) == 0
    out = capsys.readouterr().out
    assert "one model" in out
    assert "memory floor" in out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("--ways slow", "unknown way of training 'slow'"),
        ("--ways graph --plan.device cpu", "unknown way"),
        ("--wys x", "ways"),
    ],
)
def test_bad_input_is_answered(more: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SMALL.split(), *more.split()]) == 2
    assert message in capsys.readouterr().err


def test_an_unknown_bench_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "swim"]) == 2
    assert "unknown bench 'swim'" in capsys.readouterr().err
