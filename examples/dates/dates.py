"""Put the letters of a writer in the order of their dates, among letters of other writers."""

from datetime import date

import mmlongbench.task as mt

INSTRUCTION = "Read the letters. Each has a number, which stands before it.\n\n"
ASK = "\n\nGive the numbers of all letters of {}, the earliest date first, as a list such as [1, 2].\nAnswer:"


class Letters(mt.Row):
    """The letters of a writer: a PDF with one letter on each page, and the date of each page, such as 1911-03-28."""

    writer: str
    document: str
    dates: tuple[date, ...]


class Dates(mt.Task[Letters]):
    """The order of a writer's letters, which stand at drawn depths among others."""

    metric = "mm-niah-count"
    sources = {"letters": mt.Table, "documents": mt.Pdfs}
    placements = mt.Placements(mt.Permutation, (0, 1, 2))

    def draft(self, row: Letters, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Give every page a drawn number. The pages of the writer are needles; the others are in a drawn order."""
        documents = sources.documents
        own = [page.path for page in documents[row.document].pages]
        others = [page.path for id in documents.ids for page in documents[id].pages if page.path not in own]
        wanted, found = len(own), len(set(row.dates))
        if wanted != found:
            raise mt.Rejected(mt.Fault("wrong-dates", f"{wanted} different dates", f"{found}", field="dates"))
        number = {path: n for n, path in enumerate(draws.order("numbers", [*own, *others]), 1)}
        needles = tuple(letter(path, number[path], "needle") for path in own)
        drawn = enumerate(draws.order("others", others))
        hay = tuple(letter(path, number[path], "padding", (place,)) for place, path in drawn)
        answer = [number[path] for _, path in sorted(zip(row.dates, own, strict=True))]
        question = mt.Question(row.id, (ASK.format(row.writer),), {"writer": row.writer, "answer": answer})
        return mt.Draft(needles, mt.InOrder(hay), id=row.id, instruction=(INSTRUCTION,), questions=(question,))

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the file. The answer is a list of whole numbers, as its metric needs it."""
        pages = [{"number": unit.data["number"], "image": unit.id} for unit in example.units]
        return {"id": example.id, **example.question.data, "pages": pages}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Rebuild the prompt of a line."""
        units = [letter(page["image"], page["number"], "padding") for page in record["pages"]]
        return mt.assemble((INSTRUCTION,), units, "\n\n", (ASK.format(record["writer"]),))

    def needles(self, record: mt.Record) -> list[mt.Part]:
        """Return the letters of the writer, so that an audit can find them in the prompt."""
        return [mt.Image(page["image"]) for page in record["pages"] if page["number"] in record["answer"]]


def letter(path: str, number: int, role: mt.Role, place: tuple[int, ...] | None = None) -> mt.Unit:
    """Return a page as a unit of the context, with its number in front."""
    return mt.Unit(path, mt.Image(path), place, role, head=f"Letter {number}: ", data={"number": number})
