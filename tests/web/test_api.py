"""What the API answers, beside what the library says itself; and what it says when a folder is not what it was."""

import base64
import io
import json
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from fastapi.testclient import TestClient
from PIL import Image

from unweave.evaluation.describe import describe
from unweave.evaluation.diagnosis import diagnose_codes
from unweave.evaluation.similarity import compare_runs
from unweave.training.run import Run
from unweave.web.app import create_app
from unweave.web.comparing import N_EXAMPLES

HERE = "http://127.0.0.1"


@pytest.fixture(scope="module")
def client(made: Path) -> Iterator[TestClient]:
    with TestClient(create_app(made), base_url=HERE) as found:
        found.app.state.catalogue.refresh()  # type: ignore[attr-defined]
        yield found


def pictures(answer) -> np.ndarray:
    assert answer.status_code == 200, answer.text
    shape = tuple(map(int, answer.headers["x-shape"].split(",")))
    return np.frombuffer(answer.content, np.uint8).reshape(shape)


def decoded(run: Run, codes: list[list[float]]) -> np.ndarray:
    """The library's own pictures, as bytes."""
    return (255.0 * run.decode(torch.tensor(codes)).clamp(0, 1)).round().permute(0, 2, 3, 1).numpy()


def test_the_store(client: TestClient, search_name: str, searched: list[str]) -> None:
    found = client.get("/api/store").json()
    assert found["n_runs"] == 6 + len(searched)
    assert found["searches"] == [search_name]
    assert [one["name"] for one in found["studies"]] == ["all", "pair"]
    assert found["studies"][1]["title"] == "Two seeds"


def test_the_table_and_its_changes(client: TestClient, searched: list[str]) -> None:
    whole = client.get("/api/runs").json()
    assert whole["whole"]
    assert whole["complete"]
    columns = {one["name"]: one for one in whole["columns"]}
    expected = dict.fromkeys(["ae", "flat", "one", "two", *searched], "done")
    expected |= {"failed": "failed", "unfinished": "unfinished"}
    assert columns["id"]["values"] == sorted(expected)
    states = [columns["state"]["words"][place] for place in columns["state"]["values"]]
    assert states == [expected[name] for name in sorted(expected)]
    assert client.get(f"/api/runs?since={whole['version']}").json()["n_rows"] == 0


def test_sparklines(client: TestClient, made: Path) -> None:
    found = client.get("/api/sparklines?ids=one&ids=unfinished&ids=nowhere&ids=..").json()["losses"]
    losses = Run(made / "one").history.column("loss")
    assert found["one"] == pytest.approx(losses.tolist(), rel=1e-4)
    assert found["unfinished"] == found["nowhere"] == found[".."] == []


def test_a_run_and_its_history(client: TestClient, made: Path) -> None:
    found = client.get("/api/runs/one").json()
    assert (found["state"], found["latents"], found["step"], found["shape"]) == ("done", 4, 40, [1, 32, 32])
    assert [factor["name"] for factor in found["factors"]] == ["x", "y", "size"]
    history = client.get("/api/runs/one/history").json()
    known = Run(made / "one").history
    assert history["steps"] == known.steps
    assert history["terms"]["loss"] == pytest.approx(known.column("loss").tolist(), rel=1e-5)
    assert np.allclose(history["kl"], known.latent("kl").T, rtol=1e-5)


def test_latents_and_diagnosis(client: TestClient, made: Path) -> None:
    known = describe(Run(made / "one"))
    found = client.get("/api/runs/one/latents").json()
    kl = [one["kl"] for one in found["latents"]]
    assert kl == sorted(kl, reverse=True)
    for one in found["latents"]:
        assert one["kl"] == pytest.approx(float(known.kl[one["latent"]]), rel=1e-5)
        assert one["type"] == known.types[one["latent"]]
        width = found["edges"][1] - found["edges"][0]
        assert sum(one["mean_histogram"]) * width == pytest.approx(1.0, abs=1e-3)
        counted, _ = np.histogram(known.code.mean[:, one["latent"]].clamp(-4, 4), found["edges"], density=True)
        assert one["mean_histogram"] == pytest.approx(counted, abs=1e-4)
    start = Run(made / "one").data.examples(torch.tensor([found["start_row"]]))
    assert found["start"] == pytest.approx(Run(made / "one").encode(start).mean[0].tolist(), abs=1e-4)
    told = client.get("/api/runs/one/diagnosis").json()
    own = diagnose_codes(known.code.mean, known.code.variance, sampled=known.code.sampled, kl=known.code.kl)
    assert told["numbers"]["rate"] == pytest.approx(own.rate, rel=1e-5)
    assert [one["type"] for one in told["latents"]] == own.types
    assert all(one["text"] and one["advice"] for one in told["findings"])


