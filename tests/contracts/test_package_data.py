"""What lies beside the code (styles, scripts, stubs) is installed with it."""

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_file_that_is_no_module_is_named() -> None:
    described = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = described["tool"]["setuptools"]["package-data"]["unweave"]
    package = ROOT / "src" / "unweave"
    found = {path for path in package.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    named = {path for pattern in patterns for path in package.glob(pattern)}
    assert package / "pages" / "page.css" in found
    assert found <= named
