"""Models of a search, each trained alone: finished and held ones are left, failures are data, stopping stops."""

import errno
from pathlib import Path

import pytest
from tiny_studies import tiny

import unweave as uw
from unweave.studies import one_by_one
from unweave.studies.leases import Holder
from unweave.studies.measures import Polarised
from unweave.studies.one_by_one import OneByOne
from unweave.studies.pack import Pack
from unweave.studies.store import Store
from unweave.training.loop import train
from unweave.training.running import Interrupted, RunOptions


def test_a_model_is_the_one_that_train_makes_and_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack, ended = Pack((tiny(0).resolve(), tiny(1, optimiser=uw.Adam(1e30)).resolve()), (Polarised(32),)), list[Pack]()
    store, (good, bad) = Store(tmp_path / "store"), pack.experiments
    OneByOne()([pack], store.root, RunOptions(), ended.append)
    assert ended == [pack]
    alone = train(good, tmp_path / "alone") / "model.safetensors"
    assert store.folder(good.id).read("model.safetensors") == alone.read_bytes()
    assert store.folder(good.id).has(Polarised(32).file)
    assert "became" in store.table()["failure"][store.table()["id"].to_list().index(bad.id)]
    monkeypatch.setattr(one_by_one, "train", None)
    OneByOne()([pack], store.root, RunOptions(), ended.append)
    assert ended == [pack, pack]
    assert not store.folder(good.id).has("failure.json")


def test_a_held_model_is_left_to_its_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, experiment = Store(tmp_path).prepare(), tiny(0).resolve()
    monkeypatch.setattr(one_by_one, "train", None)
    with Holder(store.home) as other:
        assert other.take(experiment.id)
        one_by_one._train_alone(experiment, store, RunOptions())
    assert not store.folder(experiment.id).path.exists()


@pytest.mark.parametrize(
    "error",
    [OSError(errno.ENOSPC, "full"), BlockingIOError("held"), Interrupted("stopped")],
    ids=["full", "held", "stop"],
)
def test_what_is_no_fault_of_a_model_is_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    store, experiment = Store(tmp_path).prepare(), tiny(0).resolve()
    monkeypatch.setattr(one_by_one, "train", fail)
    with pytest.raises(type(error)):
        one_by_one._train_alone(experiment, store, RunOptions())
    assert not store.folder(experiment.id).path.exists()
    with Holder(store.home) as other:
        assert other.take(experiment.id)  # it was let go


def test_nothing_begins_once_it_is_asked_to_stop(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        OneByOne()([Pack((tiny(0).resolve(),))], tmp_path, RunOptions(stop=lambda: True), lambda pack: None)
    assert not list(tmp_path.iterdir())