def test_decoding_is_what_the_library_decodes(client: TestClient, made: Path) -> None:
    codes = torch.linspace(-2, 2, 12).view(3, 4).tolist()
    found = pictures(client.post("/api/runs/one/decode", json={"codes": codes}))
    assert np.abs(found - decoded(Run(made / "one"), codes)).max() <= 1
    assert found.shape == (3, 32, 32, 1)


def test_many_hands_at_once_each_get_their_own_picture(client: TestClient, made: Path) -> None:
    draw = np.random.default_rng(0)
    asked = [("one", "two")[n % 2] for n in range(24)]
    codes = draw.normal(size=(24, 1, 4)).round(3).tolist()
    found: dict[int, np.ndarray] = {}

    def ask(n: int) -> None:
        found[n] = pictures(client.post(f"/api/runs/{asked[n]}/decode", json={"codes": codes[n]}))

    hands = [threading.Thread(target=ask, args=(n,)) for n in range(24)]
    for hand in hands:
        hand.start()
    for hand in hands:
        hand.join()
    runs = {name: Run(made / name) for name in ("one", "two")}
    for n in range(24):
        assert np.abs(found[n] - decoded(runs[asked[n]], codes[n])).max() <= 1


@pytest.mark.parametrize(
    ("codes", "words"),
    [
        ([[0.0] * 3], "4 numbers"),
        ([], None),
        ([[0.0] * 4] * 401, None),
        ("x", None),
        ([["x"] * 4], None),
    ],
)
def test_wrong_codes_are_refused(client: TestClient, codes: object, words: str | None) -> None:
    answer = client.post("/api/runs/one/decode", json={"codes": codes})
    assert answer.status_code == 422
    assert words is None or words in answer.json()["detail"]


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_codes_are_finite(client: TestClient, text: str) -> None:
    body = f'{{"codes": [[{text}, 0, 0, 0]]}}'
    headers = {"content-type": "application/json"}
    assert client.post("/api/runs/one/decode", content=body, headers=headers).status_code == 422
    far = '{"codes": [[1e300, -1e300, 0, 0]]}'
    assert client.post("/api/runs/one/decode", content=far, headers=headers).status_code == 200


def test_examples(client: TestClient, made: Path) -> None:
    run = Run(made / "one")
    found = client.get("/api/runs/one/examples?rows=5&rows=7").json()
    assert found["rows"] == [5, 7]
    assert found["factors"] == run.data.factors(torch.tensor([5, 7])).tolist()
    images = run.data.examples(torch.tensor([5, 7]))
    assert np.allclose(found["codes"], run.encode(images).mean, atol=1e-4)
    shown = pictures(client.get("/api/runs/one/examples/pixels?rows=5&rows=7"))
    assert (shown == (255 * images).round().permute(0, 2, 3, 1).numpy()).all()
    assert client.get("/api/runs/one/examples?n=3&seed=4").json()["rows"] == run.rows(3, 4).tolist()
    outside = client.get("/api/runs/one/examples?rows=99999")
    assert outside.status_code == 422
    assert "0…2047" in outside.json()["detail"]


def test_scores_kept_and_quick(client: TestClient, made: Path) -> None:
    kept = client.get("/api/runs/one/scores").json()
    known = json.loads((made / "one" / "scores.json").read_text())
    assert kept["kept"]
    values = {(one["metric"], one["representation"]): one["value"] for one in kept["scores"]}
    assert values["mig", "mean"] == known["mean"]["scores"]["mig"]["value"]
    assert any("Chen" in one["paper"] for one in kept["scores"] if one["metric"] == "mig")
    importance = [one for one in kept["matrices"] if one["metric"] == "dci"]
    assert np.allclose(importance[0]["values"], known["mean"]["parts"]["dci"]["importance"], rtol=1e-4)
    assert importance[0]["columns"] == ["x", "y", "size"]
    quick = client.get("/api/runs/two/scores").json()
    assert not quick["kept"]
    assert {one["metric"] for one in quick["scores"]} >= {"mig", "modularity"}
    assert {one["title"] for one in quick["matrices"]} >= {"correlation of latents"}


