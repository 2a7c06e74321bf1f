"""Configs: JSON and back, ids, and errors that name the place and the nearest names."""

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar, Literal

import pytest

from unweave.config import fingerprint, from_plain, to_plain


class Animal(ABC):
    name: ClassVar[str]


@dataclass(frozen=True)
class Cat(Animal):
    name: ClassVar[str] = "cat"
    lives: int = 9
    weight: float = 4.0


@dataclass(frozen=True)
class House:
    pet: Animal = Cat()
    rooms: tuple[int, ...] = (1, 2)
    colour: Literal["red", "blue"] = "red"
    owner: str | None = None


TABLES = {Animal: {"cat": Cat}}


def read(plain):
    return from_plain(House, plain, TABLES)


def test_round_trip_through_json():
    plain = {"pet": {"name": "cat", "lives": 3}, "rooms": [4], "colour": "blue", "owner": "x"}
    house = read(plain)
    assert house == House(Cat(3), (4,), "blue", "x")
    assert to_plain(house)["rooms"] == [4]
    assert to_plain(Cat(3)) == {"name": f"{__name__}:Cat", "lives": 3, "weight": 4.0}


def test_a_whole_number_is_a_float_where_one_is_meant():
    assert read({"pet": {"name": "cat", "weight": 5}}).pet.weight == 5.0


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        ({"pet": "cta"}, "unknown pet 'cta'. Did you mean cat?"),
        ({"pet": {"name": "cat", "live": 3}}, "unknown option of config.pet 'live'. Did you mean lives?"),
        ({"pet": {"name": "cat", "lives": "many"}}, "config.pet.lives must be a whole number, not 'many'"),
        ({"pet": {"name": "cat", "lives": True}}, "config.pet.lives must be a whole number, not True"),
        ({"colour": "green"}, "config.colour must be one of red, blue, not 'green'"),
        ({"rooms": [1, "two"]}, r"config.rooms\[1\] must be a whole number, not 'two'"),
        ({"pet": 7}, "config.pet must be a name or"),
        (
            {"pet": "no.such.module:Thing"},
            "uses the pet no.such.module:Thing, which is not part of unweave; .* --trust no.such.module",
        ),
        ({"pet": "unweave.config:Range"}, "is not a Animal"),
    ],
)
def test_errors_name_the_place(plain, message):
    with pytest.raises(ValueError, match=message):
        read(plain)


def test_fingerprints_follow_content():
    assert fingerprint(House()) == fingerprint(House())
    assert fingerprint(House()) != fingerprint(House(Cat(8)))
