"""Small tasks, each for one thing that units may be."""

from typing import ClassVar

import mmlongbench.task as mt


class Card(mt.Row):
    """A postcard: two pictures, and who wrote it."""

    writer: str
    front: str
    back: str


class Postcards(mt.Task[Card]):
    """A needle of several parts: a text, a picture, a text and a picture."""

    metric = "sub_em"
    instruction = "Look at the postcards.\n\n"
    sources: ClassVar = {"cards": mt.Table, "pictures": mt.Folder}
    placements = mt.Placements(mt.Depth, (0.0, 0.5, 1.0))

    def question(self, row: Card) -> str:
        """Ask for the writer of a card."""
        return f"Who wrote the card number {row.id}?"

    def draft(self, row: Card, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the card among all others."""
        cards = [self.card(other, sources) for other in draws.order("others", self.others(row, sources), _id)]
        return mt.Draft((self.card(row, sources),), mt.InOrder(cards), answer=row.writer)

    def card(self, row: Card, sources: mt.Sources) -> mt.Unit:
        """Return a card as it is shown."""
        front, back = (mt.Image(sources.images[name].path) for name in (row.front, row.back))
        head, body, further = f"Card {row.id}, front: ", front, ("\nBack: ", back, f"\nFrom {row.writer}.")
        return mt.Unit(row.id, body, head=head, further=further, label=f"card of {row.writer}")


class BarePostcards(Postcards):
    """The same cards, which begin with a picture."""

    def card(self, row: Card, sources: mt.Sources) -> mt.Unit:
        """Return a card that begins with a picture."""
        front, back = (mt.Image(sources.images[name].path) for name in (row.front, row.back))
        return mt.Unit(row.id, front, further=(f"\nFrom {row.writer}.\n", back))


def _id(row: mt.Row) -> str:
    return row.id
