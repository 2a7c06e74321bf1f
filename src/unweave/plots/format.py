"""Numbers as people read them: three digits that matter, thousands apart, a true minus sign."""

import math
from typing import Any

SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def number(value: float | int, digits: int = 3) -> str:
    """``value`` with about ``digits`` significant digits; whole numbers are kept whole."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if _whole(value):
        return _signed(f"{int(value):,}")
    size = abs(value)
    if size < 1e-4 or size >= 1e9:
        return _scientific(value, digits)
    # the first significant digit stands at 10^exponent, so digits − 1 − exponent places follow the point
    places = max(0, digits - 1 - math.floor(math.log10(size)))
    return _signed(f"{value:,.{min(places, digits)}f}" if size >= 0.1 else f"{value:.{places - 1}f}")


def short(value: float | int) -> str:
    """``value`` for an axis or a label: no digit more than needed."""
    # 1,000 and not 1e+03
    return _signed(f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else f"{value:.3g}")


def in_words(value: Any) -> str:
    """Any value of a description in words: numbers as they were given, lists joined, nothing as a dash."""
    if value is None or (isinstance(value, list | tuple) and not value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return number(value)
    if isinstance(value, float):
        return _signed(f"{value:g}")
    if isinstance(value, list | tuple):
        return ", ".join(in_words(one) for one in value)
    return str(value)


def count(n: int, word: str) -> str:
    """``1 latent``, ``3 latents``."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def _whole(value: float | int) -> bool:
    return isinstance(value, int) or value == 0 or (float(value).is_integer() and 1e3 <= abs(value) < 1e9)


def _scientific(value: float | int, digits: int) -> str:
    mantissa, _, exponent = f"{value:.{digits - 2}e}".partition("e")
    return _signed(mantissa) + "×10" + str(int(exponent)).translate(SUPERSCRIPTS)


def _signed(text: str) -> str:
    return text.replace("-", "−")
