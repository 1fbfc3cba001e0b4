"""Put the letters of a writer in the order of their dates, among letters of other writers."""

from datetime import date

import mmlongbench.task as mt


class Letters(mt.Row):
    """The letters of a writer: a PDF with one letter on each page, and the date of each page, such as 1911-03-28."""

    writer: str
    document: str
    dates: tuple[date, ...]


class Dates(mt.Task[Letters]):
    """The order of a writer's letters, which stand at drawn depths among others."""

    metric = "mm-niah-count"
    instruction = "Read the letters. Each has a number, which stands before it.\n\n"
    question_form = "\n\n{question}\nAnswer:"
    sources = {"letters": mt.Table, "documents": mt.Pdfs}
    placements = mt.Placements(mt.Permutation, (0, 1, 2))

    def question(self, row: Letters) -> str:
        """Ask for the numbers of the letters of a writer."""
        return f"Give the numbers of all letters of {row.writer}, the earliest date first, as a list such as [1, 2]."

    def draft(self, row: Letters, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Give every page a drawn number. The pages of the writer are needles; the others are in a drawn order."""
        documents = sources.documents
        own = [page.path for page in documents[row.document].pages]
        others = [page.path for id in documents.ids for page in documents[id].pages if page.path not in own]
        if len(own) != len(set(row.dates)):
            raise mt.Rejected(f"{len(own)} letters and {len(set(row.dates))} different dates")
        number = {path: n for n, path in enumerate(draws.order("numbers", [*own, *others]), 1)}
        unit = {path: mt.Unit(path, mt.Image(path), head=f"Letter {number[path]}: ") for path in number}
        hay = mt.InOrder([unit[path] for path in draws.order("others", others)])
        answer = [number[path] for _, path in sorted(zip(row.dates, own, strict=True))]
        return mt.Draft(tuple(unit[path] for path in own), hay, answer=answer)
