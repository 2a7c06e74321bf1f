"""Configs are frozen dataclasses: written as plain JSON, read back exactly, and hashed into a run's id.

A component (a world, an objective, a network …) is a frozen dataclass with a ``name``; in JSON it becomes
``{"name": "beta_vae", "beta": 4.0}``. A user's own component is named by its import path, ``"mylib:MyObjective"``,
and resolves where its module is trusted (:mod:`unweave.trusted`).

What a number may be is declared with its field, by :func:`number`, and checked here whenever a config is built.
"""

import dataclasses
import difflib
import functools
import hashlib
import inspect
import json
import math
import os
import reprlib
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass
from types import MappingProxyType
from typing import Any

from unweave.trusted import find_code, plug_in, plug_in_names, trust_class

Tables = Mapping[type, Mapping[str, type]]
"""For every abstract component the literal table of its members: ``{World: WORLDS, Method: OBJECTIVES}``."""


WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}

Bound = int | float


@dataclass(frozen=True)
class Range:
    """What a number may be: ``least`` and ``most`` belong to it, ``above`` and ``below`` do not."""

    least: Bound | None = None
    most: Bound | None = None
    above: Bound | None = None
    below: Bound | None = None

    def __contains__(self, value: Bound) -> bool:
        return not self.missed(value)

    def __str__(self) -> str:
        if self.least is not None and self.most is not None:
            return f"{_short(self.least)} to {_short(self.most)}"
        if self.least is not None and self.below is not None:
            return f"in [{_short(self.least)}, {_short(self.below)})"
        return " and ".join(words for words in (self._low(), self._high()) if words)

    def missed(self, value: Bound) -> str:
        """What a value outside must do, ``be at least 1``; empty for one inside."""
        if (self.least is not None and value < self.least) or (self.above is not None and value <= self.above):
            return f"be {self._low()}" if self.below is None else f"lie {self}"
        if (self.most is not None and value > self.most) or (self.below is not None and value >= self.below):
            return f"be {self._high()}" if self.below is None else f"lie {self}"
        return ""

    def _low(self) -> str:
        if self.above is not None:
            return f"above {_short(self.above)}"
        return "" if self.least is None else "0 or more" if self.least == 0 else f"at least {_short(self.least)}"

    def _high(self) -> str:
        if self.below is not None:
            return f"below {_short(self.below)}"
        return "" if self.most is None else f"at most {_short(self.most)}"


def number(
    default: Any = MISSING,
    *,
    least: Bound | None = None,
    most: Bound | None = None,
    above: Bound | None = None,
    below: Bound | None = None,
    entries: tuple[int, int] = (0, 1000),
    help: str = "",
) -> Any:
    """A field that holds a number in a range, or a list of such; ``entries`` bounds the length of a list."""
    allowed = {"range": Range(least, most, above, below), "entries": Range(*entries)}
    return dataclasses.field(default=default, metadata={"help": help} | allowed)


def later(default: Any, *, help: str = "", **bounds: Bound) -> Any:
    """A field that runs were written without: it stays out of JSON, and so of ids, while it has its default."""
    about = {"help": help, "later": True} | ({"range": Range(**bounds)} if bounds else {})
    return dataclasses.field(default=default, metadata=about)


def noted(default: Any, *, help: str = "", hidden: bool = False, **bounds: Bound) -> Any:
    """A field that says nothing of which data it is: it stays out of ids. A hidden one is filled in by itself."""
    about: dict[str, Any] = {"help": help, "later": True, "identity": False, "hidden": hidden}
    about |= {"range": Range(**bounds)} if bounds else {}
    return dataclasses.field(default=default, metadata=about)


def text(default: Any, help: str) -> Any:
    """A field that is explained and not bounded."""
    return dataclasses.field(default=default, metadata={"help": help})


def word(default: str, letters: str, *, help: str = "") -> Any:
    """A field that holds a text of these letters alone: one that becomes part of a file's name."""
    return dataclasses.field(default=default, metadata={"help": help, "letters": letters})


def check(place: str, value: Bound, allowed: Range | None = None) -> None:
    """Refuse a number that is not finite, or not in its range."""
    if abs(value) >= 2**1000 or value != value:
        raise ValueError(f"{place} must be a finite number, not {shown(value)}")
    missed = "" if allowed is None else allowed.missed(value)
    if missed:
        raise ValueError(f"{place} must {missed}, not {shown(value)}")


def check_fields(component: Any) -> None:
    """Refuse a component that was made in Python with a number out of its range."""
    for field in dataclasses.fields(component):
        _check_field(field.name, getattr(component, field.name), field)


