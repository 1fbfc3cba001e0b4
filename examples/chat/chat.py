"""Answer a question about something that was said or shown earlier in a chat."""

from collections.abc import Callable

import mmlongbench.task as mt


class ChatRow(mt.Row):
    """What a user says, with or without a picture, and the reply. Exchanges with a question are asked about."""

    user: str
    assistant: str
    picture: str | None = None
    question: str | None = None
    answer: str | None = None


class Chat(mt.Task[ChatRow]):
    """A fact of an exchange, at a depth among other exchanges."""

    metric = "sub_em"
    instruction = "This is a chat about everyday things.\n\n"
    in_turns = True
    sources = {"exchanges": mt.Table, "pictures": mt.Folder}
    reserve = 1600  # for the answer, and for a chat template around about 290 turns at 8K
    placements = mt.Placements(mt.Depth, mt.DEPTHS)

    def selects(self, sources: mt.Sources) -> Callable[[ChatRow], bool]:
        """Ask about the exchanges that have a question."""
        return lambda row: bool(row.question)

    def draft(self, row: ChatRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the exchange at a depth (it has no place), and the others in a drawn order."""

        def exchange(each: ChatRow) -> mt.Unit:
            shown = (mt.Image(sources.images[each.picture].path),) if each.picture else ()
            turns = (mt.Turn("user", (each.user, *shown)), mt.Turn("assistant", (each.assistant,)))
            return mt.Unit(each.id, turns=turns)

        others = draws.order("others", self.others(row, sources), lambda other: other.id)
        return mt.Draft((exchange(row),), mt.InOrder([exchange(other) for other in others]))
