"""The explorer outlives its store and its visitors: any folder, any JSON, any upload, clients that stall."""

import io
import json
import os
import random
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from fastapi.testclient import TestClient
from PIL import Image

from unweave.runs.folder import RunFolder
from unweave.web.app import create_app
from unweave.web.catalogue import Catalogue
from unweave.web.patience import Patience, PatientProtocol
from unweave.web.serve import configured, door_for, listen
from unweave.web.store import ReadOnlyStore

HERE = "http://127.0.0.1"
SHORT = Patience(head=1.5, body=2.5, reading=1.5, idle=1, most=200, look=0.1)
GET = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture
def port(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A server that is in a hurry, in a thread."""
    monkeypatch.setattr(PatientProtocol, "patience", SHORT)
    listening = listen("127.0.0.1", 0)
    server = uvicorn.Server(configured(made, door_for("127.0.0.1"), timeout_keep_alive=1, timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    port = listening.getsockname()[1]
    _until(lambda: server.started)
    yield port
    server.should_exit = True
    thread.join(timeout=10)
    assert not thread.is_alive()


def _until(true, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def _client(port: int, said: bytes = b"") -> socket.socket:
    found = socket.create_connection(("127.0.0.1", port), timeout=10)
    if said:
        found.sendall(said)
    return found


def _asked(port: int) -> float:
    """Seconds until a visitor who behaves is answered."""
    began = time.monotonic()
    with _client(port, GET % b"/api/store" + b"Connection: close\r\n\r\n") as one:
        answer = b"".join(iter(lambda: one.recv(65536), b""))
    assert answer.startswith(b"HTTP/1.1 200"), answer[:200]
    return time.monotonic() - began


def _closed(one: socket.socket, seconds: float) -> bool:
    """Whether the server hangs up within so many seconds, whatever it says before."""
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            one.settimeout(max(0.01, end - time.monotonic()))
            if not one.recv(1 << 20):
                return True
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return False


def test_the_stated_times() -> None:
    assert PatientProtocol.patience == Patience(10.0, 60.0, 30.0, 5, 256, 1.0)


def test_stalled_clients_are_cut_off_and_others_are_served_meanwhile(port: int) -> None:
    half = GET % b"/api/store"
    body = b"POST /api/runs/one/decode HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900\r\n\r\n{"
    stalled = [_client(port, said) for said in (b"", half, body) for _ in range(50)]
    try:
        assert max(_asked(port) for _ in range(5)) < 1.4
        began = time.monotonic()
        assert all(_closed(one, 12.0 - (time.monotonic() - began)) for one in stalled)
    finally:
        for one in stalled:
            one.close()
    assert _asked(port) < 1.4


def test_a_request_that_drips_in_is_cut_off(port: int) -> None:
    with _client(port) as one:
        began = time.monotonic()
        with pytest.raises(ConnectionError):
            _drip(one, GET % b"/api/store" * 40)
        assert time.monotonic() - began < 10.0


def _drip(one: socket.socket, said: bytes) -> None:
    for byte in said:
        one.sendall(bytes([byte]))
        time.sleep(0.05)


def test_an_answer_that_nobody_reads_is_dropped(port: int) -> None:
    asked = (GET % b"/openapi.json" + b"\r\n") * 300
    stalled = []
    for _ in range(4):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.connect(("127.0.0.1", port))
        one.sendall(asked)
        stalled.append(one)
    try:
        _until(lambda: not _established(port), 25.0)
        assert _asked(port) < 1.4
    finally:
        for one in stalled:
            one.close()


def _established(port: int) -> int:
    """Connections of the server that are still open, as the kernel counts them."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(words[1].endswith(f":{port:04X}") and words[3] == "01" for words in lines)


def test_who_comes_when_very_many_wait_is_served(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PatientProtocol, "patience", Patience(head=30.0, most=20, look=0.1))
    silent = [_client(port) for _ in range(40)]
    try:
        assert _asked(port) < 1.4
        assert sum(_closed(one, 0.2) for one in silent) >= 20
    finally:
        for one in silent:
            one.close()
        monkeypatch.setattr(PatientProtocol, "patience", SHORT)


def test_a_store_that_goes_and_comes_back(store: Path) -> None:
    away = store.with_name("away")
    with TestClient(create_app(store), base_url=HERE) as client:
        catalogue = client.app.state.catalogue  # type: ignore[attr-defined]
        catalogue.refresh()
        before = set(catalogue.rows())
        for made in (lambda: None, lambda: store.write_text("a file"), store.mkdir):
            store.rename(away)
            made()
            catalogue.refresh()
            assert catalogue.rows() == {}
            assert client.get("/api/runs").status_code == 200
            assert client.get("/api/store").json()["n_runs"] == 0
            for view in ("", "/history", "/latents", "/scores", "/codes.npz"):
                assert client.get(f"/api/runs/one{view}").status_code in (404, 410)
            store.rmdir() if store.is_dir() else store.unlink(missing_ok=True)
            away.rename(store)
            catalogue.refresh()
            assert set(catalogue.rows()) == before
            assert client.get("/api/runs/one").status_code == 200
            assert client.get("/api/store").json()["note"] == ""


def test_a_store_that_may_not_be_read(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_scandir, real_listdir = os.scandir, os.listdir

    def refuse(real):
        def call(place=".", *rest):
            if str(place).startswith(str(store)):
                raise PermissionError(13, "Permission denied", str(place))
            return real(place, *rest)

        return call

    with TestClient(create_app(store), base_url=HERE) as client:
        with monkeypatch.context() as patch:
            patch.setattr(os, "scandir", refuse(real_scandir))
            patch.setattr(os, "listdir", refuse(real_listdir))
            client.app.state.catalogue.refresh()  # type: ignore[attr-defined]
            told = client.get("/api/store").json()
            assert (told["n_runs"], "Permission denied" in told["note"]) == (0, True)
            assert client.get("/api/runs").json()["complete"]
        client.app.state.catalogue.refresh()  # type: ignore[attr-defined]
        assert client.get("/api/store").json()["n_runs"] > 5


def test_thousands_of_tiny_files_and_folders(tmp_path: Path) -> None:
    for n in range(2_000):
        if n % 2:
            (tmp_path / f"file-{n}.json").write_text("{}")
        else:
            (tmp_path / f"folder-{n}").mkdir()
            if n % 4:
                (tmp_path / f"folder-{n}" / "config.json").write_text("{}")
    catalogue = Catalogue(ReadOnlyStore(tmp_path))
    began = time.process_time()
    catalogue.refresh()
    catalogue.refresh()
    assert time.process_time() - began < 20.0  # every file against every other would be minutes
    assert len(catalogue.rows()) == 500


BAD = {
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 900 + "1" + "}" * 900,
    "long number": '{"steps": ' + "9" * 5000 + "}",
    "half a character": '{"world": {"name": "\\ud800"}}',
    "not a number": '{"world": {"name": "micro"}, "seed": NaN, "latents": Infinity}',
    "words for numbers": '{"world": {"name": "micro"}, "seed": "one", "latents": []}',
    "lists": '{"world": ["micro"], "objective": [[]], "network": 3}',
    "nothing": "",
    "null": "null",
    "not text": b"\xff\xfe",
}
VIEWS = ("", "/history", "/latents", "/diagnosis", "/scores", "/examples", "/examples/pixels", "/codes.npz")
FEW = ("", "/history")
SHOWN_BY = {"config.json": VIEWS, "failure.json": VIEWS, "scores.json": (*FEW, "/scores")}


@pytest.mark.parametrize("file", ["config.json", "scores.json", "failure.json", "environment.json", "history.parquet"])
def test_a_bad_file_of_a_run_is_an_answer_in_words(store: Path, file: str) -> None:
    whole = store / ("failed" if file == "failure.json" else "one")
    for number, content in enumerate(BAD.values()):
        shutil.copytree(whole, store / f"bad-{number}")
        RunFolder(store / f"bad-{number}").write(file, content)
    (store / "step").mkdir()
    shutil.copytree(store / "unfinished", store / "stepped")
    RunFolder(store / "stepped").write("checkpoints/step-².safetensors", b"")
    with TestClient(create_app(store), base_url=HERE, raise_server_exceptions=False) as client:
        client.app.state.catalogue.refresh()  # type: ignore[attr-defined]
        rows = client.app.state.catalogue.rows()  # type: ignore[attr-defined]
        for run_id in [f"bad-{number}" for number in range(len(BAD))] + ["stepped"]:
            assert rows[run_id]["state"] != "damaged" or rows[run_id]["failure"]
            for view in SHOWN_BY.get(file, FEW):
                answer = client.get(f"/api/runs/{run_id}{view}")
                assert answer.status_code < 500, (run_id, view, answer.text)
        assert client.get("/api/compare", params={"left": "bad-0", "right": "two"}).status_code < 500
        assert client.get("/api/runs").status_code == 200
        assert client.get("/api/sparklines", params={"ids": list(rows)[:60]}).status_code == 200


def test_a_page_says_of_flipped_weights_what_the_table_says(store: Path) -> None:
    weights = store / "one" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[len(content) // 2] ^= 1
    weights.write_bytes(content)
    with TestClient(create_app(store), base_url=HERE) as client:
        client.app.state.catalogue.refresh()  # type: ignore[attr-defined]
        assert client.app.state.catalogue.rows()["one"]["state"] == "damaged"  # type: ignore[attr-defined]
        answer = client.get("/api/runs/one").json()
    assert answer["state"] == "damaged"
    assert "model.safetensors is damaged" in answer["message"]


@pytest.mark.parametrize("name", ["record", "report", "index", "holders"])
def test_a_bad_file_of_the_store_is_an_answer_in_words(store: Path, name: str, search_name: str) -> None:
    places = {
        "record": [f"studies/{search_name}.json", "studies/pair.json"],
        "report": ["reports/pair/results.csv", f"reports/{search_name}/fondue.json"],
        "index": ["index.parquet", "index.sha256", "version", "checked.json"],
        "holders": ["holders/abc", "claims/one"],
    }
    for content in BAD.values():
        for place in places[name]:
            file = store / ".unweave" / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content if isinstance(content, bytes) else content.encode())
        with TestClient(create_app(store), base_url=HERE, raise_server_exceptions=False) as client:
            client.app.state.catalogue.refresh()  # type: ignore[attr-defined]
            assert client.app.state.catalogue.rows()["one"]["state"] == "done"  # type: ignore[attr-defined]
            for address in ("/api/store", "/api/runs", "/api/studies/pair", f"/api/searches/{search_name}"):
                answer = client.get(address)
                assert answer.status_code < 500, (address, answer.text)
                assert answer.status_code == 200 or json.loads(answer.text)["detail"]


def test_any_upload_is_an_answer(made: Path) -> None:
    draw, picture = random.Random(0), io.BytesIO()
    Image.new("RGB", (40, 30), (200, 10, 40)).save(picture, format="PNG")
    whole = picture.getvalue()
    cases = [b"", b"GIF89a", whole[: len(whole) // 2], bytes(range(256)) * 10, b"<svg/>", b"\x00" * 1000]
    for _ in range(60):
        at = draw.randrange(len(whole))
        cases.append(whole[:at] + bytes([draw.randrange(256)]) + whole[at + 1 + draw.randrange(3) :])
    with TestClient(create_app(made), base_url=HERE, raise_server_exceptions=False) as client:
        for content in [whole, *cases]:
            answer = client.post(
                "/api/runs/one/encode", content=content, headers={"content-type": "application/octet-stream"}
            )
            assert answer.status_code in (200, 413, 422), answer.text
