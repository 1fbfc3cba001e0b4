"""Find the moral of a fable that is hidden among other fables."""

import mmlongbench.task as mt

INSTRUCTION = "Read the fables and answer the question.\n\n"


class Fable(mt.Row):
    """One fable. Each is asked about; the others are its haystack."""

    title: str
    text: str
    moral: str


class Fables(mt.Task[Fable]):
    """The moral of a fable, at a depth among others."""

    metric = "sub_em"
    placements = mt.Placements(mt.Depth, mt.DEPTHS)

    def draft(self, row: Fable, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the fable at a depth (it has no place), and the others in a drawn order."""
        others = draws.order("others", self.others(row, sources), lambda other: other.id)
        units = tuple(fable(other.title, other.text, "negative", (n,)) for n, other in enumerate(others))
        question = mt.Question(row.id, ask(row.title), {"title": row.title, "moral": row.moral})
        return mt.Draft(
            (fable(row.title, row.text, "gold"),),
            mt.InOrder(units),
            id=row.id,
            instruction=(INSTRUCTION,),
            questions=(question,),
        )

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the file."""
        data = example.question.data
        fables = [{"title": unit.id, "text": unit.body} for unit in example.units]
        return {"id": example.id, "title": data["title"], "answer": data["moral"], "fables": fables}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Rebuild the prompt of a line."""
        units = [fable(each["title"], each["text"], "negative") for each in record["fables"]]
        return mt.assemble((INSTRUCTION,), units, "\n\n", ask(record["title"]))

    def needles(self, record: mt.Record) -> list[mt.Part]:
        """Return the fable as the prompt shows it, so that an audit can find it there."""
        return [f"{each['title']}: {each['text']}" for each in record["fables"] if each["title"] == record["title"]]


def fable(title: str, text: str, role: mt.Role, place: tuple[int, ...] | None = None) -> mt.Unit:
    """Return a fable as a unit of the context."""
    return mt.Unit(title, text, place, role, head=f"{title}: ")


def ask(title: str) -> tuple[str]:
    """Return the question about a fable."""
    return (f"\n\nQuestion: what is the moral of {title}?\nAnswer:",)
