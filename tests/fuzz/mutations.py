"""Small changes to files, each drawn from a random generator: bytes, JSON, tables, pictures, lists of checksums."""

import hashlib
import json
import os
import random
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unweave.sealed import CHECKSUM, sealed

NUMBERS = ["-1", "0", "1", "2", "1e9", "-1e9", "1e400", "nan", "inf", "-inf", "1.5", "9" * 25, "1e-320", "0x10", "1_0"]
WORDS = [
    "",
    " ",
    "none",
    "true",
    "é",
    "名",
    "\udc80",
    "\n",
    "a" * 3000,
    "../..",
    "/",
    "~",
    "%s%n",
    "a:b",
    ":",
    ",",
    "=",
    ".",
]
SHAPES = ["1,2,,3", "0:" + "9" * 20, "5:1", "[]", "{}", "1,a", "x=1", "x.y=z", "--json", "0,0", "-1,-1", "99,100"]
VALUES = NUMBERS + WORDS + SHAPES
"""What nobody would type."""

ODD: list[Any] = [
    None,
    True,
    False,
    0,
    -1,
    1,
    2**70,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "../x",
    "\ud800",
    [],
    {},
]
ODD += [[None], {"a": 1}, [[[]]], "1", 0.5, -0.5, ["x"] * 3, {"name": "x"}, "os:system", {"name": 7}, 10**12, "é" * 500]


def odd_path(rng: random.Random, at: Path) -> Path:
    """Something at ``at`` that is no ordinary file."""
    kind = rng.choice(["missing", "folder", "fifo", "dangling", "loop", "socket", "null", "zero", "empty", "below"])
    remove(at)
    if kind == "folder":
        at.mkdir()
    elif kind == "fifo":
        os.mkfifo(at)
    elif kind in ("dangling", "loop", "null", "zero"):
        at.symlink_to({"dangling": "nowhere", "loop": at.name, "null": "/dev/null", "zero": "/dev/zero"}[kind])
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            here = Path.cwd()
            os.chdir(at.parent)  # the name of a socket may not be long
            made.bind(at.name)
            os.chdir(here)
    elif kind == "empty":
        at.touch()
    return at / "below" if kind == "below" else at


def remove(path: Path) -> None:
    """Whatever is there goes."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def mutate_file(rng: random.Random, path: Path) -> str:
    """Change one file by what its name says it holds; what was done, in words."""
    content = path.read_bytes()
    kinds: list[Callable[[random.Random, bytes], tuple[bytes, str]]] = [flipped, cut, doubled, mixed_up]
    if path.suffix == ".json":
        kinds = [changed_json] * 8 + kinds
    elif path.suffix == ".csv":
        kinds = [changed_table] * 8 + kinds
    elif path.suffix == ".safetensors":
        kinds = [changed_header] * 4 + kinds
    elif path.suffix == ".npz":
        kinds = [changed_arrays] * 8 + kinds
    elif path.suffix == ".npy":
        kinds = [flipped_early] * 3 + kinds
    elif path.name == "SHA256SUMS":
        kinds = [changed_list] * 8 + kinds
    new, how = rng.choice(kinds)(rng, content)
    path.unlink()
    path.write_bytes(new)
    return f"{path.name}: {how}"


def flipped(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """One to eight bits the other way."""
    new, places = bytearray(content or b"\0"), [rng.random() for _ in range(rng.choice([1, 1, 2, 8]))]
    for place in places:
        new[int(place * len(new))] ^= 1 << rng.randrange(8)
    return bytes(new), f"{len(places)} bits flipped"


def flipped_early(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """A bit of the first hundred bytes, where headers are."""
    new = bytearray(content or b"\0")
    new[rng.randrange(min(100, len(new)))] ^= 1 << rng.randrange(8)
    return bytes(new), "a bit of its header flipped"


def cut(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """The beginning alone, or nothing."""
    length = rng.choice([0, 1, int(rng.random() * len(content)), max(0, len(content) - 1)])
    return content[:length], f"cut to {length} bytes"


def doubled(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """Twice the same."""
    return content * 2, "doubled"


def mixed_up(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """Content of another kind."""
    other = [b"{}", b"[]", b"null", b"\x89PNG\r\n\x1a\n", b"PK\x03\x04", b"\x93NUMPY", b"\xff\xfe", b"[" * 50_000, b"{"]
    new = rng.choice(other)
    return new, f"is {new[:8]!r}"


def changed_json(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """One place of a JSON document: taken away, replaced, added, renamed, repeated."""
    value = json.loads(content)
    places = list(_places(value))
    inner, key = rng.choice(places) if places else (None, None)
    new = rng.choice(ODD)
    if inner is None or rng.random() < 0.05:
        value, how = new, f"is {new!r}"
    elif (act := rng.choice(["drop", "replace", "replace", "replace", "add", "rename", "nest"])) == "drop":
        del inner[key]
        how = f"{key!r} taken away"
    elif act == "replace":
        inner[key] = new
        how = f"{key!r} is {new!r}"
    elif act == "nest":
        inner[key] = [inner[key]]
        how = f"{key!r} in a list"
    elif isinstance(inner, dict):
        name = rng.choice(["x", "", "name", "../x", "\ud800", "id", "state"])
        inner[name] = inner.pop(key) if act == "rename" else new
        how = f"{key!r} renamed {name!r}" if act == "rename" else f"{name!r} added: {new!r}"
    else:
        inner += [new] * rng.choice([1, 50])
        how = f"lengthened by {new!r}"
    return json.dumps(value).encode(), how.encode(errors="backslashreplace").decode()[:150]


def _places(value: Any) -> Any:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in list(inner):
        yield value, key
        yield from _places(below)


def changed_table(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """A cell, a row or a column of a CSV."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    row, column = rng.randrange(len(rows)), rng.randrange(len(rows[0]))
    act, new = rng.choice(["cell", "cell", "cell", "column", "row", "short", "head"]), rng.choice(VALUES)
    new = new.encode(errors="replace").decode()
    if act == "cell":
        rows[row][column] = new
    elif act == "column":
        for one in rows[1:]:
            one[column] = new
    elif act == "row":
        rows[row:] = []
    elif act == "short":
        rows[row] = rows[row][:column]
    else:
        rows[0][column] = new
    return "\n".join(",".join(one) for one in rows).encode() + b"\n", f"{act} {row},{column} is {new[:20]!r}"