def test_codes_to_take_away(client: TestClient, made: Path) -> None:
    run = Run(made / "one")
    answer = client.get("/api/runs/one/codes.npz?n=50")
    assert 'filename="one-codes.npz"' in answer.headers["content-disposition"]
    found = np.load(io.BytesIO(answer.content), allow_pickle=False)
    rows = run.rows(50)
    assert found["row"].tolist() == rows.tolist()
    assert np.allclose(found["mean"], run.encode(run.data.examples(rows)).mean, atol=1e-4)
    assert found["factor_names"].tolist() == ["x", "y", "size"]
    table = pl.read_parquet(io.BytesIO(client.get("/api/runs/one/codes.parquet?n=50").content))
    assert np.allclose(table["mean_2"], found["mean"][:, 2])
    assert table["size"].to_list() == found["factors"][:, 2].tolist()


def test_compare(client: TestClient, made: Path) -> None:
    found = client.get("/api/compare?left=one&right=two").json()
    known = compare_runs([Run(made / "one"), Run(made / "two")], n=N_EXAMPLES, n_permutations=1)
    # the library averages over both orders of two seeds
    cka = np.array(found["cka"])
    assert np.allclose((cka + cka.T) / 2, known.comparisons[0].cka, atol=2e-3)
    matched = known.matched[0].matching
    assert {one["left"]: one["right"] for one in found["matches"]} == {
        left: int(right) for left, right in enumerate(matched.partner) if right >= 0
    }
    assert found["score"] == pytest.approx(matched.score, abs=1e-4)
    same = client.get("/api/compare?left=one&right=one").json()
    assert same["identical"]
    assert same["answer"] == "They learnt the same: their weights are equal to the last bit."
    assert found["answer"].partition(":")[0] == repr(known).partition(":")[0]
    other = client.get("/api/compare?left=one&right=flat")
    assert other.status_code == 422
    assert "two runs of one world" in other.json()["detail"]


def test_studies_and_searches(client: TestClient, made: Path, search_name: str) -> None:
    found = client.get("/api/studies/pair").json()
    assert found["ids"] == ["one", "two"]
    assert found["marks"][0] == {
        "what": "MIG", "column": "scores.mean.mig", "published": "0.3", "value": 0.3, "ours": 0.1, "verdict": "differs",
    }  # fmt: skip
    assert client.get("/api/studies/all").json()["ids"] is None
    search = client.get(f"/api/searches/{search_name}").json()
    known = json.loads((made / ".unweave" / "reports" / search_name / "fondue.json").read_text())
    assert search["answer"] == known["answer"]
    assert [one["value"] for one in search["visits"]] == [row["latents"] for row in known["path"]]
    assert [one["passes"] for one in search["visits"]] == [row["passes"] for row in known["path"]]
    assert [one["id"] for one in search["visits"]] == [row["run"] for row in known["path"]]
    assert client.get(f"/api/runs/{search['visits'][0]['id']}/latents").status_code == 200
    # it is a study like any other
    assert client.get(f"/api/studies/{search_name}").json()["ids"] == [one["id"] for one in search["visits"]]


def test_published_values_come_from_a_studys_report(store: Path) -> None:
    report = store / ".unweave" / "reports" / "plain"
    report.mkdir(parents=True)
    (store / ".unweave" / "studies" / "plain.json").write_text('{"experiments": ["one"], "title": ""}')
    (report / "results.csv").write_text(
        "what,published,ours,verdict\nMIG,0.25,0.2,agrees\nsign,negative,,cannot tell\n"
    )
    with TestClient(create_app(store), base_url=HERE) as client:
        found = client.get("/api/studies/plain").json()
    assert found["title"] == "plain"
    assert [(one["published"], one["value"], one["ours"]) for one in found["marks"]] == [
        ("0.25", 0.25, 0.2),
        ("negative", None, None),
    ]


