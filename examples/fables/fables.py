"""Find the moral of a fable that is hidden among other fables."""

import mmlongbench.task as mt


class Fable(mt.Row):
    """One fable. Each is asked about; the others are its haystack."""

    title: str
    text: str
    moral: str

    def unit(self) -> mt.Unit:
        """Return the fable as the prompt shows it."""
        return mt.Unit(self.title, self.text, head=f"{self.title}: ")


class Fables(mt.Task[Fable]):
    """The moral of a fable, at a depth among others."""

    metric = "sub_em"
    instruction = "Read the fables and answer the question.\n\n"
    placements = mt.Placements(mt.Depth, mt.DEPTHS)

    def draft(self, row: Fable, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the fable at a depth (it has no place), and the others in a drawn order."""
        others = draws.order("others", self.others(row, sources), lambda other: other.id)
        question = f"what is the moral of {row.title}?"
        return mt.Draft((row.unit(),), mt.InOrder([other.unit() for other in others]), question, row.moral)
