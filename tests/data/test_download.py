"""What comes from other machines: by https, whole, as published, or not at all. A server here plays all tricks."""

import contextlib
import hashlib
import http.server
import json
import os
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from unweave.data import WORLDS, files
from unweave.data.download import open_https
from unweave.data.files import Published

CONTENT = bytes(range(256)) * 1000
SHA256 = "sha256:" + hashlib.sha256(CONTENT).hexdigest()
MD5 = "md5:" + hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


class Tricks(http.server.BaseHTTPRequestHandler):
    """The path says what to do."""

    sent = 0

    def do_GET(self) -> None:
        getattr(self, self.path.strip("/").rpartition("/")[0] or "whole")()

    def log_message(self, *words: Any) -> None:
        pass

    def head(self, length: int | str | None = len(CONTENT)) -> None:
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def whole(self) -> None:
        self.head()
        self.wfile.write(CONTENT)

    def cut(self) -> None:
        self.head()
        self.wfile.write(CONTENT[:-7])

    def cut_without_length(self) -> None:
        self.head(None)
        self.wfile.write(CONTENT[:-7])

    def cut_and_lying(self) -> None:
        self.head(len(CONTENT) - 7)
        self.wfile.write(CONTENT[:-7])

    def other(self) -> None:
        self.head()
        self.wfile.write(bytes([CONTENT[0] ^ 1]) + CONTENT[1:])

    def nonsense(self) -> None:
        self.head("-3")
        self.wfile.write(CONTENT)

    def missing(self) -> None:
        self.send_error(404)

    def to_http(self) -> None:
        self.send_response(302)
        self.send_header("Location", f"http://127.0.0.1:{self.server.server_address[1]}/data.bin")  # type: ignore[attr-defined]
        self.end_headers()

    def to_file(self) -> None:
        self.send_response(302)
        self.send_header("Location", "file:///etc/hostname")
        self.end_headers()

    def to_https(self) -> None:
        self.send_response(302)
        self.send_header("Location", "/whole/data.bin")
        self.end_headers()

    def stalled(self) -> None:
        self.head()
        self.wfile.write(CONTENT[:1000])
        time.sleep(3)

    def endless(self) -> None:
        self.head(None)
        with contextlib.suppress(OSError):
            while Tricks.sent < 1 << 28:
                self.wfile.write(bytes(1 << 16))
                Tricks.sent += 1 << 16


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("a certificate cannot be made: there is no openssl here")
    path = tmp_path_factory.mktemp("certificate") / "both.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    more = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(path), "-out", str(path.with_name("only.pem"))]
    subprocess.run([*command, *more], check=True, capture_output=True)
    path.write_bytes(path.read_bytes() + path.with_name("only.pem").read_bytes())
    return path


@pytest.fixture(scope="module")
def server(certificate: Path) -> Iterator[str]:
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tricks)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    served.socket = context.wrap_socket(served.socket, server_side=True)
    served.handle_error = lambda *about: None  # type: ignore[method-assign]
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"https://127.0.0.1:{served.server_address[1]}"
    served.shutdown()
    served.server_close()


