"""Weights and histories before and after a change of the code, compared to the last bit.

    python benchmarks/same_bits.py                      # against version 0.1.0
    python benchmarks/same_bits.py --before HEAD~3      # against any commit
    python benchmarks/same_bits.py --sources OLD/src --device cuda      # on a GPU, against sources in a folder

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

KEPT = ("config.json", "model.safetensors", "history.parquet", "history.csv")
VERSION_0_1_0 = "c0b9e66"
OBJECTIVES = (
    "ae", "vae", "beta_vae", "beta_vae_full", "annealed_vae", "factor_vae", "beta_tcvae", "dip_vae_i", "dip_vae_ii",
)  # fmt: skip
NETWORKS = {
    "conv": "--network.channels 16,16 --network.kernels 4,4 --network.hidden 16",
    "mlp": "--network.encoder-widths 24,16 --network.decoder-widths 16,24",
    "linear": "",
}
COMMON = "--quiet --json --latents 4 --steps 24 --batch-size 16 --history-every 5 --plan.threads 1"
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
    asked.add_argument("--sources", type=Path, help="a folder with the sources to compare with, in place of a commit")
    asked.add_argument("--device", default="cpu", help="where to train")
    given = asked.parse_args()
    here = Path(__file__).resolve().parents[1]
    with tempfile.TemporaryDirectory() as place:
        before = _kept(given.keep) or _before(here, given, Path(place))
        if given.keep:
            given.keep.write_text(json.dumps(before, indent=1))
        after = _trained(here / "src", Path(place) / "after", given.device)
    lines = [f"{name}: {before.get(name)} before, {after.get(name)} after" for name in sorted(before | after)
             if before.get(name) != after.get(name)]  # fmt: skip
    print("\n".join([*lines, f"{len(before)} files before, {len(after)} after, {len(lines)} differ"]))
    return bool(lines)


def _before(here: Path, given: argparse.Namespace, place: Path) -> dict[str, str]:
    if given.sources:
        return _trained(given.sources.resolve(), place / "before", given.device)
    sources, commit = place / "sources", given.before
    sources.mkdir()
    packed = subprocess.run(["git", "archive", commit, "src"], cwd=here, check=True, capture_output=True).stdout
    subprocess.run(["tar", "x"], cwd=sources, input=packed, check=True)
    return _trained(sources / "src", place / "before", given.device)


def _trained(source: Path, folder: Path, device: str) -> dict[str, str]:
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    folder.mkdir()
    subprocess.run([sys.executable, __file__, "--work", str(folder), device], env=environment, check=True)
    return {str(path.relative_to(folder)): _digest(path) for path in sorted(folder.rglob("*")) if _kept_of_run(path)}


def _kept_of_run(path: Path) -> bool:
    return path.is_file() and (path.name in KEPT or path.parent.name == "snapshots")


def _digest(path: Path) -> str:
    content = path.read_bytes()
    if path.name == "history.parquet":  # the values: a library may write the same table in other bytes
        import polars

        content = polars.read_parquet(path).write_csv().encode()
    return hashlib.sha256(content).hexdigest()[:16]


def _kept(path: Path | None) -> dict[str, str] | None:
    return json.loads(path.read_text()) if path and path.exists() else None


def work(folder: Path, device: str) -> None:
    """Train everything with the sources on the path."""
    from unweave.cli import main as command

    def run(name: str, words: str) -> None:
        if command(
            ["train", "micro", "--plan.device", device, *COMMON.split(), *words.split(), "--folder", str(folder / name)]
        ) not in (
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
        work(Path(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())
