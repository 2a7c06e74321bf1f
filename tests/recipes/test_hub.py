"""The hub's own library against a stand-in of the hub on this machine: what is sent, fetched, opened and refused."""

import base64
import hashlib
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from unweave.recipes.zoo import OWN

MODEL = OWN / "demo-0"
TOKEN = "stand-in-token"
LARGE = (".safetensors", ".parquet")
"""What the hub keeps apart from its git repositories."""


class Hub(http.server.ThreadingHTTPServer):
    """Repositories by name, each file by its path; and whatever came in, request by request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.large: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.status = 0
        self.damaged = ""

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        self.asked.append(f"error {sys.exc_info()[1]!r}")


class _Answer(http.server.BaseHTTPRequestHandler):
    """The part of the hub's protocol that pushing and pulling need."""

    protocol_version = "HTTP/1.1"
    server: Hub

    def log_message(self, *words: Any) -> None:
        """Nothing: requests are kept in ``asked``."""

    def __getattr__(self, name: str) -> Any:
        if name in ("do_GET", "do_HEAD", "do_POST", "do_PUT"):
            return self._answer
        raise AttributeError(name)

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        body = self._body()
        self.server.asked.append(f"{self.command} {path}")
        writes = self.command in ("POST", "PUT") and not path.startswith("/large/")
        if writes and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._refuse(401, "", "Invalid username or password.")
        if self.server.status:
            return self._refuse(self.server.status, "", "not now")
        for pattern, answer in ROUTES.items():
            found = re.fullmatch(pattern, path)
            if found:
                return answer(self, body, *found.groups())
        return self._refuse(404, "", f"nothing at {path}")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _send(self, content: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _json(self, value: Any, status: int = 200) -> None:
        self._send(json.dumps(value).encode(), status, Content_Type="application/json")

    def _refuse(self, status: int, code: str, words: str) -> None:
        named = {"X_Error_Code": code} if code else {}
        self._send(json.dumps({"error": words}).encode(), status, X_Error_Message=words, **named)

    def create(self, body: bytes) -> None:
        asked = json.loads(body)
        name = f"{asked['organization']}/{asked['name']}"
        is_new = name not in self.server.repositories
        self.server.repositories.setdefault(name, {})
        self._json({"url": f"{self.server.address}/{name}"}, 200 if is_new else 409)

    def check_card(self, body: bytes) -> None:
        head = json.loads(body)["content"]
        self._json(
            {
                "errors": [] if head.startswith("---\nlibrary_name: unweave") else [{"message": "no head"}],
                "warnings": [],
            }
        )

    def modes(self, body: bytes, name: str) -> None:
        paths = [one["path"] for one in json.loads(body)["files"]]
        modes = {path: "lfs" if path.endswith(LARGE) else "regular" for path in paths}
        self._json({"files": [{"path": one, "uploadMode": mode, "shouldIgnore": False} for one, mode in modes.items()]})

    def batch(self, body: bytes, name: str) -> None:
        def actions(one: dict[str, Any]) -> dict[str, Any]:
            if one["oid"] in self.server.large:
                return {}
            upload = {"href": f"{self.server.address}/large/{one['oid']}"}
            return {"actions": {"upload": upload, "verify": {"href": f"{self.server.address}/verify"}}}

        objects = [one | actions(one) for one in json.loads(body)["objects"]]
        self._json({"transfer": "basic", "objects": objects})

    def keep(self, body: bytes, sha256: str) -> None:
        self.server.large[sha256] = body
        self._send(b"")

    def verify(self, body: bytes) -> None:
        asked = json.loads(body)
        kept = self.server.large[asked["oid"]]
        is_whole = (len(kept), hashlib.sha256(kept).hexdigest()) == (asked["size"], asked["oid"])
        self._json({}, 200 if is_whole else 422)

    def commit(self, body: bytes, name: str) -> None:
        files = self.server.repositories[name]
        for line in map(json.loads, body.splitlines()):
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.server.large[value["oid"]]
        self._json({"commitUrl": f"{self.server.address}/{name}/commit/{_sha(files)}", "commitOid": _sha(files)})

    def info(self, body: bytes, name: str) -> None:
        if name not in self.server.repositories:
            known = self.headers.get("Authorization") == f"Bearer {TOKEN}"  # strangers are not told what exists
            return self._refuse(404 if known else 401, "RepoNotFound" if known else "", "Repository not found")
        files = self.server.repositories[name]
        self._json({"id": name, "sha": _sha(files), "private": False, "tags": [], "downloads": 0, "likes": 0,
                    "siblings": [{"rfilename": path} for path in files]})  # fmt: skip

    def tree(self, body: bytes, name: str, revision: str) -> None:
        def entry(path: str, content: bytes) -> dict[str, Any]:
            large = {"lfs": {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}}
            plain = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
            return plain | (large if path.endswith(LARGE) else {})

        self._json([entry(path, content) for path, content in self.server.repositories[name].items()])

    def resolve(self, body: bytes, name: str, revision: str, path: str) -> None:
        files = self.server.repositories.get(name, {})
        if path not in files:
            return self._refuse(404, "EntryNotFound", "Entry not found")
        content = files[path]
        sent = content[:-1] + bytes([content[-1] ^ 1]) if path == self.server.damaged else content
        tag = (hashlib.sha256 if path.endswith(LARGE) else hashlib.sha1)(content).hexdigest()
        self._send(sent, ETag=f'"{tag}"', X_Repo_Commit=_sha(files), X_Linked_Size=str(len(content)))


NAME, REVISION = r"([\w.-]+/[\w.-]+)", r"([^/]+)"
ROUTES: dict[str, Callable[..., None]] = {
    "/api/repos/create": _Answer.create,
    "/api/validate-yaml": _Answer.check_card,
    f"/api/models/{NAME}/preupload/main": _Answer.modes,
    rf"/{NAME}\.git/info/lfs/objects/batch": _Answer.batch,
    "/large/([0-9a-f]{64})": _Answer.keep,
    "/verify": _Answer.verify,
    f"/api/models/{NAME}/commit/main": _Answer.commit,
    f"/api/models/{NAME}(?:/revision/main)?": _Answer.info,
    f"/api/models/{NAME}/tree/{REVISION}": _Answer.tree,
    f"/{NAME}/resolve/{REVISION}/(.+)": _Answer.resolve,
}


def _sha(files: dict[str, bytes]) -> str:
    """The name of a commit: forty digits that are others when any file is."""
    return hashlib.sha1(b"".join(path.encode() + files[path] for path in sorted(files))).hexdigest()


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def full(hub: Hub) -> Hub:
    """A hub that has the model already."""
    hub.repositories["me/mine"] = _files(MODEL)
    return hub


def _files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def _python(hub: Hub | str, place: Path, *words: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter whose library knows only the stand-in, and none of what this machine has stored."""
    foreign = ("HF_", "HUGGING", "XDG_", "UNWEAVE_ZOO")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(foreign) and "proxy" not in name.lower()
    }
    given = {
        "HF_ENDPOINT": hub if isinstance(hub, str) else hub.address,
        "HF_HOME": str(place / "home"),
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_XET": "1",
        "OMP_NUM_THREADS": "1",
    }
    given |= {"HF_TOKEN": token} if token else {}
    return subprocess.run(
        [sys.executable, *words], cwd=place, env=kept | given, capture_output=True, text=True, timeout=120
    )


def _unweave(hub: Hub | str, place: Path, *words: str, token: str = TOKEN) -> subprocess.CompletedProcess[str]:
    return _python(hub, place, "-c", "import sys; from unweave.cli import main; sys.exit(main())", *words, token=token)


def test_a_model_that_is_pushed_and_pulled_is_the_same_to_the_byte_and_opens(hub: Hub, tmp_path: Path) -> None:
    pushed = _unweave(hub, tmp_path, "zoo", "push", str(MODEL), "me/mine")
    assert (pushed.returncode, pushed.stderr) == (0, "")
    assert pushed.stdout == f"pushed: {hub.address}/me/mine\n"
    assert hub.repositories["me/mine"] == _files(MODEL)
    assert sum(one.startswith("PUT /large/") for one in hub.asked) == 2  # weights and history, each verified
    assert hub.asked.count("POST /verify") == 2

    pulled = _unweave(hub, tmp_path, "zoo", "pull", "me/mine", "theirs", token="")
    assert (pulled.returncode, pulled.stderr) == (0, "")
    assert pulled.stdout == "here: theirs\nsee it with: unweave show theirs\n"
    assert _files(tmp_path / "theirs") == _files(MODEL)

    code = """
import unweave as uw
mine, theirs, bare = uw.load("zoo:demo-0"), uw.load("theirs"), uw.from_pretrained("me/mine")
images = mine.images(4)
for model in (theirs.model, bare):
    assert (model.encode(images).mean == mine.model.encode(images).mean).all()
print(theirs.scores["mean"]["mig"])
"""
    opened = _python(hub, tmp_path, "-c", code, token="")
    assert opened.returncode == 0, opened.stderr
    assert "0." in opened.stdout
    assert not [one for one in hub.asked if one.startswith("error")]


def test_pushing_again_sends_no_weights_that_the_hub_has(full: Hub, tmp_path: Path) -> None:
    for content in full.repositories["me/mine"].values():
        full.large[hashlib.sha256(content).hexdigest()] = content
    again = _unweave(full, tmp_path, "zoo", "push", str(MODEL), "me/mine")
    assert (again.returncode, again.stderr) == (0, "")
    assert not [one for one in full.asked if one.startswith("PUT")]
    assert full.repositories["me/mine"] == _files(MODEL)


@pytest.mark.parametrize(
    ("words", "token", "status", "said"),
    [
        (["push", str(MODEL), "me/mine"], "", 0, "opens me/mine to nobody it does not know"),
        (["push", str(MODEL), "me/mine"], "another", 0, "log in with: hf auth login, or set HF_TOKEN"),
        (["push", str(MODEL), "you/yours"], TOKEN, 403, "you may not write you/yours"),
        (["push", str(MODEL), "me/.."], TOKEN, 0, "'me/..' is no name of a model on the hub; one reads owner/model"),
        (["pull", "me/none"], TOKEN, 0, "has no me/none that you may see; check the name"),
        (["pull", "me/none"], "", 0, "opens me/none to nobody it does not know; check the name"),
    ],
)
def test_what_the_hub_refuses_is_told_in_one_sentence(
    hub: Hub, tmp_path: Path, words: list[str], token: str, status: int, said: str
) -> None:
    hub.status = status
    _refused(_unweave(hub, tmp_path, "zoo", *words, token=token), said, code=2)
    assert hub.repositories == {}
    assert not (tmp_path / "runs" / "none").exists()


def test_a_hub_that_is_not_there_is_told_in_one_sentence(tmp_path: Path) -> None:
    with Hub() as gone:
        address = gone.address
    for words in (["push", str(MODEL), "me/mine"], ["pull", "me/mine"]):
        _refused(_unweave(address, tmp_path, "zoo", *words), f"the hub at {address} cannot be reached", code=2)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "README.md"])
def test_a_damaged_file_from_the_hub_is_refused_and_nothing_is_left(full: Hub, tmp_path: Path, name: str) -> None:
    full.damaged = name
    pulled = _unweave(full, tmp_path, "zoo", "pull", "me/mine", "theirs")
    _refused(pulled, f"{name} of me/mine came damaged from the hub", code=1)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["home"]


def test_a_damaged_model_of_the_hub_is_fetched_once_more_and_never_opened(full: Hub, tmp_path: Path) -> None:
    code = "import unweave as uw; uw.from_pretrained('me/mine')"
    full.damaged = "model.safetensors"
    refused = _python(full, tmp_path, "-c", code)
    assert refused.returncode == 1
    assert "model.safetensors is damaged: its checksum differs" in refused.stderr.splitlines()[-1]
    assert sum(one.startswith("GET") and one.endswith("/model.safetensors") for one in full.asked) == 2
    full.damaged = ""  # what lies damaged in the library's cache does not stay there
    assert _python(full, tmp_path, "-c", code).returncode == 0


def test_a_folder_that_is_neither_here_nor_on_the_hub_is_said_to_be_neither(hub: Hub, tmp_path: Path) -> None:
    tried = _python(hub, tmp_path, "-c", "import unweave as uw; uw.from_pretrained('runs/typo')")
    assert "there is no folder runs/typo, and the hub at" in tried.stderr.splitlines()[-1]


def test_what_is_on_the_hub_and_no_run_is_not_pulled(full: Hub, tmp_path: Path) -> None:
    del full.repositories["me/mine"]["SHA256SUMS"]
    said = "me/mine on the hub is no run of unweave; open its model with: uw.from_pretrained('me/mine')"
    _refused(_unweave(full, tmp_path, "zoo", "pull", "me/mine", "theirs"), said, code=2)
    assert not (tmp_path / "theirs").exists()


def _refused(ended: subprocess.CompletedProcess[str], said: str, code: int) -> None:
    assert ended.returncode == code
    assert said in ended.stderr
    assert ended.stderr.startswith("unweave: ")
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert ended.stdout == ""