def test_a_search_that_is_under_way(store: Path, search_name: str) -> None:
    (store / ".unweave" / "reports" / search_name / "fondue.json").unlink()
    with TestClient(create_app(store), base_url=HERE) as client:
        found = client.get(f"/api/searches/{search_name}").json()
    assert found["answer"] is None
    record = json.loads((store / ".unweave" / "studies" / f"{search_name}.json").read_text())
    assert found["threshold"] == record["options"]["search"]["threshold"] == 1.5
    assert all(isinstance(one["passes"], bool) for one in found["visits"])


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"findings": 3, "answer": "x"}', b"\xff"])
def test_a_damaged_end_of_a_search_is_one_sentence(store: Path, search_name: str, content: bytes) -> None:
    file = store / ".unweave" / "reports" / search_name / "fondue.json"
    for listed in (True, False):
        if not listed:
            (file.parent / "SHA256SUMS").unlink()
        file.write_bytes(content)
        with TestClient(create_app(store), base_url=HERE) as client:
            answer = client.get(f"/api/searches/{search_name}")
        assert answer.status_code == 200
        found = answer.json()
        assert (found["answer"], bool(found["visits"])) == (None, True)
        if listed or content in (b"{", b"\xff"):
            assert "What the search said at its end cannot be read: " in found["findings"][0]


def test_points_have_no_pictures(client: TestClient) -> None:
    assert client.get("/api/runs/flat").json()["is_image"] is False
    assert client.get("/api/runs/flat/latents").status_code == 200
    for answer in (
        client.post("/api/runs/flat/decode", json={"codes": [[0.0] * 3]}),
        client.get("/api/runs/flat/examples/pixels"),
        client.post("/api/runs/flat/encode", content=b"x"),
    ):
        assert answer.status_code == 409
        assert "not pictures" in answer.json()["detail"]


def test_a_deterministic_run(client: TestClient) -> None:
    found = client.get("/api/runs/ae/latents").json()
    assert not found["stochastic"]
    assert client.get("/api/runs/ae/diagnosis").json()["findings"]
    assert client.get("/api/compare?left=ae&right=one").status_code == 200
    assert client.get("/api/runs/ae/scores").status_code == 200


@pytest.mark.parametrize(("name", "words"), [("unfinished", "Interrupted"), ("failed", "kl became nan at step 7")])
def test_runs_without_a_model(client: TestClient, name: str, words: str) -> None:
    found = client.get(f"/api/runs/{name}").json()
    assert words in found["message"]
    assert client.get(f"/api/runs/{name}/history").json()["steps"] == []
    for answer in (
        client.get(f"/api/runs/{name}/latents"),
        client.post(f"/api/runs/{name}/decode", json={"codes": [[0.0] * 4]}),
        client.get(f"/api/compare?left=one&right={name}"),
    ):
        assert answer.status_code == 409
        assert name in answer.json()["detail"] or "is" in answer.json()["detail"]


def test_a_run_that_is_still_training_shows_what_it_has_saved(tmp_path: Path) -> None:
    from unweave.data.micro import Micro
    from unweave.models.networks.conv import Conv
    from unweave.training.experiment import Experiment, Plan
    from unweave.training.loop import train
    from unweave.training.running import Interrupted, RunOptions

    tiny = Experiment(Micro(), network=Conv((4, 4), (4, 4), 8), latents=3, batch_size=4, steps=9, plan=Plan("cpu", 1))
    calls = iter(range(100))
    with pytest.raises(Interrupted):
        train(replace(tiny, history_every=2), tmp_path / "now", how=RunOptions(stop=lambda: next(calls) > 5))
    with TestClient(create_app(tmp_path), base_url=HERE) as client:
        found = client.get("/api/runs/now").json()
        assert 0 < found["step"] < 9
        assert f"step {found['step']} of 9 is saved" in found["message"]
        history = client.get("/api/runs/now/history").json()
        assert history["steps"] == list(range(0, found["step"], 2))
        assert np.shape(history["kl"]) == (3, len(history["steps"]))
        assert len(client.get("/api/sparklines?ids=now").json()["losses"]["now"]) == len(history["steps"])