def changed_header(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """The JSON header of a safetensors file."""
    length = int.from_bytes(content[:8], "little")
    header, how = changed_json(rng, content[8 : 8 + length])
    return len(header).to_bytes(8, "little") + header + content[8 + length :], f"header: {how}"


def changed_arrays(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """One array of an npz: other numbers, another shape, another kind, another name, or none."""
    import io

    import numpy as np

    arrays = dict(np.load(io.BytesIO(content)))
    name = rng.choice(sorted(arrays))
    old = arrays.pop(name)
    changes: dict[str, Callable[[], Any]] = {
        "nan": lambda: np.where(np.arange(old.size).reshape(old.shape) % 7 == 0, np.nan, old.astype(float)),
        "infinite": lambda: old.astype(float) * np.inf,
        "constant": lambda: np.zeros_like(old),
        "huge": lambda: old.astype(float) * 1e300,
        "negative": lambda: -np.abs(old.astype(float)) - 1,
        "text": lambda: old.astype(str),
        "complex": lambda: old.astype(complex),
        "bool": lambda: old.astype(bool),
        "flat": lambda: old.reshape(-1),
        "deeper": lambda: old[None, ..., None],
        "short": lambda: old[:1],
        "none": lambda: old[:0],
        "no columns": lambda: old.reshape(len(old), -1)[:, :0],
        "scalar": lambda: np.float64(1),
        "half": lambda: old.astype(np.float16),
        "bytes": lambda: old.astype(np.uint8),
        "dates": lambda: old.astype(int).astype("datetime64[s]"),
    }
    change = rng.choice([*changes, "missing", "renamed"])
    if change == "renamed":
        arrays["x y"] = old
    elif change != "missing":
        with np.errstate(all="ignore"):
            arrays[name] = changes[change]()
    written = io.BytesIO()
    np.savez(written, **arrays)
    return written.getvalue(), f"{name}: {change}"


def changed_list(rng: random.Random, content: bytes) -> tuple[bytes, str]:
    """A line of SHA256SUMS, with the list's own checksum made good again or not."""
    lines = content.decode(errors="replace").splitlines()[1:] or [f"{'0' * 64}  x"]
    at, names = (
        rng.randrange(len(lines)),
        ["../x", "/etc/passwd", "a//b", "checkpoints/step-².safetensors", "é", " ", "."],
    )
    names += [
        "checkpoints/step-000000099.safetensors",
        "snapshots/step-000000007.safetensors",
        "measures/x-0.json",
        "x" * 990,
    ]
    names += [
        "measures/../../x.json",
        "model.safetensors",
        "failure.json",
        "member.json",
        "config.json/x",
        "history.csv",
    ]
    act, name = rng.choice(["drop", "rename", "rename", "rename", "add", "add", "sum", "next"]), rng.choice(names)
    if act == "drop":
        del lines[at]
    elif act == "rename":
        lines[at] = f"{lines[at][:64]}  {name}"
    elif act in ("add", "next"):
        lines.append(f"{'#next ' if act == 'next' else ''}{hashlib.sha256(b'').hexdigest()}  {name}")
    else:
        lines[at] = f"{'0' * 64}{lines[at][64:]}"
    body = "".join(f"{line}\n" for line in lines)
    head = f"#list {hashlib.sha256(body.encode()).hexdigest()}\n" if rng.random() < 0.9 else ""
    return (head + body).encode(), f"{act} {name[:40]!r}"


def relist(folder: Path) -> None:
    """Make a list good again for what the folder holds now, as somebody would who means it."""
    content = (folder / "SHA256SUMS").read_text().splitlines()
    names = [line.rpartition("  ")[2] for line in content if not line.startswith("#")]
    sums = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names if (folder / name).is_file()
    }
    body = "".join(f"{found}  {name}\n" for name, found in sorted(sums.items()))
    (folder / "SHA256SUMS").unlink()
    (folder / "SHA256SUMS").write_text(f"#list {hashlib.sha256(body.encode()).hexdigest()}\n{body}")


def reseal(path: Path) -> bool:
    """Make the checksum inside a small JSON file good again, as whoever means it would; false where it has none."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or CHECKSUM not in found:
        return False
    path.write_text(sealed({name: value for name, value in found.items() if name != CHECKSUM}))
    return True
