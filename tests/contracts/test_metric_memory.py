"""Every metric stays under 1 GB with 100,000 samples of 64 latents, imports and arrays included."""

import json
import subprocess
import sys
from typing import Any

import pytest

from unweave.metrics import METRICS, Metric

SMALLER: dict[str, dict[str, Any]] = {
    "dci": {"n_rounds": 2},
    "downstream_trees": {"sizes": [1_000]},
    "downstream_logistic": {"sizes": [1_000]},
}
"""Settings that save time and no memory: rounds and labels one after another."""

QUADRATIC = {"mle", "two_nn"}
"""Every distance between two samples is looked at, in blocks of 64 MB: measured on a fifth of the samples."""

SCRIPT = """
import json, sys
import numpy as np
from unweave.metrics import METRICS

row, n_samples, options = METRICS[sys.argv[1]], int(sys.argv[2]), json.loads(sys.argv[3])
rng = np.random.default_rng(0)
factors = np.stack([rng.integers(0, size, n_samples) for size in (3, 6, 40, 32, 32)], axis=1)
codes = rng.normal(size=(n_samples, 64))
codes[:, :5] += factors
tables = {"codes": codes, "factors": factors, "variance": np.ones_like(codes) if "variance" in row.needs else None}
words = row.needs.split()
arguments = [tables[word] for word in words if word in tables] or [np.stack([codes, codes[:, ::-1]])]
row.function(*arguments, **options)
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory from /proc")
@pytest.mark.parametrize("row", METRICS.values(), ids=METRICS)
def test_memory_stays_below_a_gigabyte(row: Metric) -> None:
    n_samples = 20_000 if row.name in QUADRATIC else 100_000
    options = SMALLER.get(row.function.__name__, {})
    words = [sys.executable, "-c", SCRIPT, row.name, str(n_samples), json.dumps(options)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000, f"{row.name} took {done.stdout.strip()} MB"
