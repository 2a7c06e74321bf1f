"""unweave completion: a script that completes commands, options and names in one's shell."""

import importlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from unweave.cli.options import command, parse, parser_of
from unweave.config import unknown
from unweave.trusted import plug_in_names

SHELLS = {
    "bash": "unweave completion bash >> ~/.bash_completion",
    "zsh": "unweave completion zsh >> ~/.zshrc",
    "fish": "unweave completion fish > ~/.config/fish/completions/unweave.fish",
}

EXAMPLES = """examples:
  unweave completion bash >> ~/.bash_completion      then open a new terminal, and press Tab
  unweave completion zsh >> ~/.zshrc
  unweave completion fish > ~/.config/fish/completions/unweave.fish"""

RUNS, FILES = "@runs", "@files"
"""What stands for the folders of runs, and for any file, among the words that may come next."""

FIRST = {
    "compare": RUNS, "diagnose": RUNS, "evaluate": RUNS, "explore": RUNS, "export": RUNS, "report": RUNS,
    "resume": RUNS, "sample": RUNS, "show": RUNS, "traverse": RUNS, "measure": FILES, "bench": "train",
}  # fmt: skip
"""What the words after a command are, but for those that are names."""


@dataclass
class Words:
    """What may come after a command: its options, the values of options that take one, and its other words."""

    first: tuple[str, ...] = ()
    options: dict[str, tuple[str, ...]] = field(default_factory=dict)


def run(argv: Sequence[str]) -> None:
    """Print the script for a shell."""
    parser = command(
        "unweave completion",
        "Print a script that completes commands, options, worlds, methods, metrics and runs when you press Tab.",
        usage="unweave completion bash|zsh|fish",
        examples=EXAMPLES,
    )
    parser.add_argument("shell", metavar="SHELL", help="bash, zsh or fish")
    given = parse(parser, argv)
    if given.shell not in SHELLS:
        raise unknown("shell", given.shell, SHELLS)
    print({"bash": bash, "zsh": zsh, "fish": fish}[given.shell](all_words()))


def all_words() -> dict[str, Words]:
    """The words of every command, from the parsers with which the commands themselves read them."""
    from unweave.cli import COMMANDS
    from unweave.cli.new import KINDS
    from unweave.cli.study import ACTIONS
    from unweave.cli.zoo import ACTIONS as OF_ZOO
    from unweave.data import WORLDS
    from unweave.recipes.reproductions import REPRODUCTIONS

    worlds = (*WORLDS, *plug_in_names("world"))
    firsts: dict[str, tuple[str, ...]] = {name: (word,) for name, word in FIRST.items()}
    firsts |= dict.fromkeys(("train", "dimension", "perturb", "intrinsic"), worlds) | {"worlds": ("get", *worlds)}
    firsts |= {"study": tuple(ACTIONS), "reproduce": tuple(REPRODUCTIONS), "new": tuple(KINDS)}
    firsts |= {"completion": tuple(SHELLS), "zoo": tuple(OF_ZOO)}
    found = {"": Words(tuple(COMMANDS), {"--help": (), "--version": ()})}
    for name in COMMANDS:
        found[name] = Words(firsts.get(name, ()))
        for argv in _asked(name, worlds):
            _add_options(found[name], name, argv)
    for name in ("dimension", "perturb", "intrinsic"):  # they take the same worlds and models as train
        groups = {option.partition(".")[0] for option in found[name].options if "." in option}
        found[name].options |= {o: v for o, v in found["train"].options.items() if o.partition(".")[0] in groups}
    return found


def _asked(name: str, worlds: Iterable[str]) -> Iterable[list[str]]:
    """Words that bring out every option: those of each world, method and network, and of each action of a study."""
    from unweave.cli.study import ACTIONS
    from unweave.config import hints
    from unweave.data import WORLDS
    from unweave.training.experiment import TABLES, Experiment

    if name == "study":
        return [[action, "--quiet"] for action in ACTIONS]
    if name != "train":
        first = {"bench": "train", "dimension": "micro", "perturb": "micro", "intrinsic": "micro"}
        return [[first.get(name, "--quiet")]]
    asked = [[world] for world in worlds if world in WORLDS]
    tables = {place: TABLES[kind] for place, kind in hints(Experiment).items() if kind in TABLES and place != "world"}
    return asked + [["micro", f"--{place}", one] for place, table in tables.items() for one in table]


def _add_options(words: Words, name: str, argv: list[str]) -> None:
    parser = parser_of(importlib.import_module(f"unweave.cli.{name}").run, argv)
    for action in parser._actions:
        for option in action.option_strings:
            if option.startswith("--"):
                words.options[option] = () if action.nargs == 0 else _values(option, str(action.metavar or ""))


