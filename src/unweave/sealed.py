"""Small JSON files that notice what happens to them: each holds the checksum of everything else in it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from unweave.files import load_json

CHECKSUM, VERSION_KEY, VERSION = "sha256", "version", 1


def sealed(value: Mapping[str, Any], under: str = CHECKSUM) -> str:
    """An object as JSON text, with its version and, under a name, its checksum."""
    plain = json.loads(json.dumps(value)) | {VERSION_KEY: VERSION}
    return json.dumps(plain | {under: _checksum(plain)}, indent=1) + "\n"


def unsealed(content: bytes, under: str = CHECKSUM) -> dict[str, Any]:
    """The object; ValueError where it is not what was written. Files of version 0.1.0 have no checksum."""
    try:
        found = load_json(content)
    except json.JSONDecodeError as error:
        raise ValueError(f"it is no JSON from line {error.lineno} on") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not text") from error
    except UnicodeEncodeError as error:
        raise ValueError("it holds half a character") from error
    except (ValueError, RecursionError) as error:
        raise ValueError("it holds a number too long, or lists too deep") from error
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object")
    known = found.pop(under, None)
    if is_sealed(found) and known != _checksum(found):
        raise ValueError("its content is not what was written")
    if known is not None and not is_sealed(found):
        raise ValueError("its version is missing")
    return found


def is_sealed(found: Mapping[str, Any]) -> bool:
    """Whether an object that was read had a checksum."""
    return VERSION_KEY in found


def _checksum(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
