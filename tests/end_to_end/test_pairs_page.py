"""docs/pairs.md is followed literally, with fewer steps: its snippets and commands, one after the other."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "pairs.md"
BLOCK = re.compile(r"^```(python|sh)\n(.*?)^```$", re.M | re.S)


@pytest.mark.slow
def test_the_page_works_as_it_is_written(tmp_path: Path) -> None:
    ours = f"unweave() {{ '{sys.executable}' -m unweave \"$@\"; }}\npython() {{ '{sys.executable}' \"$@\"; }}\nset -e\n"
    source = str(PAGE.parents[1] / "src")
    surroundings = {**os.environ, "PYTHONPATH": source, "UNWEAVE_DATA": str(tmp_path / "data")}
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    assert [language for language, _ in blocks] == ["python", *["sh"] * 5]
    for language, code in blocks:
        command = [sys.executable, "-c", code] if language == "python" else ["bash", "-c", ours + code]
        command[-1] = command[-1].replace("--steps 20", "--steps 2")
        ran = subprocess.run(command, cwd=tmp_path, env=surroundings, capture_output=True, text=True)
        assert ran.returncode == 0, (code, ran.stderr)
    for folder in ("slow", "array", "segments", "paired", "correlated"):
        assert (tmp_path / folder / "model.safetensors").exists()
