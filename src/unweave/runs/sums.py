"""The list of a folder's checksums, ``SHA256SUMS``: what sha256sum writes and checks, and a first line of our own.

``#list DIGEST`` is the checksum of all lines below it, so that a flipped bit or a lost line is noticed; lists of
version 0.1.0 have none. ``#next DIGEST  NAME`` announces the content that is about to replace a file. Both are comments
to sha256sum.
"""

import contextlib
import hashlib
import re
from collections.abc import Mapping

from unweave.runs.names import check_name

SUMS = "SHA256SUMS"
MARK = "#list "
LINE = re.compile(r"(?P<next>#next )?(?P<sum>[0-9a-f]{64})  (?P<name>.+)")


def write_sums(sums: Mapping[str, str], coming: Mapping[str, str] | None = None) -> str:
    """The list as text."""
    lines = [f"{found}  {name}\n" for name, found in sorted(sums.items())]
    lines += [f"#next {found}  {name}\n" for name, found in sorted((coming or {}).items())]
    body = "".join(lines)
    return f"{MARK}{hashlib.sha256(body.encode()).hexdigest()}\n{body}"


def read_sums(content: bytes) -> tuple[dict[str, str], dict[str, str]]:
    """File names to checksums, and those announced; ValueError says what is wrong with the list."""
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ValueError("it is no text") from error
    if text and not text.endswith("\n"):
        raise ValueError("its last line is cut short")
    if MARK in text:
        first, _, text = text.partition("\n")
        if first != MARK + hashlib.sha256(text.encode()).hexdigest():
            raise ValueError("its lines are not the ones that were written")
    sums: dict[str, str] = {}
    coming: dict[str, str] = {}
    for number, line in enumerate(text.split("\n")[:-1], 1):
        found = LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number} is no checksum and name")
        (coming if found["next"] else sums)[check_name(found["name"])] = found["sum"]
    return sums, coming


def salvaged_sums(content: bytes) -> dict[str, str]:
    """The lines of a damaged list that can still be read: each must be checked against its file."""
    found = {}
    for line in content.decode(errors="replace").split("\n"):
        with contextlib.suppress(ValueError):
            if (read := LINE.fullmatch(line)) and not read["next"]:
                found[check_name(read["name"])] = read["sum"]
    return found