def shown(value: object) -> str:
    """A value in an error, however long or deep it is."""
    if isinstance(value, int) and abs(value) >= 10**80:
        return f"a number of {math.floor(math.log10(abs(value))) + 1:,} digits"
    return _REPR.repr(value)


def unknown(what: str, given: object, allowed: Iterable[str]) -> ValueError:
    """The error for a name that is not in a table: what was given, the nearest names, all names."""
    names, word = sorted(allowed), str(given)[:80]
    near = difflib.get_close_matches(word.lower().replace("-", "_"), names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return ValueError(f"unknown {what} {word!r}.{hint} Known: {', '.join(names)}.")


def find(what: str, name: str, table: Mapping[str, type]) -> type:
    """The class that a name, an installed plug-in's name, or an import path ``module:Class`` stands for."""
    if name in table:
        return table[name]
    path = name if ":" in name else plug_in(what, name)
    if path is None:
        raise ValueError(f"{unknown(what, name, {*table, *plug_in_names(what)})}{_lies_here(what, name)}")
    return typing.cast(type, find_code(what, path))


def _lies_here(what: str, name: str) -> str:
    """What a name that is unknown may have been meant for: a file of one's own code, or one's own data."""
    stem = name.removesuffix(".py")
    if stem.isidentifier() and os.path.isfile(f"{stem}.py"):
        return f" {stem}.py is here: write {stem}:NAME, the class in it."
    nothing = what == "world" and not os.path.exists(name)
    return f" There is no file or folder {name[:80]!r} here either." if nothing else ""


def to_plain(value: Any, *, identity: bool = False) -> Any:
    """A config as dictionaries, lists, numbers and strings; for its ``identity``, without where things lie."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {
            field.name: to_plain(getattr(value, field.name), identity=identity)
            for field in dataclasses.fields(value)
            if not (field.metadata.get("later") and getattr(value, field.name) == field.default)
            and (field.metadata.get("identity", True) or not identity)
        }
        return ({"name": component_name(value)} if hasattr(value, "name") else {}) | fields
    if isinstance(value, tuple | list):
        return [to_plain(item, identity=identity) for item in value]
    if isinstance(value, Mapping):
        return {str(key): to_plain(item, identity=identity) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"a config may hold numbers, strings, tuples and dataclasses, not {type(value).__name__}")


def from_plain(kind: Any, plain: Any, tables: Tables, place: str = "config") -> Any:
    """The inverse of :func:`to_plain` for a value of the type ``kind``; errors name the offending place.

    Objects may stand for their plain form: every number in them is checked all the same, and 6 becomes 6.0.
    """
    if kind in tables:
        return _component(kind, plain, tables, place)
    if dataclasses.is_dataclass(kind):
        return _fill(typing.cast(type, kind), plain, tables, place)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(arguments, plain, tables, place)
    if origin is typing.Literal:
        if not any(type(plain) is type(one) and plain == one for one in arguments):
            raise ValueError(
                f"{place} must be one of {', '.join(str(one) or repr(one) for one in arguments)}, not {shown(plain)}"
            )
        return plain
    if origin is tuple:
        return _tuple(arguments, plain, tables, place)
    return _number_or_text(kind, plain, place)


def without_hidden(config: Any) -> Any:
    """A component with everything that is filled in by itself left empty: what a person has chosen."""
    hidden = [field for field in dataclasses.fields(config) if field.metadata.get("hidden")]
    return dataclasses.replace(config, **{field.name: field.default for field in hidden}) if hidden else config


def component_name(component: Any) -> str:
    """The name a component is written under: its own inside this package, its import path outside."""
    cls = type(component)
    inside = cls.__module__.split(".")[0] == "unweave"
    return str(component.name) if inside else f"{cls.__module__}:{cls.__qualname__}"


def fingerprint(config: Any, length: int = 12) -> str:
    """The id of a config: the beginning of the SHA-256 of its canonical JSON, without what is no part of it."""
    canonical = json.dumps(to_plain(config, identity=True), sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:length]


def own_modules(config: Any) -> set[str]:
    """The modules outside this package whose classes a config is made of."""
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        return set()
    inside = [own_modules(getattr(config, field.name)) for field in dataclasses.fields(config)]
    module = type(config).__module__
    return set().union(*inside) | (set() if module.split(".")[0] == "unweave" else {module})


def hints(cls: type) -> Mapping[str, Any]:
    """The resolved types of a dataclass's fields."""
    return _hints(cls)


@functools.lru_cache(maxsize=1024)
def _hints(cls: Any) -> Mapping[str, Any]:
    resolved = typing.get_type_hints(cls)
    return MappingProxyType({field.name: resolved[field.name] for field in dataclasses.fields(cls)})


def _component(kind: type, plain: Any, tables: Tables, place: str) -> Any:
    if isinstance(plain, kind):
        trust_class(type(plain))
        return _fill(type(plain), plain, tables, place) if dataclasses.is_dataclass(plain) else plain
    if isinstance(plain, str):
        plain = {"name": plain}
    if not isinstance(plain, Mapping) or not isinstance(plain.get("name"), str):
        raise ValueError(f'{place} must be a name or {{"name": …}}, not {shown(plain)}')
    cls = find(place.rpartition(".")[2] if place.count(".") < 2 else place, plain["name"], tables[kind])
    if not (isinstance(cls, type) and issubclass(cls, kind)):
        raise ValueError(f"{place}: {plain['name']} is not a {kind.__name__}")
    if inspect.isabstract(cls) or not dataclasses.is_dataclass(cls):
        raise ValueError(f"{place}: {plain['name']} is no dataclass with settings, which every {kind.__name__} must be")
    return _fill(cls, {key: value for key, value in plain.items() if key != "name"}, tables, place)


def _fill(cls: Any, plain: Any, tables: Tables, place: str) -> Any:
    if isinstance(plain, cls):
        cls = type(plain)
        plain = {field.name: getattr(plain, field.name) for field in dataclasses.fields(cls)}
    if not isinstance(plain, Mapping):
        raise ValueError(f"{place} must hold the fields of {cls.__name__}, not {shown(plain)}")
    kinds = hints(cls)
    for key in plain:
        if key not in kinds:
            raise unknown(f"option of {place}", key, kinds)
    filled = {}
    for field in dataclasses.fields(cls):
        if field.name in plain:
            here = f"{place}.{field.name}"
            filled[field.name] = from_plain(kinds[field.name], plain[field.name], tables, here)
            _check_field(here, filled[field.name], field)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise ValueError(f"{place}.{field.name} is missing")
    return cls(**filled)


def _check_field(place: str, value: Any, field: "dataclasses.Field[Any]") -> None:
    allowed: Range | None = field.metadata.get("range")
    if isinstance(value, tuple):
        entries = field.metadata.get("entries")
        if entries is not None and len(value) not in entries:
            raise ValueError(f"{place} must have {entries} entries, not {len(value)}")
        for index, one in enumerate(value):
            if isinstance(one, int | float):
                check(f"{place}[{index}]", one, allowed)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        check(place, value, allowed)
    elif isinstance(value, str) and not set(value) <= set(field.metadata.get("letters", value)):
        raise ValueError(f"{place} may hold the letters {field.metadata['letters']} only, not {shown(value)}")


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
    raise ValueError(errors[0] if errors else f"{place} must be empty, not {shown(plain)}")


def _tuple(kinds: tuple[Any, ...], plain: Any, tables: Tables, place: str) -> tuple[Any, ...]:
    if not isinstance(plain, list | tuple):
        raise ValueError(f"{place} must be a list, not {shown(plain)}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(from_plain(kinds[0], item, tables, f"{place}[{i}]") for i, item in enumerate(plain))
    if len(kinds) != len(plain):
        raise ValueError(f"{place} must have {len(kinds)} entries, not {len(plain)}")
    return tuple(from_plain(k, item, tables, f"{place}[{i}]") for i, (k, item) in enumerate(zip(kinds, plain)))


def _number_or_text(kind: Any, plain: Any, place: str) -> Any:
    if kind in WORDS and hasattr(plain, "tolist"):  # a number of NumPy or PyTorch
        plain = plain.tolist()
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        check(place, plain)
        return float(plain)
    fits = isinstance(kind, type) and isinstance(plain, kind)
    if not fits or (kind in (int, float) and isinstance(plain, bool)):
        raise ValueError(f"{place} must be {WORDS.get(kind, getattr(kind, '__name__', kind))}, not {shown(plain)}")
    if kind is float:
        check(place, plain)
    if kind is str and not plain.isascii():
        _check_text(plain, place)
    return plain


def _check_text(text: str, place: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{place} must be text, and {shown(text)} holds half a character") from error


def _short(value: Bound) -> str:
    return "2⁶³−1" if value == 2**63 - 1 else f"{value:,}" if isinstance(value, int) else f"{value:.12g}"


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 80
_REPR.maxlevel = 3
