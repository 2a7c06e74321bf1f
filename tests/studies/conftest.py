"""Tests of studies share a module that workers can import too, and a Ray cluster with the benchmarks."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
