"""Tests of run folders share the module that makes system calls fail."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
