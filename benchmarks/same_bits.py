"""Weights and histories before and after a change of the code, compared to the last bit.

    python benchmarks/same_bits.py                      # against version 0.1.0
    python benchmarks/same_bits.py --before HEAD~3      # against any commit

Every objective trains for a few steps, alone and in company, with conv, mlp and linear networks, on both versions of
the sources. A run is found by its id, so equal ids are checked too. One line a difference; the exit status tells.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

VERSION_0_1_0 = "c0b9e66"
OBJECTIVES = (
    "ae", "vae", "beta_vae", "beta_vae_full", "annealed_vae", "factor_vae", "beta_tcvae", "dip_vae_i", "dip_vae_ii",
)  # fmt: skip
NETWORKS = {
    "conv": "--network.channels 8,8 --network.kernels 4,4 --network.hidden 16",
    "mlp": "--network.encoder-widths 24,16 --network.decoder-widths 16,24",
    "linear": "",
}
COMMON = "--quiet --json --latents 4 --steps 24 --batch-size 16 --history-every 5 --plan.device cpu --plan.threads 1"
SPECIAL = {
    "kept": "--objective beta_vae --network mlp {mlp} --snapshots 0,7,24 --holdout 0.25 --warmup 9",
    "epochs": "--objective beta_tcvae --objective.estimator stratified --network mlp {mlp} --order epochs",
    "adagrad": "--objective vae --network linear --optimiser adagrad --likelihood squared_error",
    "learned": "--objective beta_vae --network mlp {mlp} --likelihood gaussian_learned",
    "study": "--objective factor_vae --objective.protocol study --network mlp {mlp} --objective.width 20",
}


def main() -> int:
    """Train everything twice and compare."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--before", default=VERSION_0_1_0, help="the commit to compare with")
    asked.add_argument("--keep", type=Path, help="a JSON file with the results before, made if it is missing")
    given = asked.parse_args()
    here = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as place:
        before = _kept(given.keep) or _of_commit(here, given.before, Path(place))
        if given.keep:
            given.keep.write_text(json.dumps(before, indent=1))
        after = _trained(here / "src", Path(place) / "after")
    lines = [f"{name}: {before.get(name)} before, {after.get(name)} after" for name in sorted(before | after)
             if before.get(name) != after.get(name)]  # fmt: skip
    print("\n".join([*lines, f"{len(before)} files before, {len(after)} after, {len(lines)} differ"]))
    return bool(lines)


def _of_commit(here: Path, commit: str, place: Path) -> dict[str, str]:
    sources = place / "sources"
    sources.mkdir()
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=here, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x"], cwd=sources, input=packed, check=True)
    return _trained(sources / "src", place / "before")


def _trained(source: Path, folder: Path) -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    folder.mkdir()
    subprocess.run([sys.executable, __file__, "--work", str(folder)], env=environment, check=True)
    return {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*")) if _kept_of_run(path)}


def _kept_of_run(path: Path) -> bool:
    return path.is_file() and (
        path.name in ("config.json", "model.safetensors", "history.parquet") or path.parent.name == "snapshots"
    )


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.name == "history.parquet":  # the values: a library may write the same table in other bytes
        import polars

        content = polars.read_parquet(path).write_csv().encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _kept(path: Path | None) -> dict[str, str] | None:
    return json.loads(path.read_text()) if path and path.exists() else None


def work(folder: Path) -> None:
    """Train everything with the sources on the path."""
    from unweave.cli import main as command

    def run(name: str, words: str) -> None:
        if command(["train", "micro", *COMMON.split(), *words.split(), "--folder", str(folder / name)]) not in (
            0,
            None,
        ):
            print(f"{name} failed", file=sys.stderr)

    for network, shape in NETWORKS.items():
        for objective in OBJECTIVES:
            width = "--objective.width 20" if objective == "factor_vae" else ""
            words = f"--objective {objective} {width} --network {network} {shape}"
            run(f"alone/{network}-{objective}", words)
            if network != "conv" or objective == "factor_vae":
                run(f"company/{network}-{objective}", f"{words} --seeds 0:3")
    for name, words in SPECIAL.items():
        words = words.format(**NETWORKS)
        run(f"alone/{name}", words)
        run(f"company/{name}", f"{words} --seeds 0:3")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(Path(sys.argv[2]))
    else:
        sys.exit(main())
