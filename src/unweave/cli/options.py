"""Command-line options derived from dataclasses: every field is an option, every component brings its own.

``--objective beta_tcvae`` chooses a component; ``--objective.beta 8`` sets one of its fields.
"""

import argparse
import contextvars
import dataclasses
import itertools
import math
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import PurePath
from typing import Any, NoReturn

from unweave.cli.narrow import NarrowHelp
from unweave.config import WORDS, Bound, Range, Tables, check, find, hints, shown, to_plain, unknown
from unweave.trusted import trust

MOST_MODELS = 100_000
"""Models that one command may ask for."""

ALIASES = {"optimiser.learning_rate": ("lr", "learning-rate"), "objective.beta": ("beta",), "batch_size": ("batch",)}
"""What people call an option besides its own name."""

WHOLE = re.compile(r"([+-]?\d{1,4000}(?:\.\d{1,100})?(?:[eE]\+?\d{1,3})?)([kKmM]?)")
WIDEST = 60
"""Characters of a list of choices that stands beside its option; a longer one goes into the help."""
THOUSANDS = {"": 1, "k": 1000, "m": 1_000_000}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, like any other, and for which -1e-3 is a number."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._negative_number_matcher = re.compile(r"-(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|-inf|-nan", re.IGNORECASE)

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message.removeprefix('argument ').replace(': must', ' must', 1)}; see: {self.prog} --help")


def command(
    name: str, description: str = "", *, usage: str | None = None, examples: str = ""
) -> argparse.ArgumentParser:
    """The parser of a command: options are spelled out, and its examples keep their lines where they fit."""
    parser = Parser(
        name,
        usage=usage,
        description=description,
        epilog=examples,
        formatter_class=NarrowHelp,
        allow_abbrev=False,
    )
    # taken off every command line before its command sees it
    parser.add_argument("--trust", metavar="MODULE", help="let runs use the code of this module of yours; repeatable")
    return parser


def add_quiet(parser: argparse._ActionsContainer) -> None:
    """Results without word of how far they are."""
    parser.add_argument("--quiet", action="store_true", help="no progress")


def whole(least: int | None = None, most: int = 2**63 - 1) -> Callable[[str], int]:
    """The type of an option that takes a whole number in a range."""
    return lambda text: int(_in_range(int, text, Range(least, most)))


def real(
    least: Bound | None = None, *, above: Bound | None = None, below: Bound | None = None, most: Bound | None = None
) -> Callable[[str], float]:
    """The type of an option that takes a finite number in a range."""
    return lambda text: float(_in_range(float, text, Range(least, most, above, below)))


def add_fields(
    parser: argparse.ArgumentParser,
    cls: type,
    argv: Sequence[str],
    tables: Tables,
    skip: Sequence[str] = (),
    usual: Mapping[str, Any] = types.MappingProxyType({}),
    title: str = "settings",
) -> None:
    """Add an option for every field of a dataclass, components unfolded as chosen in ``argv``, or as ``usual``."""
    basic = parser.add_argument_group(title)
    for field in dataclasses.fields(cls):
        kind = hints(cls)[field.name]
        if field.name in skip:
            continue
        if kind in tables:
            add_component(parser, field.name, kind, argv, tables, field, usual=usual.get(field.name))
        elif dataclasses.is_dataclass(kind):
            group = parser.add_argument_group(f"{field.name}: {field.metadata.get('help', '')}")
            _add_plain(group, typing.cast(type, kind), f"{field.name}.")
        else:
            _add(basic, field.name, kind, field, field.default)


def add_component(
    parser: argparse.ArgumentParser,
    place: str,
    kind: type,
    argv: Sequence[str],
    tables: Tables,
    field: "dataclasses.Field[Any] | None" = None,
    chosen: str | None = None,
    usual: Any = None,
) -> None:
    """Add ``--place NAME`` and the options of the component that is chosen, or of the ``usual`` or default one."""
    table = tables[kind]
    text = field.metadata.get("help", "") if field is not None else ""
    group = parser.add_argument_group(f"{place}: {text}" if text else place)
    if usual is None and field is not None and field.default is not dataclasses.MISSING:
        usual = field.default
    default = "" if usual is None else usual.name
    name = chosen or scan(argv, place) or default
    if chosen is None:
        names = ", ".join(table)
        group.add_argument(
            f"--{place}",
            metavar="NAME",
            default=argparse.SUPPRESS,
            help=f"{names}, or module:Class (default {default})",
        )
    if name:
        cls = find(place, typed(name), table)
        _add_plain(group, cls, f"{place}.", tables, usual if type(usual) is cls else None)
        for inner in dataclasses.fields(cls):
            if (kind := _component_of(hints(cls)[inner.name], tables)) and (
                below := scan(argv, f"{place}.{inner.name}")
            ):
                add_component(parser, f"{place}.{inner.name}", kind, argv, tables, chosen=below)


