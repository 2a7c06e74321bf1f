"""Options: read by the types of their fields, components unfolded, errors that help."""

import argparse
import json

import pytest

from unweave.cli.options import add_fields, collect, parse, read
from unweave.training.experiment import TABLES, Experiment, experiment_from


def experiment(*argv, world="micro", base=None):
    parser = argparse.ArgumentParser("test", allow_abbrev=False)
    add_fields(parser, Experiment, argv, TABLES, skip=("world",))
    given = vars(parse(parser, argv)) | {"world": world}
    return experiment_from(collect(given, Experiment, TABLES, base or {}))


def test_defaults_are_the_dataclass():
    from unweave.data.micro import Micro

    assert experiment() == Experiment(Micro())


def test_every_kind_of_field():
    found = experiment(
        *"--latents 1_2 --holdout 0.5 --order epochs --snapshots 1,2,3 --objective beta_tcvae".split(),
        *"--objective.estimator stratified --objective.beta=9 --network.channels 8,8 --network.kernels 4,2".split(),
        *"--plan.threads 3 --likelihood.subtract_entropy yes --batch-size 7".split(),
    )
    assert (found.latents, found.holdout, found.order, found.snapshots) == (12, 0.5, "epochs", (1, 2, 3))
    assert (found.objective.name, found.objective.estimator, found.objective.beta) == ("beta_tcvae", "stratified", 9.0)
    assert (found.network.channels, found.network.kernels) == ((8, 8), (4, 2))
    assert (found.plan.threads, found.likelihood.subtract_entropy, found.batch_size) == (3, True, 7)


def test_options_on_top_of_a_config():
    base = {"world": "micro", "objective": {"name": "beta_vae", "beta": 2.0}, "latents": 3}
    assert experiment("--seed", "5", base=base).objective.beta == 2.0
    assert experiment("--objective.beta", "8", base=base).objective.beta == 8.0
    assert experiment("--objective", "vae", base=base).objective.name == "vae"
    assert experiment("--latents", "4", base=base).latents == 4


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ("--objectiv vae", "unknown option 'objectiv'. Did you mean objective"),
        ("--objective beta_va", "unknown objective 'beta_va'. Did you mean beta_vae"),
        ("--objective.gamma 3", "unknown option 'objective.gamma'"),
        ("--latents ten", "--latents must be a whole number, not 'ten'"),
        ("--optimiser.learning-rate fast", "--optimiser.learning_rate must be a number, not 'fast'"),
        ("--order random", "unknown value of --order 'random'"),
        ("--likelihood.subtract-entropy maybe", "must be true or false"),
        ("stray", "unexpected 'stray'"),
    ],
)
def test_errors(argv, message):
    with pytest.raises(ValueError, match=message):
        experiment(*argv.split())


def test_read_none_where_it_is_allowed():
    assert read(int | None, "none", "size") is None
    assert read(int | None, "3", "size") == 3


def test_a_component_of_ones_own(monkeypatch, tmp_path):
    (tmp_path / "own_objective.py").write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from unweave.models.objectives import Objective\n\n"
        "@dataclass(frozen=True)\nclass Mine(Objective):\n    name: ClassVar[str] = 'mine'\n    weight: float = 1.0\n"
        "    def terms(self, code, context):\n        return {'regulariser': self.weight * code.kl.sum()}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    found = experiment("--objective", "own_objective:Mine", "--objective.weight", "3")
    assert found.objective.weight == 3.0
    from unweave.training.experiment import experiment_to

    plain = json.loads(json.dumps(experiment_to(found)))
    assert plain["objective"] == {"name": "own_objective:Mine", "weight": 3.0}
    assert experiment_from(plain) == found


def test_lists_make_a_grid():
    from unweave.cli.options import grid, numbers

    values = {"world": "micro", "seed": numbers("0:3"), "objective": "beta_vae", "objective.beta": "1,4"}
    values |= {"network.channels": "8,8", "network.kernels": "4,4"}
    found = [experiment_from(collect(one, Experiment, TABLES, {})) for one in grid(values, Experiment, TABLES, {})]
    assert [(e.seed, e.objective.beta) for e in found] == [(s, b) for s in range(3) for b in (1.0, 4.0)]
    assert {e.network.channels for e in found} == {(8, 8)}
    assert len(grid({"world": "micro", "snapshots": "1,2"}, Experiment, TABLES, {})) == 1


@pytest.mark.parametrize("text", ["3:1", "a:b", "1:", ":4"])
def test_bad_ranges(text):
    from unweave.cli.options import numbers

    with pytest.raises(ValueError, match="a range is FIRST:END"):
        numbers(text)
