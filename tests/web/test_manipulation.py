"""The explorer's view of a manipulation: its API beside what the library says, and the page in a browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from fastapi.testclient import TestClient

from unweave.cli import main
from unweave.data.altered import Perturbed
from unweave.recipes.perturb import Attack, Made, base_of, perturb
from unweave.runs.folder import RunFolder
from unweave.training.run import Run
from unweave.web.app import create_app

HERE = "http://127.0.0.1"
TINY = ["--network", "mlp", "--network.encoder-widths", "6", "--network.decoder-widths", "6", "--latents", "3"]
QUICK = ["--steps", "4", "--batch-size", "8", "--plan.threads", "1", "--plan.device", "cpu", "--quiet"]


@pytest.fixture(scope="module")
def manipulated(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A store with two models and a manipulation between them."""
    store = tmp_path_factory.mktemp("manipulated") / "runs"
    for seed, name in enumerate(("low", "high")):
        assert main(["train", "micro", *TINY, *QUICK, "--seed", str(seed), "--folder", str(store / name)]) == 0
    low, high = store / "low", store / "high"
    return perturb(base_of([low]), Attack(perturb_steps=4, epsilon=0.2), store, foster=[low], diminish=[high])


@pytest.fixture
def client(manipulated: Made) -> Iterator[TestClient]:
    with TestClient(create_app(manipulated.folder.parent), base_url=HERE) as found:
        yield found


def pictures(answer) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    return np.frombuffer(answer.content, np.uint8).reshape(tuple(map(int, answer.headers["x-shape"].split(","))))


def in_bytes(images: torch.Tensor) -> np.ndarray:
    return (255.0 * images.clamp(0, 1)).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()


def test_pictures_are_the_worlds(client: TestClient, manipulated: Made) -> None:
    row = torch.tensor([(3 * 16 + 9) * 8 + 5])
    asked = f"/api/runs/{manipulated.folder.name}/manipulation/pixels?values=3&values=9&values=5"
    for epsilon in (0.2, 0.35):
        seen = pictures(client.get(f"{asked}&epsilon={epsilon}"))
        known = Perturbed(str(manipulated.folder), epsilon=epsilon).load()
        assert np.array_equal(seen[2], in_bytes(known.examples(row))[0])
        assert np.array_equal(seen[1], in_bytes(0.5 + 0.5 * known.alteration.change(row))[0])
    assert np.array_equal(seen[0], in_bytes(Run(manipulated.folder).data.examples(row))[0])
    still = pictures(client.get(f"{asked}&epsilon=0"))
    assert np.array_equal(still[0], still[2])


def test_codes_are_the_models_own(client: TestClient, manipulated: Made) -> None:
    found = client.get(f"/api/runs/{manipulated.folder.name}/manipulation").json()
    assert [one["value"] for one in found["factors"]] == [8, 8, 4]
    assert found["epsilon"] == found["trained_epsilon"] == pytest.approx(0.2)
    assert 0 < found["farthest"] <= 0.2 + 1e-6
    assert [(one["side"], one["id"]) for one in found["models"]] == [("foster", "low"), ("diminish", "high")]
    row = torch.tensor([found["row"]])
    images = torch.cat([Run(manipulated.folder).data.examples(row), manipulated.world.load().examples(row)])
    for one in found["models"]:
        code = Run(manipulated.folder.parent / one["id"]).encode(images).mean
        assert one["before"] == pytest.approx(code[0].tolist(), abs=1e-5)
        assert one["after"] == pytest.approx(code[1].tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("values=16&values=0&values=0", "x must lie in 0…15"),
        ("values=1", "give a value for each of x, y, size, not 1 values"),
        ("values=-1&values=0&values=0", "x must lie in 0…15"),
        (f"values={10**30}&values=0&values=0", "less than or equal to 2147483648"),
        ("epsilon=0.6", "less than or equal to 0.5"),
        ("epsilon=nan", "epsilon"),
    ],
)
def test_questions_that_do_not_fit(client: TestClient, manipulated: Made, query: str, words: str) -> None:
    for path in ("manipulation", "manipulation/pixels"):
        answer = client.get(f"/api/runs/{manipulated.folder.name}/{path}?{query}")
        assert answer.status_code == 422
        assert words in answer.json()["detail"]


def test_other_runs_are_told_apart(client: TestClient, manipulated: Made) -> None:
    answer = client.get("/api/runs/low/manipulation")
    assert answer.status_code == 409
    assert answer.json()["detail"] == "this is a run of beta_vae, and no manipulation of images"
    assert client.get("/api/runs/nowhere/manipulation").status_code == 404
    assert client.get(f"/api/runs/{manipulated.folder.name}/latents").status_code == 409


def test_models_that_are_gone_or_others(manipulated: Made, tmp_path: Path) -> None:
    store = Path(shutil.copytree(manipulated.folder.parent, tmp_path / "runs"))
    shutil.rmtree(store / "low")
    shutil.rmtree(store / "high")
    shutil.copytree(manipulated.folder.parent / "low", store / "high")
    with TestClient(create_app(store), base_url=HERE) as client:
        found = client.get(f"/api/runs/{manipulated.folder.name}/manipulation").json()
    assert "there is no run 'low'" in found["models"][0]["missing"]
    assert "is not the one that the manipulation was made from" in found["models"][1]["missing"]
    assert found["models"][0]["before"] == []


def test_a_damaged_model_and_one_of_a_strangers_are_named(manipulated: Made, tmp_path: Path) -> None:
    store = Path(shutil.copytree(manipulated.folder.parent, tmp_path / "runs"))
    weights, other = store / "low" / "model.safetensors", RunFolder(store / "high")
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    other.write_json("config.json", other.read_json("config.json") | {"objective": {"name": "evil:Shrink"}})
    with TestClient(create_app(store), base_url=HERE) as client:
        found = client.get(f"/api/runs/{manipulated.folder.name}/manipulation").json()
    assert "model.safetensors is damaged" in found["models"][0]["missing"]
    assert "--trust evil" in found["models"][1]["missing"]
