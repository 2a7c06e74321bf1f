"""unweave worlds: the data sets, what is on this machine, and how to get the rest."""

import textwrap
from collections.abc import Sequence
from typing import Any

from unweave.cli.console import print_json, print_table, say
from unweave.cli.download import shown
from unweave.cli.options import command, parse, typed
from unweave.config import to_plain
from unweave.data import WORLDS, World
from unweave.data.columns import shortened
from unweave.data.files import Published, fetch, place_of
from unweave.data.images import Images
from unweave.data.own import as_world, is_own_path
from unweave.data.supervision import supervision_of
from unweave.data.world import Card
from unweave.trusted import plug_in_names
from unweave.words import number_of

EXAMPLES = """examples:
  unweave worlds
  unweave worlds micro cars3d      more about each
  unweave worlds people.csv        a table or a folder of your own
  unweave worlds get mnist         fetch its files"""


def run(argv: Sequence[str]) -> int:
    """List all worlds, describe one, or fetch one; 1 where something could not be fetched."""
    parser = command("unweave worlds", "List the data sets, describe one, or fetch one.", examples=EXAMPLES)
    parser.add_argument(
        "name",
        nargs="*",
        metavar="NAME",
        help="describe this world, or data of your own by their path; `get NAME` fetches its files",
    )
    parser.add_argument(
        "--unchecked", action="store_true", help="fetch files of which no checksum is known, and keep what arrives"
    )
    parser.add_argument("--json", action="store_true", help="print as JSON")
    given = parse(parser, argv)
    if given.name[:1] == ["get"]:
        if not given.name[1:]:
            raise ValueError("say which: unweave worlds get NAME; `unweave worlds` lists them")
        return _get_all(given.name[1:], given.unchecked)
    worlds = {name: world_named(name) for name in given.name or WORLDS}
    cards = {name: world.card() for name, world in worlds.items()}
    if given.json:
        print_json({name: _plain(card, _sizes(worlds[name])) for name, card in cards.items()})
    elif given.name:
        for name, card in cards.items():
            _describe(name, card, _sizes(worlds[name]), worlds[name].files())
    else:
        _list(cards)
    return 0


def world_named(name: str) -> World:
    """A world by name with its default options, or the one that a path of one's own data stands for."""
    return as_world(name).resolve() if is_own_path(name) else as_world(typed(name))


def _list(cards: dict[str, Card]) -> None:
    rows = [(name, _factors(card), _size(card), _shape(card), _place(name, card)) for name, card in cards.items()]
    print_table("worlds", ("name", "factors", "examples", "shape", "where"), rows)
    for kinds in dict.fromkeys(_gives(card) for card in cards.values()):
        names = ", ".join(name for name, card in cards.items() if _gives(card) == kinds)
        say(textwrap.fill(f"{kinds:>23}: {names}", 80, subsequent_indent=" " * 25, break_on_hyphens=False))
    if plugged := plug_in_names("world"):
        say(f"of installed packages: {', '.join(plugged)}")
    say("to get: unweave worlds get dsprites fetches it     More about one: unweave worlds micro")


def _sizes(world: World) -> list[tuple[int, int]]:
    """Width and height of the smallest and the largest image where they differ."""
    found = world.sizes() if isinstance(world, Images) and world.path else []
    return [found[0], found[-1]] if len(found) > 1 else []


def _describe(name: str, card: Card, sizes: Sequence[tuple[int, int]], files: Sequence[Published]) -> None:
    say(f"{name}: {card.title}{f' ({card.note})' if card.note else ''}")
    if sizes:
        smallest, largest = (f"{width} × {height}" for width, height in sizes)
        colour = "grey" if card.shape[0] == 1 else "colour"
        say(f"  examples  {_size(card)}, {smallest} … {largest} pixels, {colour}")
        say("  training  needs one size for all: add --world.size 64; --world.fit crop, pad or stretch says how")
    else:
        say(f"  examples  {_size(card)}, each {_shape(card)}")
    if card.columns:
        say(f"  columns   {shortened(card.columns, 40)}")
    if card.space is not None:
        for factor in card.space.axes:
            hidden = ", hidden" if factor.hidden else ""
            say(f"  factor    {factor.name}: {number_of(factor.size, 'value')}, {factor.kind}{hidden}")
    _describe_supervision(card)
    say(f"  on disk   {'yes' if card.on_disk else 'no'}")
    command = () if card.on_disk or all(file.by_hand for file in files) else (f"unweave worlds get {name}",)
    ways = "\n".join((*command, card.how_to_get))
    say(textwrap.indent(ways, " " * 12).replace(" " * 12, "  to get it ", 1))


def _describe_supervision(card: Card) -> None:
    given = supervision_of(card)
    if given.pairings:
        most, steps = len(given.labels), ", ".join(given.steps) or "nothing"
        say(f"  pairs     {', '.join(given.pairings)}; 1 to {most} factors change; transitions step {steps}")
    if given.own_pairs:
        say(f"  pairs     {given.own_pairs}")
    say(f"  labels    {', '.join(given.labels) or 'none'}")
    if given.segments:
        say(f"  segments  {given.segments}")


def _get_all(names: Sequence[str], unchecked: bool) -> int:
    worlds = {name: world_named(name) for name in names}
    return max(_get(name, world, unchecked) for name, world in worlds.items())


def _get(name: str, world: World, unchecked: bool) -> int:
    if not world.files():
        say(f"{name}: {world.card().how_to_get}")
        return 0 if world.card().on_disk and name != "images" else 1
    files = [published for published in world.files() if not place_of(name, published).exists()]
    if files and all(published.by_hand for published in files):
        say(f"{name}: nothing that could be fetched from here. {world.card().how_to_get}")
        return 0 if world.card().on_disk else 1
    with shown() as progress:
        for published in files:
            fetch(name, published, progress, unchecked=unchecked)
        world.load(progress)
    say(f"{name}: fetched, checked and converted")
    return 0


def _gives(card: Card) -> str:
    return ", ".join(supervision_of(card).kinds) or "images alone"


def _factors(card: Card) -> str:
    return ", ".join(f"{f.name} {f.size}" for f in card.space.factors) if card.space else "–"


def _shape(card: Card) -> str:
    if card.columns:
        return number_of(len(card.columns), "column")
    return "×".join(map(str, card.shape)) if all(card.shape) else "any"


def _place(name: str, card: Card) -> str:
    """Whether it is here, and else how it comes here."""
    world = world_named(name)
    if not world.files():
        return "built in" if card.on_disk and name != "images" else "yours"
    if card.on_disk:
        return "built in" if name == "dsprites" else "here"
    return "by hand" if any(published.by_hand for published in world.files()) else "to get"


def _size(card: Card) -> str:
    return f"{card.n_examples:,}" if card.n_examples is not None else "any"


def _plain(card: Card, sizes: Sequence[tuple[int, int]]) -> dict[str, Any]:
    factors = (
        [{"name": f.name, "size": f.size, "kind": f.kind, "hidden": f.hidden} for f in card.space.axes]
        if card.space
        else []
    )
    return {
        "title": card.title,
        "factors": factors,
        "examples": card.n_examples,
        "shape": [card.shape[0], None, None] if sizes else list(card.shape),
        "sizes": [list(size) for size in sizes],
        "columns": list(card.columns),
        "on_disk": card.on_disk,
        "how_to_get": card.how_to_get,
        "note": card.note,
        "supervision": to_plain(supervision_of(card)),
    }
