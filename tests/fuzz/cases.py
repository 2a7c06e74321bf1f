"""What is tried: every command with odd arguments, and with files, run folders, stores and requests that are spoilt."""

import random
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutations import ODD, VALUES, changed_list, mutate_file, odd_path, relist, remove, reseal

TRAIN = "--network mlp --network.encoder-widths 8 --network.decoder-widths 8 --latents 3 --batch-size 8 --steps 5"
TRAIN += " --plan.threads 1 --plan.device cpu --quiet --history-every 2"
FEW = "--samples 150 --seeds 2 --metrics mig --interventions table --no-pictures --quiet"


@dataclass
class Case:
    """One call, in a folder of its own. ``promised`` must be there after exit 0; it stops servers after a moment."""

    number: int
    kind: str
    argv: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    promised: str | None = None
    serves: bool = False
    requests: list[tuple[str, str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Command:
    """A call that works, what it needs from the pool, and what it leaves."""

    words: str
    needs: tuple[str, ...] = ()
    promised: str | None = None
    more: str = ""
    """Options that may be added, with values that work."""
    serves: bool = False


RUN, STORE = ("runs",), ("store",)
COMMANDS = [
    Command(
        f"train micro {TRAIN} --folder new",
        (),
        "new/model.safetensors",
        "--seed 1 --objective beta_tcvae"
        " --objective.beta 2 --optimiser.learning-rate 1e-3 --save-every 9 --warmup 2 --holdout 0.2 --order epochs"
        " --likelihood gaussian --optimiser.beta1 0.5 --optimiser.epsilon 1e-8 --init pytorch --snapshots 0,2",
    ),
    Command(
        f"train images --world.path pictures {TRAIN} --folder new",
        ("pictures",),
        "new/model.safetensors",
        "--world.size 16 --world.colour rgb --world.labels none --world.key x",
    ),
    Command(
        f"train images --world.path pictures.npz {TRAIN} --folder new",
        ("pictures.npz",),
        "new/model.safetensors",
        "--world.size 16 --world.key images",
    ),
    Command(
        f"train --config config.json {TRAIN} --snapshots 2 --folder new",
        ("config.json",),
        "new/model.safetensors",
        "--seed 3",
    ),
    Command(f"train micro {TRAIN} --seeds 0:2 --folder new --json", (), None, "--objective.beta 1,2"),
    Command("train micro --print-config", (), None, "--objective.beta 3 --latents 4 --network conv_2x2"),
    Command(
        f"train micro {TRAIN} --objective ada_gvae --folder new",
        (),
        "new/model.safetensors",
        "--objective.changes 1 --objective.pairs random --world.correlated x=y:0.2 --world.width 0.5",
    ),
    Command(
        f"train micro {TRAIN} --objective ivae --folder new",
        (),
        "new/model.safetensors",
        "--objective.prior-mean learned --objective.prior-widths 4,4 --objective.elbo monte_carlo"
        " --objective.encoding values --objective.labels others",
    ),
    Command(
        f"train micro {TRAIN} --objective semi_vae --folder new",
        (),
        "new/model.safetensors",
        "--objective.labelled 20 --objective.regulariser l2 --objective.gamma 3 --objective.annealing linear"
        " --objective.threshold 3 --objective.sigma 2",
    ),
    Command(
        f"train micro {TRAIN} --objective slow_vae --folder new",
        (),
        "new/model.safetensors",
        "--objective.rate 3 --objective.step-rate 2 --objective.pairs random --objective.protocol original",
    ),
    Command(
        f"train images --world.path films --world.sequences true --objective slow_vae {TRAIN} --folder new",
        ("films",),
        "new/model.safetensors",
        "--world.furthest 2 --world.segments 2 --objective ivae --world.labels none",
    ),
    Command(
        f"train images --world.path pictures --world.pairs pairs.csv --objective ada_gvae {TRAIN} --folder new",
        ("pictures",),
        "new/model.safetensors",
        "--world.size 8 --objective.pairs random",
    ),
    Command(
        f"train perturbed --world.run runs/bent {TRAIN} --folder new",
        RUN,
        "new/model.safetensors",
        "--world.epsilon 0.2 --world.checksum 00 --world.base micro --world.base.width 0.5",
    ),
    Command(
        f"perturb micro --foster runs/done --diminish runs/other {TRAIN} --perturb-steps 4 --executor here --folder .",
        RUN,
        None,
        "--samples 2 --hidden 3 --epsilon 0.3 --control --reverse --perturb-rate 1e-3 --export-images out --images 3",
    ),
    Command("show runs/ivae --json", RUN),
    Command("show runs/bent --json", RUN),
    Command("show runs/altered", RUN),
    Command("resume runs/gan --quiet", RUN, "runs/gan/model.safetensors"),
    Command("export runs/bent out", RUN),
    Command("report runs/bent", RUN, "runs/bent/report.html"),
    Command(f"evaluate runs/altered {FEW} --json", RUN, "runs/altered/scores.json"),
    Command("diagnose runs/ivae --examples 64 --jacobians 4 --json", RUN),
    Command("traverse runs/ivae --json", RUN, "runs/ivae/figures/strips.png", "--latents 0"),
    Command("sample runs/ivae --label x=1 --json", RUN, "runs/ivae/figures/samples.png", "--label y=2 -n 3"),
    Command("resume runs/half --quiet", RUN, "runs/half/model.safetensors", "--save-every 3"),
    Command("resume runs/MEMBER --quiet --json", RUN),
    Command("show runs/done --json", RUN, None, "--examples 64 --rule variance"),
    Command("show runs/half", RUN),
    Command("show runs/failed --json", RUN),
    Command("show runs/MEMBER", RUN),
    Command("report runs/done", RUN, "runs/done/report.html"),
    Command("export runs/done out", RUN, "out/model.safetensors"),
    Command(
        "measure codes.npz --metrics mig --seeds 2 --quiet --json",
        ("codes.npz",),
        None,
        "--split 60:60 --factor-bins 5 --set mig.n_bins=5 --adjust chance --seed 2",
    ),
    Command("measure codes.csv --metrics mig,modularity --seeds 2 --quiet", ("codes.csv",), None, "--pictures out"),
    Command("measure codes.npz codes.csv --metrics mig --seeds 2 --quiet --json", ("codes.npz", "codes.csv")),
    Command(
        f"evaluate runs/done {FEW} --json", RUN, "runs/done/scores.json", "--seed 3 --adjust chance --factor-bins 4"
    ),
    Command("study status --store store --json", STORE),
    Command("study status small --store store", STORE),
    Command("study status pair --store store", STORE),
    Command(
        "study resume mine --store store --executor here --quiet --trust mine",
        STORE,
        None,
        "--save-every 3 --workers 1",
    ),
    Command("study retry mine --store store --executor here --quiet --json --trust mine", STORE),
    Command("study resume small --store store --executor here --quiet", STORE),
    Command("study run mine.py --store store --executor here --quiet", ("store", "mine.py"), None, "--size smoke"),
    Command("study report small --store store", STORE),
    Command("study gc --store store", STORE, None, "--dry-run"),
    Command("study export all.csv --store store", STORE, "all.csv", "--study small"),
    Command("study export all.parquet --store store", STORE, "all.parquet"),
    Command("study sql --store store QUERY", STORE),
    Command("diagnose runs/done --examples 64 --jacobians 8 --json", RUN, None, "--rule variance --factors 2 --seed 1"),
    Command("diagnose posterior.npz --json", ("posterior.npz",), None, "--factors 2"),
    Command("diagnose posterior.npz --page page.html", ("posterior.npz",), "page.html"),
    Command(
        "compare runs/done runs/other --examples 60 --permutations 9 --quiet --folder out --json",
        RUN,
        "out",
        "--seed 2 --snapshots",
    ),
    Command(
        "traverse runs/done --json",
        RUN,
        "runs/done/figures/strips.png",
        "--latents 0,1 --steps 3 --width 2 --eigenfaces 2 --plane 0,1 --row 3",
    ),
    Command("sample runs/done --json", RUN, "runs/done/figures/samples.png", "-n 3 --seed 1 --out out.npz"),
    Command("explore store --no-browser --port 0", STORE, None, "--host 127.0.0.1 --name x", serves=True),
    Command(
        "intrinsic points.npy --seeds 2 --json", ("points.npy",), None, "--neighbours 3,5 --anchor 0.8 --examples 50"
    ),
    Command("intrinsic codes.npz --seeds 2", ("codes.npz",)),
    Command("intrinsic runs/done --seeds 1 --examples 60 --json", RUN),
    Command("worlds --json"),
    Command("worlds micro"),
    Command("worlds get micro"),
    Command("reproduce --list --json"),
    Command("reproduce k-1 --trained --store store", STORE, None, "--size smoke"),
    Command(
        f"dimension micro {TRAIN.replace('--latents 3 ', '')} --folder new --executor here",
        (),
        None,
        "--start 2 --most 3 --threshold 0.1 --examples 40 --method elbow",
    ),
    Command("bench --rounds 1 --seconds 0.02 --models 2 --batch-size 8 --ways alone --json"),
    Command("new metric thing --folder out --json", (), "out/thing.py"),
    Command("completion fish"),
    Command("zoo list --json"),
    Command("demo --steps 3 --quiet --folder new", (), "new/report.html", "--seed 1"),
]


def make_case(number: int, seed: int, pool: Path, place: Path) -> Case:
    """The case of that number, and its files at ``place``; the same every time."""
    rng = random.Random(f"{seed}-{number}")
    kinds = [_odd_argument] * 5 + [_spoilt_run] * 6 + [_spoilt_file] * 3 + [_spoilt_store] * 3 + [_request] * 3
    case = rng.choice(kinds)(number, rng, pool, place)
    case.argv = [_named(word, pool) for word in case.argv]
    return case


def _odd_argument(number: int, rng: random.Random, pool: Path, place: Path) -> Case:
    command = rng.choice(COMMANDS)
    case = _prepared("argument", number, command, pool, place)
    for _ in range(rng.choice([1, 1, 1, 2])):
        _spoil_argument(rng, case, command, place)
    return case


def _spoil_argument(rng: random.Random, case: Case, command: Command, place: Path) -> None:
    words, more = case.argv, command.more.split()
    act = rng.choice(["value", "value", "option", "path", "drop", "add", "swap"])
    values = [n for n in range(1, len(words)) if not words[n].startswith("--")]
    if act == "option" and more:
        options = [n for n, word in enumerate(more) if word.startswith("--")]
        at = rng.choice(options)
        given = at + 1 < len(more) and not more[at + 1].startswith("--")
        words += [more[at], *([rng.choice(VALUES)] if given else [])]
    elif act == "path":
        words[rng.choice(values or [0])] = str(odd_path(rng, place / "odd.npz").relative_to(place))
    elif act == "drop" and len(words) > 1:
        del words[rng.randrange(1, len(words))]
    elif act == "add":
        words.insert(rng.randrange(1, len(words) + 1), rng.choice([*VALUES, "--x", "--help=1", "-"]))
    elif act == "swap":
        words[rng.randrange(len(words))] = rng.choice(words)
    elif values:
        words[rng.choice(values)] = rng.choice(VALUES)
    case.promised = None
    case.changes.append(act)


def _spoilt_run(number: int, rng: random.Random, pool: Path, place: Path) -> Case:
    command = rng.choice([one for one in COMMANDS if one.needs == RUN])
    case = _prepared("run", number, command, pool, place)
    folder = place / _named(next(word for word in case.argv if word.startswith("runs/")), pool)
    if "MEMBER" in " ".join(case.argv) and rng.random() < 0.5:
        folder = next((place / "runs").glob("fleet-*"))
    case.changes += spoil_folder(rng, folder)
    return case


def spoil_folder(rng: random.Random, folder: Path) -> list[str]:
    """Change something in a run folder, with its list made good again or not."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".png")
    light = [path for path in files if path.suffix == ".json"] * 3 + [folder / "SHA256SUMS"] * 3
    path = rng.choice([*files, *light])
    if rng.random() < 0.12:
        odd_path(rng, path)
        changes = [f"{path.relative_to(folder)}: {_kind(path)}"]
    else:
        changes = [mutate_file(rng, path) for _ in range(1) if path.exists()]
    if path.name != "SHA256SUMS" and rng.random() < 0.75:
        relist(folder)
        changes.append("listed again")
    if rng.random() < 0.1 and path.name != "SHA256SUMS":
        content, how = changed_list(rng, (folder / "SHA256SUMS").read_bytes())
        remove(folder / "SHA256SUMS")
        (folder / "SHA256SUMS").write_bytes(content)
        changes.append(how)
    return changes


def _kind(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    kinds = {"folder": path.is_dir(), "pipe": path.is_fifo(), "socket": path.is_socket(), "empty": path.exists()}
    return next((kind for kind, holds in kinds.items() if holds), "missing")


def _spoilt_file(number: int, rng: random.Random, pool: Path, place: Path) -> Case:
    command = rng.choice([one for one in COMMANDS if one.needs and one.needs != RUN and one.needs != STORE])
    case = _prepared("file", number, command, pool, place)
    target = place / rng.choice([one for one in command.needs if one not in ("store", "mine.py")] or command.needs)
    if target.is_dir():
        target = (
            target / ".unweave" / "studies" / "small.json"
            if target.name == "store"
            else rng.choice([*sorted(path for path in target.rglob("*") if path.is_file()), *_tables(target) * 4])
        )
    if rng.random() < 0.1:
        odd_path(rng, target)
        case.changes.append(f"{target.name}: {_kind(target)}")
    elif target.is_file():
        case.changes.append(mutate_file(rng, target))
    return case


def _tables(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.csv"))


def _spoilt_store(number: int, rng: random.Random, pool: Path, place: Path) -> Case:
    command = rng.choice([one for one in COMMANDS if one.needs == STORE])
    case = _prepared("store", number, command, pool, place)
    case.changes += spoil_store(rng, place / "store")
    return case


def spoil_store(rng: random.Random, store: Path) -> list[str]:
    """Change a record, the index, a lease, or one of the runs."""
    home = store / ".unweave"
    files = sorted(path for path in home.rglob("*") if path.is_file())
    act = rng.choice(["file", "file", "file", "odd", "run", "lease", "neighbour"])
    if act == "file":
        path = rng.choice([*files, *sorted((home / "studies").glob("*.json")) * 2])
        return [mutate_file(rng, path), *(["sealed again"] if rng.random() < 0.6 and reseal(path) else [])]
    if act == "odd":
        path = rng.choice([*files, home, home / "studies", store / "odd"])
        odd_path(rng, path)
        return [f"{path.relative_to(store)}: {_kind(path)}"]
    if act == "lease":
        name = rng.choice(["claims", "holders", "studies", "modules"])
        path = home / name / rng.choice(["x", "x.json", "a b", "é.json", "1.progress.json"])
        path.parent.mkdir(exist_ok=True)
        content = rng.choice(
            [b"", b"{}", b"[]", b"null", b'{"pid": "x"}', b'{"host": 1, "pid": -1}', b"\xff", b"[" * 9999]
        )
        path.write_bytes(content)
        return [f"{path.relative_to(store)}: {content[:20]!r}"]
    if act == "neighbour":
        path = store / rng.choice(["x", "fleet-000000000000", "micro-x", "\udc80", "a\nb"])
        path.mkdir()
        (path / "SHA256SUMS").write_bytes(rng.choice([b"", b"x", b"\xff", b"#list x\n"]))
        return [f"a folder {path.name!r}"]
    return spoil_folder(rng, rng.choice(sorted(path.parent for path in store.glob("*/config.json"))))


def _request(number: int, rng: random.Random, pool: Path, place: Path) -> Case:
    case = Case(number, "request")
    place.mkdir(parents=True, exist_ok=True)
    root = rng.choice(["runs", "store"])
    shutil.copytree(pool / root, place / root)
    ids = sorted(path.name for path in (place / root).iterdir() if path.is_dir() and path.name != ".unweave")
    run = rng.choice(ids)
    search = next((path.stem for path in (place / root).glob(".unweave/studies/*fondue*.json")), "small")
    if rng.random() < 0.7:
        spoil = spoil_store if root == "store" and rng.random() < 0.5 else None
        case.changes += spoil(rng, place / root) if spoil else spoil_folder(rng, place / root / run)
    case.requests = [
        _asked(rng, run if rng.random() < 0.9 else rng.choice([*ids, "x", "..", "%2e%2e"]), search) for _ in range(4)
    ]
    case.argv = [root]
    return case


def _asked(rng: random.Random, run: str, search: str) -> tuple[str, str, Any]:
    odd = rng.choice([*VALUES[:20], "5", "12"]).replace("\n", "%0A").encode(errors="ignore").decode()
    gets = [
        "",
        "/history",
        "/latents",
        "/diagnosis",
        "/scores",
        "/examples",
        f"/examples?n={odd}",
        f"/examples?rows={odd}",
    ]
    gets += [f"/examples/pixels?rows={odd}&n={odd}", f"/codes.npz?n={odd}", f"/codes.parquet?n={odd}", "/codes.npz?n=5"]
    gets += ["/manipulation", f"/manipulation?values={odd}&epsilon={odd}", "/manipulation/pixels?values=1&values=2"]
    others = ["/api/store", "/api/runs", f"/api/runs?since={odd}", f"/api/sparklines?ids={run}", "/api/studies/small"]
    others += [f"/api/studies/{odd}", f"/api/searches/{odd}", f"/api/compare?left={run}&right={run}", "/", f"/{odd}"]
    others += [
        f"/api/compare?left={odd}&right={run}",
        "/api/studies/pair",
        "/api/studies/all",
        *[f"/api/searches/{search}"] * 3,
    ]
    kind = rng.random()
    if kind < 0.55:
        return "GET", f"/api/runs/{run}{rng.choice(gets)}", None
    if kind < 0.8:
        return "GET", rng.choice(others), None
    if kind < 0.93:
        value = rng.choice([[[0.0] * 3], [[0.0] * 2], [], [[]], [[1e39] * 3], [[None] * 3], "x", *ODD[:12]])
        return "POST", f"/api/runs/{run}/decode", {rng.choice(["codes", "codes", "codes", "x"]): value}
    content = rng.choice([b"", b"x", b"\x89PNG\r\n\x1a\n", b"\x00" * 100_000, (Path(__file__)).read_bytes()])
    return "POST", f"/api/runs/{run}/encode", content


def _prepared(kind: str, number: int, command: Command, pool: Path, place: Path) -> Case:
    place.mkdir(parents=True, exist_ok=True)
    for name in command.needs:
        source = pool / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place / name)
    words = ["select state, count(*) from runs group by all" if w == "QUERY" else w for w in command.words.split()]
    return Case(number, kind, words, [], command.promised, command.serves)


def _named(word: str, pool: Path) -> str:
    """The word with the name of a fleet's member."""
    if "MEMBER" not in word:
        return word
    member = min(path.parent.name for path in (pool / "runs").glob("*/member.json"))
    return word.replace("MEMBER", member)