def typed(name: str) -> str:
    """A component's name as someone typed it: who types ``module:Class`` trusts that module."""
    if ":" not in name:
        return name.replace("-", "_")
    module, _, inside = name.partition(":")
    trust(module)
    return f"{PurePath(module).stem}:{inside}" if module.endswith(".py") else name  # a file: lab/shrink.py:Shrink


def scan(argv: Sequence[str], place: str) -> str | None:
    """The value that ``--place`` has on a command line, before it is parsed."""
    for word, following in zip(argv, [*argv[1:], ""]):
        if word == f"--{place}" and following:
            return following
        if word.startswith(f"--{place}="):
            return word.partition("=")[2]
    return None


def collect(values: Mapping[str, Any], cls: type, tables: Tables, base: Mapping[str, Any]) -> dict[str, Any]:
    """The given options as a plain config on top of ``base``; texts are read by the types of their fields."""
    plain: dict[str, Any] = {key: dict(value) if isinstance(value, Mapping) else value for key, value in base.items()}
    kinds = hints(cls)
    for place in sorted((key for key in values if key.split(".")[0] in kinds), key=lambda key: "." in key):
        head, _, tail = place.partition(".")
        if not tail and kinds[head] in tables:
            name = typed(values[place])
            plain[head] = plain[head] if _named(plain.get(head)) == name else {"name": name}
        elif not tail:
            plain[head] = read(kinds[head], values[place], place)
        else:
            plain[head] = _opened(plain.get(head), cls, head)
            _set(plain[head], _class_of(head, kinds[head], plain[head], tables), tail, values[place], place, tables)
    return plain


def _set(plain: dict[str, Any], cls: type, tail: str, text: str, place: str, tables: Tables) -> None:
    """Read one option into the plain form of a component; of a component inside it, ``base.size``, too."""
    head, _, below = tail.partition(".")
    if head not in hints(cls):
        raise unknown(f"option of {plain.get('name', cls.__name__)}", head, hints(cls))
    kind = _component_of(hints(cls)[head], tables)
    if kind is None:
        plain[head] = read(hints(cls)[head], text, place)
    elif not below:
        plain[head] = {"name": typed(text)}
    else:
        plain[head] = _opened(plain.get(head), cls, head)
        _set(plain[head], find(head, plain[head]["name"], tables[kind]), below, text, place, tables)


