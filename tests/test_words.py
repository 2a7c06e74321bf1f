"""Numbers of things in words."""

from unweave.words import number_of


def test_one_is_no_plural() -> None:
    assert number_of(0, "model") == "0 models"
    assert number_of(1, "model") == "1 model"
    assert number_of(2048, "model") == "2,048 models"
    assert number_of(1, "world of its own", "worlds of their own") == "1 world of its own"
    assert number_of(3, "world of its own", "worlds of their own") == "3 worlds of their own"
