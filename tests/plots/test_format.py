import math

import pytest

from unweave.plots.format import count, in_words, number, short


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"),
        (0.0, "0"),
        (7, "7"),
        (300_000, "300,000"),
        (-2048, "−2,048"),
        (2.6123, "2.61"),
        (61.27, "61.3"),
        (612.7, "613"),
        (0.98765, "0.988"),
        (0.0123, "0.012"),
        (0.00123, "0.0012"),
        (-0.5, "−0.500"),
        (1e-5, "1.0×10⁻⁵"),
        (-3.21e12, "−3.2×10¹²"),
        (12345.6, "12,346"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "−∞"),
    ],
)
def test_numbers_read_well(value: float, words: str) -> None:
    assert number(value) == words


@pytest.mark.parametrize("value", [1.0, 0.1, 0.01, 0.001, 9.999, 99.99, 0.09999, 123.456, 1e-4, 5.5e8])
def test_a_number_is_not_far_from_its_words(value: float) -> None:
    # two significant digits at least: within 5 % of the value
    assert float(number(value).replace(",", "").replace("−", "-")) == pytest.approx(value, rel=0.05)


def test_axis_values_have_no_digit_too_many() -> None:
    assert [short(value) for value in (-2.5, 0.5, 1.0, 10, 0)] == ["−2.5", "0.5", "1", "10", "0"]
    assert [short(value) for value in (1000, -3000.0, 999.4, 2e6)] == ["1,000", "−3,000", "999", "2e+06"]


def test_descriptions() -> None:
    assert in_words(None) == "–"
    assert in_words(()) == "–"
    assert in_words(True) == "yes"
    assert in_words(2000) == "2,000"
    assert in_words(0.002) == "0.002"
    assert in_words(1e-08) == "1e−08"
    assert in_words([16, 32, 32]) == "16, 32, 32"
    assert in_words("β-VAE") == "β-VAE"


def test_counting() -> None:
    assert count(1, "latent") == "1 latent"
    assert count(3, "latent") == "3 latents"