def grid(values: Mapping[str, Any], cls: type, tables: Tables, base: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Every combination of options given as lists, ``1,2,4`` or ``0:10``, where their field takes one number."""
    several = {place for place, text in values.items() if isinstance(text, str) and ("," in text or _is_several(text))}
    plain = collect({place: text for place, text in values.items() if place not in several}, cls, tables, base)
    lists = {
        place: numbers(text).split(",")
        for place, text in values.items()
        if place in several and place.split(".")[0] in hints(cls) and _takes_one(place, cls, tables, plain)
    }
    if (n := math.prod(map(len, lists.values()))) > MOST_MODELS:
        raise ValueError(f"these lists ask for {n:,} models; one command takes at most {MOST_MODELS:,}")
    return [dict(values) | dict(zip(lists, chosen)) for chosen in itertools.product(*lists.values())]


def numbers(text: str) -> str:
    """``0:3`` as ``0,1,2``; lists stay as they are."""
    first, colon, last = text.partition(":")
    if not colon:
        return text
    try:
        begin, end = whole_number(first), whole_number(last)
    except ValueError:
        begin = end = 0
    if not 0 <= begin < end:
        raise ValueError(f"a range is FIRST:END with FIRST below END, as in 0:50, not {text[:80]!r}")
    if end - begin > MOST_MODELS:
        raise ValueError(f"the range {text[:80]} holds {shown(end - begin)} numbers, at most {MOST_MODELS:,} are taken")
    return ",".join(map(str, range(begin, end)))


def read(kind: Any, text: str, place: str) -> Any:
    """A value of a field's type from its text on the command line."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _read_union(arguments, text, place)
    if origin is tuple:
        return [read(arguments[0], part.strip(), place) for part in text.split(",") if part.strip()]
    if origin is typing.Literal:
        if text not in map(str, arguments):
            raise unknown(f"value of --{place}", text, map(str, arguments))
        return next(one for one in arguments if str(one) == text)
    if kind is bool:
        if text.lower() not in ("true", "false", "yes", "no", "1", "0"):
            raise ValueError(f"--{place} must be true or false, not {text!r}")
        return text.lower() in ("true", "yes", "1")
    if kind is int and _is_several(text):
        raise ValueError(f"--{place} takes one number here, not {text!r}: {SEVERAL}")
    try:
        return whole_number(text) if kind is int else kind(text)
    except (TypeError, ValueError) as error:
        raise ValueError(f"--{place} must be {WORDS.get(kind, kind)}, not {text!r}") from error


def whole_number(text: str) -> int:
    """A whole number as people write it: 10000, 10_000, 1e4, 10k or 1.5M."""
    found = WHOLE.fullmatch(text.strip().replace("_", ""))
    value = None if found is None else Decimal(found[1]) * THOUSANDS[found[2].lower()]
    if value is None or value != value.to_integral_value():
        raise ValueError(f"{text[:80]!r} is no whole number")
    return int(value)


def with_dashes(argv: Sequence[str]) -> list[str]:
    """The same words with ``-`` for ``_`` in option names, so that both spellings work."""
    words = []
    for word in argv:
        name, equals, value = word.partition("=")
        words.append((name.replace("_", "-") if name.startswith("--") else name) + equals + value)
    return words


def parse(parser: argparse.ArgumentParser, argv: Sequence[str]) -> argparse.Namespace:
    """Parse, and answer an unknown option with its nearest names."""
    if _LOOKING.get():
        raise _Looked(parser)
    given, rest = parser.parse_known_args(with_dashes(argv))
    if rest:
        names = [s.lstrip("-") for action in parser._actions for s in action.option_strings if s.startswith("--")]
        if rest[0].startswith("-"):
            raise unknown("option", rest[0].partition("=")[0].lstrip("-"), names)
        raise ValueError(f"unexpected {rest[0]!r}; see: {parser.prog} --help")
    return given


SEVERAL = "`unweave train` takes ranges and lists, and trains a model for each"


def _is_several(text: str) -> bool:
    """Whether someone typed a range or a list of numbers, 0:10 or 0,3,7."""
    return re.fullmatch(r"\d[\w.]*(:\d[\w.]*|(,\d[\w.]*)+)", text) is not None


def parser_of(run: Callable[[Sequence[str]], Any], argv: Sequence[str]) -> argparse.ArgumentParser:
    """The parser with which a command would read these words; nothing else of the command is done."""
    before = _LOOKING.set(True)
    try:
        run(argv)
    except _Looked as looked:
        return looked.parser
    finally:
        _LOOKING.reset(before)
    raise ValueError(f"the command came to its end without reading {' '.join(argv)!r}")


class _Looked(Exception):
    """Someone wants the parser, and nothing else."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


_LOOKING = contextvars.ContextVar("looking", default=False)


def _in_range(kind: Any, text: str, allowed: Range) -> Any:
    if kind is int and _is_several(text):
        raise argparse.ArgumentTypeError(f"must be one number, not {text[:80]!r}: {SEVERAL}")
    try:
        value = None if len(text) > 4000 else whole_number(text) if kind is int else kind(text.replace("_", ""))
        if value is None:
            raise ValueError
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be {WORDS[kind]}, not {text[:80]!r}") from error
    try:
        check("", value, allowed)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).strip()) from error
    return value


def _add_plain(
    group: Any, cls: type, prefix: str, tables: Tables = types.MappingProxyType({}), usual: Any = None
) -> None:
    for field in dataclasses.fields(cls):
        kind = _component_of(hints(cls)[field.name], tables)
        if field.metadata.get("hidden"):
            continue
        if kind is None:
            default = field.default if usual is None else getattr(usual, field.name)
            _add(group, prefix + field.name, hints(cls)[field.name], field, default)
        elif isinstance(field.default, kind) or field.default in (None, dataclasses.MISSING):
            default = f" (default {field.default.name})" if isinstance(field.default, kind) else ""
            text = f"{field.metadata.get('help', '')}: {', '.join(tables[kind])}, or module:Class{default}"
            group.add_argument(f"--{prefix}{field.name}", metavar="NAME", default=argparse.SUPPRESS, help=text)


def _component_of(kind: Any, tables: Tables) -> Any:
    """The abstract component that a field holds, also where it may be empty; None for other fields."""
    options = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    return next((option for option in options if option in tables), None)


def _add(group: Any, place: str, kind: Any, field: "dataclasses.Field[Any]", value: Any) -> None:
    # what comes where nothing is given, the help says
    default = "" if value in (dataclasses.MISSING, None) else f"default {_shown(value)}"
    allowed = str(field.metadata.get("range", ""))
    default = "; ".join(words for words in (allowed, default) if words)
    text = field.metadata.get("help", "")
    metavar = _metavar(kind)
    if metavar == "NAME":
        text = f"{text}: {', '.join(map(str, typing.get_args(kind)))}".removeprefix(": ")
    group.add_argument(
        f"--{place.replace('_', '-')}",
        *(f"--{alias}" for alias in ALIASES.get(place, ())),
        dest=place,
        metavar=metavar,
        default=argparse.SUPPRESS,
        help=f"{text} ({default})" if text and default else text or default or "required",
    )


def _metavar(kind: Any) -> str:
    if typing.get_origin(kind) is typing.Literal:
        choices = "|".join(map(str, typing.get_args(kind)))
        return choices if len(choices) <= WIDEST else "NAME"
    if typing.get_origin(kind) is tuple:
        return "NAME,NAME,…" if typing.get_args(kind)[0] is str else "N,N,…"
    options = [option for option in (typing.get_args(kind) or (kind,)) if option is not type(None)]
    return {int: "N", float: "X", bool: "true|false"}.get(options[0], "TEXT")


def _shown(default: Any) -> str:
    plain = to_plain(default)
    return ",".join(map(str, plain)) or "none" if isinstance(plain, list) else str(plain) or "empty"


def _read_union(kinds: tuple[Any, ...], text: str, place: str) -> Any:
    if type(None) in kinds and text.lower() == "none":
        return None
    errors = []
    for kind in (kind for kind in kinds if kind in WORDS or typing.get_origin(kind)):
        try:
            return read(kind, text, place)
        except ValueError as error:
            errors.append(error)
    raise errors[0]


def _takes_one(place: str, cls: type, tables: Tables, plain: Mapping[str, Any]) -> bool:
    head, _, tail = place.partition(".")
    kind = hints(cls)[head]
    if tail:
        kind = _inner(head, kind, _opened(plain.get(head), cls, head), tables, tail)
    options = typing.get_args(kind) if typing.get_origin(kind) in (typing.Union, types.UnionType) else (kind,)
    return int in options or float in options


def _named(plain: Any) -> str | None:
    return plain.get("name") if isinstance(plain, Mapping) else plain


def _opened(plain: Any, cls: type, head: str) -> dict[str, Any]:
    if isinstance(plain, Mapping):
        return dict(plain)
    if isinstance(plain, str):
        return {"name": plain}
    default = next(field.default for field in dataclasses.fields(cls) if field.name == head)
    return dict(to_plain(default))


def _inner(head: str, kind: Any, plain: Mapping[str, Any], tables: Tables, tail: str) -> Any:
    cls = _class_of(head, kind, plain, tables)
    name, _, below = tail.partition(".")
    if name not in hints(cls):
        raise unknown(f"option of {plain.get('name', cls.__name__)}", name, hints(cls))
    inner = _component_of(hints(cls)[name], tables)
    if not below or inner is None:
        return hints(cls)[name]
    return _inner(name, inner, _opened(plain.get(name), cls, name), tables, below)


def _class_of(head: str, kind: Any, plain: Mapping[str, Any], tables: Tables) -> type:
    return find(head, plain["name"], tables[kind]) if kind in tables else typing.cast(type, kind)
