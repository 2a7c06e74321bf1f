"""A user's own recipe that cannot be read or run is one sentence."""

from pathlib import Path

import pytest

from unweave.recipes.find_study import RecipeFailed, find_study


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xa0\xff = 1", "the recipe failed"),
        (b"x = 'caf\xe9'\n", "the recipe failed"),
        (b"1 / 0\n", r"recipe_\w+\.py, line 1\): ZeroDivisionError"),
        (b"def study(size):\n    return size\n", "returned str, not a Study"),
    ],
)
def test_a_recipe_that_fails_says_where(content: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / f"recipe_{content[:4].hex()}.py"
    file.write_bytes(content)
    with pytest.raises(RecipeFailed, match=words) as told:
        find_study(str(file), "smoke")
    assert "\n" not in str(told.value)
    assert "codec can't decode" not in str(told.value) or "(unicode error)" in str(told.value)