@pytest.fixture
def trusting(certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    return partial(open_https, context=ssl.create_default_context(cafile=str(certificate)), patience=0.5)


def known(address: str, checksum: str = SHA256, n_bytes: int | None = len(CONTENT)) -> Published:
    return Published("data.bin", address, checksum, n_bytes)


@pytest.mark.parametrize("way", ["whole", "to_https"])
@pytest.mark.parametrize("checksum", [SHA256, MD5, f"{SHA256} {MD5}"])
def test_whole_files_arrive(server: str, trusting: Any, way: str, checksum: str, tmp_path: Path) -> None:
    path = files.fetch("world", known(f"{server}/{way}/data.bin", checksum), open_address=trusting)
    assert path.read_bytes() == CONTENT
    assert [found.name for found in path.parent.iterdir()] == ["data.bin"]


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("cut", "cut short: 255,993 of 256,000 bytes|could not fetch"),
        ("cut_without_length", "cut short: 255,993 of 256,000 bytes|could not fetch"),
        ("cut_and_lying", "offers 255,993 bytes, the published file has 256,000"),
        ("other", "is not the published file: sha256"),
        ("missing", "could not fetch .*404"),
        ("to_http", "leads on to http://.*which is no https"),
        ("to_file", "could not fetch|which is no https"),
        ("stalled", "could not fetch .*no answer in time"),
        ("endless", "sends more than the 256,000 bytes"),
    ],
)
def test_tricks_leave_nothing(server: str, trusting: Any, way: str, words: str, tmp_path: Path) -> None:
    begin = time.monotonic()
    with pytest.raises((OSError, ValueError), match=words):
        files.fetch("world", known(f"{server}/{way}/data.bin"), open_address=trusting)
    assert time.monotonic() - begin < 5
    assert list((tmp_path / "world").iterdir()) == []
    assert Tricks.sent < 1 << 26  # one byte too many is enough


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("cut", "cut short|could not fetch"),
        ("cut_without_length", "does not say how long"),
        ("nonsense", "does not say how long"),
        ("endless", "does not say how long"),
    ],
)
def test_tricks_with_files_of_which_nothing_is_known(
    server: str, trusting: Any, way: str, words: str, tmp_path: Path
) -> None:
    unknown = known(f"{server}/{way}/data.bin", "", None)
    with pytest.raises((OSError, ValueError), match=words):
        files.fetch("world", unknown, unchecked=True, open_address=trusting)
    assert list((tmp_path / "world").iterdir()) == []


def test_strangers_certificates_are_refused(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    with pytest.raises(OSError, match=r"could not fetch .*CERTIFICATE_VERIFY_FAILED"):
        files.fetch("world", known(f"{server}/whole/data.bin"))


def test_http_is_refused_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNWEAVE_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="no https"):
        files.fetch("world", known("http://127.0.0.1:9/data.bin"))


@pytest.mark.parametrize(("checksum", "n_bytes"), [("", None), ("", len(CONTENT)), (MD5, None)])
def test_files_of_which_too_little_is_known_need_consent(
    server: str, trusting: Any, checksum: str, n_bytes: int | None, tmp_path: Path
) -> None:
    published = known(f"{server}/whole/data.bin", checksum, n_bytes)
    with pytest.raises(ValueError, match=r"is not fetched: .*put it at .*worlds get world --unchecked"):
        files.fetch("world", published, open_address=trusting)
    path = files.fetch("world", published, unchecked=True, open_address=trusting)
    noted = json.loads((path.parent / "data.bin.json").read_text())
    assert (noted["sha256"], noted["size"]) == (SHA256.removeprefix("sha256:"), len(CONTENT))
    files.verify(path, published)
    path.write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(ValueError, match=r"is damaged|is not the published file"):
        files.verify(path, published)
    path.write_bytes(CONTENT[:-1])
    with pytest.raises(ValueError, match=r"is damaged|is not the published file|has 255999 bytes"):
        files.verify(path, published)


def test_files_put_there_by_hand_are_taken(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(CONTENT)
    files.verify(tmp_path / "data.bin", known("", "", None))


def test_what_kills_left_is_cleaned_on_the_next_write(server: str, trusting: Any, tmp_path: Path) -> None:
    folder = tmp_path / "world"
    folder.mkdir()
    gone = subprocess.Popen(["true"])
    gone.wait()
    old, young, alive = (
        folder / f".{name}.part"
        for name in (f"data.bin.{gone.pid}-7", f"x.npy.{gone.pid}", f"y.npy.{os.getpid()}-{threading.get_ident()}")
    )
    for part in (old, young, alive):
        part.write_bytes(b"half")
    for part in (old, alive):
        os.utime(part, (0, 0))
    files.fetch("world", known(f"{server}/whole/data.bin"), open_address=trusting)
    assert sorted(path.name for path in folder.iterdir()) == sorted(["data.bin", young.name, alive.name])


@pytest.mark.parametrize("name", WORLDS)
def test_published_files_come_by_https_or_by_hand(name: str) -> None:
    for published in WORLDS[name]().files():
        assert published.by_hand or published.address.startswith("https://")
        for checksum in published.checksum.split():
            algorithm, _, value = checksum.partition(":")
            assert len(value) == {"sha256": 64, "md5": 32}[algorithm]
            assert int(value, 16) >= 0