def _values(option: str, metavar: str) -> tuple[str, ...]:
    """The names that an option takes; a file where it takes anything."""
    from unweave.metrics import METRICS
    from unweave.metrics.polarised.types import RULES
    from unweave.models import LIKELIHOODS, NETWORKS, OBJECTIVES, OPTIMISERS
    from unweave.studies.measures import MEASURES
    from unweave.studies.study import SIZES

    names: dict[str, Iterable[str]] = {
        "--objective": OBJECTIVES, "--network": NETWORKS, "--likelihood": LIKELIHOODS, "--optimiser": OPTIMISERS,
        "--metrics": METRICS, "--measures": MEASURES, "--rule": RULES, "--size": SIZES,
    }  # fmt: skip
    if option in names:
        return (*names[option], *plug_in_names(option.removeprefix("--").removesuffix("s")))
    if option in ("--foster", "--diminish", "--among", "--world.run"):
        return (RUNS,)
    return tuple(metavar.split("|")) if "|" in metavar and " " not in metavar else (FILES,)


def bash(found: dict[str, Words]) -> str:
    """A function for bash; all that it offers stands in it, so that it answers at once."""
    first = "\n".join(f"    {_case(name)}) echo {_quoted(words.first)} ;;" for name, words in found.items())
    options = "\n".join(f"    {_case(name)}) echo {_quoted(words.options)} ;;" for name, words in found.items())
    values: dict[str, tuple[str, ...]] = {}
    for words in found.values():
        values |= {option: taken for option, taken in words.options.items() if taken}
    return BASH.format(first=first, options=options, values="\n".join(_value_cases(values)))


def zsh(found: dict[str, Words]) -> str:
    """The same function: zsh reads those of bash."""
    return f"autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n{bash(found)}"


def fish(found: dict[str, Words]) -> str:
    """A line for every option of every command."""
    lines = [FISH]
    for name, words in found.items():
        seen = "__fish_use_subcommand" if not name else f"__unweave_is {name}"
        plain = [word for word in words.first if word[0] != "@"]
        if plain:
            lines.append(f"complete -c unweave -n '{seen}' -a {shlex.quote(' '.join(plain))}")
        if set(words.first) & {RUNS, FILES}:
            lines.append(f"complete -c unweave -n '{seen}' -F")
        for option, taken in words.options.items():
            lines.append(f"complete -c unweave -n '{seen}' -l {option[2:]}{_taken(option, taken)}")
    return "\n".join(lines)


def _taken(option: str, values: tuple[str, ...]) -> str:
    """What fish offers after an option."""
    if not values:
        return ""
    if values[0][0] == "@":
        return " -r -F"
    names = " ".join(values)
    return f" -x -a {shlex.quote(f'(__unweave_list {names})' if option in LISTS else names)}"


def _value_cases(values: dict[str, tuple[str, ...]]) -> Iterable[str]:
    """One case for all options that take the same."""
    options: dict[tuple[str, ...], list[str]] = {}
    for option, taken in values.items():
        options.setdefault(taken, []).append(option)
    return [f"    {'|'.join(names)}) echo {_quoted(taken)} ;;" for taken, names in options.items()]


def _case(name: str) -> str:
    return name or "''"


def _quoted(words: Iterable[str]) -> str:
    return shlex.quote(" ".join(words))


LISTS = ("--metrics", "--measures")
"""Options that take several names with commas."""

FISH = """\
function __unweave_is
    set -l words (commandline -opc)
    test (count $words) -ge 2; and contains -- $words[2] $argv
end

function __unweave_list
    set -l begun (string replace -rf '(.*,)[^,]*' '$1' -- (commandline -ct))
    printf '%s\\n' "$begun"$argv
end

complete -c unweave -f"""

BASH = """\
_unweave_first() {{
  case "$1" in
{first}
  esac
}}

_unweave_options() {{
  case "$1" in
{options}
  esac
}}

_unweave_values() {{
  case "$1" in
{values}
  esac
}}

_unweave_runs() {{
  local file
  for file in "$1"*/config.json "$1"*/*/config.json; do
    [ -e "$file" ] && echo "${{file%/config.json}}"
  done
  [ -z "$1" ] || compgen -d -- "$1"
}}

_unweave() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" words begin=""
  [ "$COMP_CWORD" -gt 1 ] && command="${{COMP_WORDS[1]}}"
  case "$current" in
    -*) words="$(_unweave_options "$command")" ;;
    *)
      words="$(_unweave_values "$before")"
      [ -n "$words" ] || words="$(_unweave_first "$command")"
      ;;
  esac
  case "$words" in
    @runs) COMPREPLY=($(_unweave_runs "$current")); return ;;
    @files) COMPREPLY=($(compgen -f -- "$current")); return ;;
  esac
  case "$before:$current" in
    --metrics:*,*|--measures:*,*) begin="${{current%,*}}," ;;
  esac
  COMPREPLY=($(compgen -P "$begin" -W "$words" -- "${{current#"$begin"}}"))
}}

complete -o filenames -o bashdefault -o default -F _unweave unweave"""
