"""What `make test` does about a missing browser: it never fails for want of one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("install_chromium.sh")


@pytest.mark.parametrize("root", [True, False])
def test_without_a_network_it_says_how_and_ends_well(tmp_path: Path, root: bool) -> None:
    asked = tmp_path / "asked"
    commands = {"apt-get": f'echo "$@" >> {asked}; exit 100', "id": f"echo {0 if root else 1000}"}
    for name, line in commands.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    for name in ("sh", "timeout"):
        found = shutil.which(name)
        assert found is not None
        os.symlink(found, tmp_path / name)
    done = subprocess.run(["sh", SCRIPT], env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    assert "install it with: apt-get install chromium" in done.stdout
    assert asked.exists() == root
