"""Configs are frozen dataclasses: written as plain JSON, read back exactly, and hashed into a run's id.

A component (a world, an objective, a network …) is a frozen dataclass with a ``name``; in JSON it becomes
``{"name": "beta_vae", "beta": 4.0}``. A user's own component is named by its import path, ``"mylib:MyObjective"``.
"""

import dataclasses
import difflib
import hashlib
import importlib
import json
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any

Tables = Mapping[type, Mapping[str, type]]
"""For every abstract component the literal table of its members: ``{World: WORLDS, Method: OBJECTIVES}``."""


def unknown(what: str, given: object, allowed: Iterable[str]) -> ValueError:
    """The error for a name that is not in a table: what was given, the nearest names, all names."""
    names = sorted(allowed)
    near = difflib.get_close_matches(str(given).lower().replace("-", "_"), names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return ValueError(f"unknown {what} {str(given)!r}.{hint} Known: {', '.join(names)}.")


def find(what: str, name: str, table: Mapping[str, type]) -> type:
    """The class that a name or an import path ``module:Class`` stands for."""
    if name in table:
        return table[name]
    if ":" in name:
        return _import(what, name)
    raise unknown(what, name, table)


def to_plain(value: Any) -> Any:
    """A config as dictionaries, lists, numbers and strings."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return ({"name": component_name(value)} if hasattr(value, "name") else {}) | fields
    if isinstance(value, tuple | list):
        return [to_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_plain(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a config may hold numbers, strings, tuples and dataclasses, not {type(value).__name__}")


def from_plain(kind: Any, plain: Any, tables: Tables, place: str = "config") -> Any:
    """The inverse of :func:`to_plain` for a value of the type ``kind``; errors name the offending place."""
    if kind in tables:
        return _component(kind, plain, tables, place)
    if dataclasses.is_dataclass(kind):
        return _fill(typing.cast(type, kind), plain, tables, place)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(arguments, plain, tables, place)
    if origin is typing.Literal:
        if plain not in arguments:
            raise ValueError(f"{place} must be one of {', '.join(map(str, arguments))}, not {plain!r}")
        return plain
    if origin is tuple:
        return _tuple(arguments, plain, tables, place)
    return _number_or_text(kind, plain, place)


def component_name(component: Any) -> str:
    """The name a component is written under: its own inside this package, its import path outside."""
    cls = type(component)
    inside = cls.__module__.split(".")[0] == "unweave"
    return str(component.name) if inside else f"{cls.__module__}:{cls.__qualname__}"


def fingerprint(config: Any, length: int = 12) -> str:
    """The id of a config: the beginning of the SHA-256 of its canonical JSON."""
    canonical = json.dumps(to_plain(config), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


def hints(cls: type) -> dict[str, Any]:
    """The resolved types of a dataclass's fields."""
    resolved = typing.get_type_hints(cls)
    return {field.name: resolved[field.name] for field in dataclasses.fields(cls)}


def _component(kind: type, plain: Any, tables: Tables, place: str) -> Any:
    if isinstance(plain, kind):
        return plain
    if isinstance(plain, str):
        plain = {"name": plain}
    if not isinstance(plain, Mapping) or "name" not in plain:
        raise ValueError(f'{place} must be a name or {{"name": …}}, not {plain!r}')
    cls = find(place.rpartition(".")[2], plain["name"], tables[kind])
    if not (isinstance(cls, type) and issubclass(cls, kind)):
        raise ValueError(f"{place}: {plain['name']} is not a {kind.__name__}")
    return _fill(cls, {key: value for key, value in plain.items() if key != "name"}, tables, place)


def _fill(cls: type, plain: Any, tables: Tables, place: str) -> Any:
    if isinstance(plain, cls):
        return plain
    if not isinstance(plain, Mapping):
        raise ValueError(f"{place} must hold the fields of {cls.__name__}, not {plain!r}")
    kinds = hints(cls)
    for key in plain:
        if key not in kinds:
            raise unknown(f"option of {place}", key, kinds)
    return cls(**{key: from_plain(kinds[key], value, tables, f"{place}.{key}") for key, value in plain.items()})


def _first_that_fits(kinds: tuple[Any, ...], plain: Any, tables: Tables, place: str) -> Any:
    errors = []
    for kind in kinds:
        if kind is type(None):
            if plain is None:
                return None
            continue
        try:
            return from_plain(kind, plain, tables, place)
        except (ValueError, TypeError) as error:
            errors.append(str(error))
    raise ValueError(errors[0] if errors else f"{place} must be empty, not {plain!r}")


def _tuple(kinds: tuple[Any, ...], plain: Any, tables: Tables, place: str) -> tuple[Any, ...]:
    if not isinstance(plain, list | tuple):
        raise ValueError(f"{place} must be a list, not {plain!r}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(from_plain(kinds[0], item, tables, f"{place}[{i}]") for i, item in enumerate(plain))
    if len(kinds) != len(plain):
        raise ValueError(f"{place} must have {len(kinds)} entries, not {len(plain)}")
    return tuple(from_plain(k, item, tables, f"{place}[{i}]") for i, (k, item) in enumerate(zip(kinds, plain)))


def _number_or_text(kind: Any, plain: Any, place: str) -> Any:
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    if isinstance(kind, type) and isinstance(plain, kind) and not (kind in (int, float) and isinstance(plain, bool)):
        return plain
    raise ValueError(f"{place} must be {getattr(kind, '__name__', kind)}, not {plain!r}")


def _import(what: str, path: str) -> type:
    module, _, name = path.partition(":")
    try:
        return typing.cast(type, getattr(importlib.import_module(module), name))
    except (ImportError, AttributeError) as error:
        raise ValueError(f"cannot import {what} {path!r}: {error}") from error
