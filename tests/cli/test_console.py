"""Whatever strangers' files hold can be printed."""

import json

import pytest

from unweave.cli.console import print_json, print_table, say

HALF = "half \ud800 of a character, wholly ü"


def test_half_characters_are_printed_as_escapes(capfd: pytest.CaptureFixture[str]) -> None:
    print_json({HALF: [HALF]})
    out = capfd.readouterr().out
    assert (json.loads(out), "ü" in out) == ({HALF: [HALF]}, True)
    say(HALF)
    print_table(HALF, ("one",), [(HALF,), (1.5,)], HALF)
    assert capfd.readouterr().out.count("half \\ud800 of a character, wholly ü") == 4
