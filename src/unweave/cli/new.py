"""unweave new: a small file that works, to begin a method, a metric or a study of one's own."""

import importlib.util
import keyword
import re
from collections.abc import Sequence
from pathlib import Path
from string import Template

from unweave.cli.console import print_json, say
from unweave.cli.options import command, parse
from unweave.config import unknown
from unweave.files import write_text

KINDS = {
    "method": ("unweave train micro --objective $name:$Class --steps 500", "what is minimised"),
    "network": ("unweave train micro --network $name:$Class --steps 500", "an encoder and a decoder"),
    "likelihood": ("unweave train micro --likelihood $name:$Class --steps 500", "how reconstructions are scored"),
    "world": ("unweave train $name:$Class --network mlp --steps 500", "examples with their factors"),
    "metric": ("unweave evaluate runs/demo --metrics $name:$name", "a number of codes and factors"),
    "measure": ("unweave evaluate runs/demo --measures $name:$Class", "what a study finds out about a run"),
    "study": ("unweave study run $name.py --size smoke --store runs/$name", "many runs and their measures"),
}
"""What can be begun: the command that uses it, and what it is."""

EXAMPLES = """examples:
  unweave new method shrink              writes shrink.py and test_shrink.py, and says how to use them
  unweave new metric my_metric
  unweave new study betas --folder studies"""


def run(argv: Sequence[str]) -> None:
    """Write the file and its test, and say what to type."""
    kinds = ", ".join(f"{kind} ({words})" for kind, (_, words) in KINDS.items())
    parser = command(
        "unweave new",
        f"Begin something of your own with a small file that works, and its test: {kinds}.",
        usage="unweave new KIND NAME [options]",
        examples=EXAMPLES,
    )
    parser.add_argument("kind", metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("name", metavar="NAME", help="of the file, in small letters: my_metric")
    parser.add_argument("--folder", default=".", metavar="DIR", help="where to write (this folder)")
    parser.add_argument("--json", action="store_true", help="print the files as JSON")
    given = parse(parser, argv)
    if given.kind not in KINDS:
        raise unknown("kind", given.kind, KINDS)
    words = names_of(given.name)
    files = {Path(given.folder) / f"{words['name']}.py": given.kind}
    files[Path(given.folder) / f"test_{words['name']}.py"] = f"{given.kind}_test"
    for path in files:
        if path.exists():
            raise FileExistsError(f"{path} is there already; take another name, or another --folder")
    for path, template in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, Template(_template(template)).substitute(words))
    use = Template(KINDS[given.kind][0]).substitute(words)
    if given.json:
        print_json({"files": [str(path) for path in files], "use": use})
        return
    say(f"written: {' and '.join(map(str, files))}")
    there = "" if Path(given.folder).resolve() == Path.cwd() else f"cd {given.folder} && "
    say(f"try it:  {there}{use}\ntest it: {there}python -m pytest test_{words['name']}.py")


def names_of(given: str) -> dict[str, str]:
    """The name of the module and of its class: ``my_metric`` and ``MyMetric``."""
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", given).replace("-", "_").lower()
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,60}", name):
        raise ValueError(f"a name is made of small letters, digits and _, as in my_metric, not {given[:80]!r}")
    if keyword.iskeyword(name):
        raise ValueError(f"{name} is a word of Python itself, and cannot name a module; take another name")
    if importlib.util.find_spec(name) is not None:
        raise ValueError(f"there is a module {name} already, which {name}.py would hide; take another name")
    return {"name": name, "Class": "".join(part.capitalize() for part in name.split("_"))}


def _template(name: str) -> str:
    return (Path(__file__).parent / "templates" / f"{name}.txt").read_text(encoding="utf-8")
