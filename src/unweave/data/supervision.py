"""What a world can tell a method beside its images: pairs, labels, segments of time."""

from dataclasses import dataclass

from unweave.data.pairings import PAIRINGS, Transitions
from unweave.data.world import Card


@dataclass(frozen=True)
class Supervision:
    """``pairings`` are drawn from the factors, of which ``steps`` can take the small steps of transitions.

    ``own_pairs`` says which pairs the data itself has, ``segments`` where segments of time come from; empty for none.
    """

    pairings: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    own_pairs: str = ""
    labels: tuple[str, ...] = ()
    segments: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """In a word each."""
        has = {"pairs": self.pairings or self.own_pairs, "labels": self.labels, "segments": self.segments}
        return tuple(kind for kind, there in has.items() if there)


def supervision_of(card: Card) -> Supervision:
    """The supervision of a world, from its card."""
    if card.space is None:
        return Supervision(own_pairs=card.pairs, labels=card.labels, segments=card.segments)
    steps = tuple(factor.name for factor in card.space.factors if Transitions().moves(factor))
    drawn = tuple(name for name in PAIRINGS if steps or name != "transitions")
    return Supervision(drawn, steps, card.pairs, card.space.names, card.segments)
