"""A card as it is read: lines of whole points, its objective, what was seen at each total."""

from __future__ import annotations

from dataclasses import dataclass

from laconic.scorecard.risk import Seen


@dataclass(frozen=True)
class CardItem:
    """One line of a card."""

    text: str
    column: str
    points: int


@dataclass(frozen=True)
class Card:
    """A card: its lines by decreasing points, its objective, and what was seen at each total.

    ``gap`` is the part of the objective that a better card could save at most.
    """

    items: tuple[CardItem, ...]
    objective: float
    gap: float
    seen: Seen

    def __str__(self) -> str:
        width = max((len(item.text) for item in self.items), default=0)
        return "\n".join(f"{item.text:<{width}}  {item.points:+d}" for item in self.items)
