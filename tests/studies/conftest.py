"""Tests of studies share a module that workers can import too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
