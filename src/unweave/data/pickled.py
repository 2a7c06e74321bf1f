"""The plain values and arrays in a pickle, without running it.

A pickle is a program, and whoever wrote it decides what it does. Here its instructions are only read: lists,
dictionaries, tuples, numbers, text and numpy arrays of numbers are put together, and anything else is refused.
"""

import pickletools
import re
from pathlib import Path
from typing import Any

import numpy as np

RECONSTRUCT = {"numpy.core.multiarray _reconstruct", "numpy._core.multiarray _reconstruct"}
NUMBERS = re.compile(r"[biuf][0-9]{1,2}")
VALUES = {
    *("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "NONE", "NEWTRUE", "NEWFALSE"),
    *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY: dict[str, type] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def read_pickled(path: Path) -> Any:
    """What a pickle holds; a ValueError names whatever is no plain value."""
    with path.open("rb") as file:
        reader = _Reader()
        for code, argument, _ in pickletools.genops(file):
            reader.follow(code.name, argument)
    return _finished(reader.stack.pop())


class _Named:
    """A function that the pickle names. It is not looked up."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Array:
    """An array whose content comes later."""

    array: np.ndarray | None = None


class _Reader:
    """The stack and the memory that the instructions work on."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memory: dict[int, Any] = {}

    def follow(self, code: str, argument: Any) -> None:
        if code in ("PROTO", "FRAME", "STOP"):
            return
        if code in VALUES:
            self.stack.append(CONSTANTS.get(code, argument))
        elif code in EMPTY:
            self.stack.append(EMPTY[code]())
        elif code == "MARK":
            self.marks.append(len(self.stack))
        elif code in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self.memory[len(self.memory) if code == "MEMOIZE" else argument] = self.stack[-1]
        elif code in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memory[argument])
        elif code in TUPLES or code == "TUPLE":
            self.stack.append(tuple(self._taken(TUPLES.get(code))))
        else:
            self._combine(code, argument)

    def _combine(self, code: str, argument: Any) -> None:
        if code in ("APPEND", "APPENDS"):
            items = self._taken(1 if code == "APPEND" else None)
            self.stack[-1].extend(items)
        elif code in ("SETITEM", "SETITEMS"):
            items = self._taken(2 if code == "SETITEM" else None)
            self.stack[-1].update(zip(items[::2], items[1::2]))
        elif code in ("GLOBAL", "STACK_GLOBAL"):
            self.stack.append(_Named(argument if code == "GLOBAL" else " ".join(self._taken(2))))
        elif code == "REDUCE":
            named, given = self._taken(2)
            self.stack.append(_made(named, given))
        elif code == "BUILD":
            (state,) = self._taken(1)
            self.stack.append(_filled(self.stack.pop(), state))
        else:
            raise ValueError(f"it does more than to hold plain values ({code})")

    def _taken(self, n: int | None) -> list[Any]:
        """The last n values, or those after the last mark."""
        place = len(self.stack) - n if n is not None else self.marks.pop()
        taken = self.stack[place:]
        del self.stack[place:]
        return taken


def _made(named: Any, given: Any) -> Any:
    name = named.name if isinstance(named, _Named) else "something unnamed"
    if name in RECONSTRUCT:
        return _Array()
    if name == "numpy dtype" and isinstance(given[0], str) and NUMBERS.fullmatch(given[0]):
        return np.dtype(given[0])
    if name in ("__builtin__ bytes", "builtins bytes") and given == ():
        return b""
    if name == "_codecs encode" and given[1:] == ("latin1",):
        return given[0].encode("latin1")
    raise ValueError(f"it calls {name.replace(' ', '.')}, which is not read")


def _filled(made: Any, state: Any) -> Any:
    if isinstance(made, np.dtype):
        return made if state[1] == "|" else made.newbyteorder(state[1])
    if not isinstance(made, _Array) or not isinstance(state[2], np.dtype):
        raise ValueError("it builds something that is no array of numbers")
    _, shape, kind, columns_first, content = state
    made.array = np.frombuffer(content, kind).reshape(shape, order="F" if columns_first else "C")
    return made


def _finished(value: Any) -> Any:
    if isinstance(value, dict):
        return {_finished(key): _finished(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_finished(item) for item in value)
    if isinstance(value, _Named | np.dtype):
        raise ValueError("it holds something that is no plain value")
    return value.array if isinstance(value, _Array) else value