def test_a_folder_deleted_or_damaged_under_its_feet(store: Path) -> None:
    with TestClient(create_app(store), base_url=HERE) as client:
        code = {"codes": [[0.0] * 4]}
        for name in ("one", "two", "ae"):
            assert client.post(f"/api/runs/{name}/decode", json=code).status_code == 200
        shutil.rmtree(store / "one")
        (store / "two" / "model.safetensors").write_bytes(b"torn")
        (store / "two" / "SHA256SUMS").touch()
        (store / "ae" / "SHA256SUMS").write_text("")
        assert client.post("/api/runs/one/decode", json=code).status_code == 404
        for name in ("one", "ae"):
            for what in ("", "/history", "/latents", "/diagnosis", "/scores", "/examples", "/codes.npz"):
                answer = client.get(f"/api/runs/{name}{what}")
                assert answer.status_code in (200, 404, 409, 410), (name, what, answer.text)
                assert answer.status_code == 200 or len(answer.json()["detail"]) > 10
    with TestClient(create_app(store), base_url=HERE) as client:
        answer = client.get("/api/runs/two/latents")
        assert answer.status_code == 410
        assert "damaged" in answer.json()["detail"]
        (store / "two" / "history.parquet").write_bytes(b"torn")
        assert client.get("/api/runs/two/history").status_code == 410
        (store / "two" / "config.json").write_text("{}")
        assert client.get("/api/runs/two").status_code == 410
        assert client.get("/api/sparklines?ids=two").json()["losses"]["two"] == []


def test_a_run_trained_anew_is_opened_anew(store: Path) -> None:
    with TestClient(create_app(store), base_url=HERE) as client:
        code = {"codes": [[1.0, -1.0, 0.5, 0.0]]}
        first = client.post("/api/runs/one/decode", json=code).content
        shutil.rmtree(store / "one")
        shutil.copytree(store / "two", store / "one")
        second = client.post("/api/runs/one/decode", json=code).content
        assert second == client.post("/api/runs/two/decode", json=code).content
        assert second != first


def test_models_are_put_away(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unweave.web.open_runs.MOST_RUNS", 2)
    app = create_app(store)
    with TestClient(app, base_url=HERE) as client:
        for name in ("one", "two", "one", "ae"):
            client.post(f"/api/runs/{name}/decode", json={"codes": [[0.0] * 4]})
    assert app.state.open_runs.names == ["one", "ae"]


def as_file(image: Image.Image, kind: str = "PNG", **how: object) -> bytes:
    content = io.BytesIO()
    image.save(content, kind, **how)
    return content.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_an_image_of_ones_own(client: TestClient, made: Path, kind: str) -> None:
    disc = Run(made / "one").images(1)[0, 0].numpy()
    image = Image.fromarray((255 * disc).round().astype(np.uint8)).resize((320, 320), Image.Resampling.NEAREST)
    answer = client.post("/api/runs/one/encode", content=as_file(image.convert("RGB"), kind))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(found["picture"]))))
    assert shown.shape == (32, 32)
    code = Run(made / "one").encode(torch.tensor(shown / 255.0, dtype=torch.float32)[None, None]).mean[0]
    assert found["code"] == pytest.approx(code.tolist(), abs=1e-4)
    assert len(found["variance"]) == len(found["kl"]) == 4


BOMB = as_file(Image.new("1", (12000, 12000)))
HURT = as_file(Image.effect_noise((64, 64), 50))
BAD = {
    "nothing": b"",
    "no image": b"hello there",
    "a torn image": HURT[: len(HURT) // 2],
    "a bomb": BOMB,
    "a page": b"<svg xmlns='http://www.w3.org/2000/svg'><image href='file:///etc/passwd'/></svg>",
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n(/etc/passwd) (r) file",
    "a format too many": as_file(Image.new("L", (8, 8)), "TIFF"),
    "too large": as_file(Image.effect_noise((3200, 3200), 90)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_no_image_is_refused(client: TestClient, what: str) -> None:
    answer = client.post("/api/runs/one/encode", content=BAD[what])
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_the_schema_is_typed(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert len(schema["paths"]) >= 17
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            good = operation["responses"]["200"]["content"]
            assert any("$ref" in kind["schema"] or "format" in kind["schema"] for kind in good.values()), path
