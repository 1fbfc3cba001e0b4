"""Answer a question about a photograph that is hidden among pages of PDFs."""

import mmlongbench.task as mt

INSTRUCTION = "One of these images is a photograph; the others are pages. Look for it and answer the question.\n\n"


class PhotographRow(mt.Row):
    """A question about a photograph of the folder."""

    photograph: str
    question: str
    answer: str


class Photograph(mt.Task[PhotographRow]):
    """A question about a photograph, at a depth among pages."""

    metric = "sub_em"
    sources = {"questions": mt.Table, "photographs": mt.Folder, "documents": mt.Pdfs}
    placements = mt.Placements(mt.Depth, mt.DEPTHS)

    def draft(self, row: PhotographRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the photograph at a depth (it has no place) among the documents, which are in a drawn order."""
        needle = shown(sources.images[row.photograph].path, "needle")
        documents = draws.order("documents", sources.documents.ids)
        pages = [page.path for id in documents for page in sources.documents[id].pages]
        units = tuple(shown(path, "padding", (n,)) for n, path in enumerate(pages))
        question = mt.Question(row.id, ask(row.question), {"row": row, "photograph": needle.id})
        return mt.Draft((needle,), mt.InOrder(units), id=row.id, instruction=(INSTRUCTION,), questions=(question,))

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the file."""
        row, photograph = example.question.data["row"], example.question.data["photograph"]
        images = [unit.id for unit in example.units]
        asked = {"id": example.id, "question": row.question, "answer": row.answer}
        return {**asked, "photograph": photograph, "images": images}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Rebuild the prompt of a line."""
        units = [shown(path, "padding") for path in record["images"]]
        return mt.assemble((INSTRUCTION,), units, "\n\n", ask(record["question"]))

    def needles(self, record: mt.Record) -> list[mt.Part]:
        """Return the photograph, so that an audit can find it in the prompt."""
        return [mt.Image(record["photograph"])]


def shown(path: str, role: mt.Role, place: tuple[int, ...] | None = None) -> mt.Unit:
    """Return an image as a unit of the context."""
    return mt.Unit(path, mt.Image(path), place, role)


def ask(question: str) -> tuple[str]:
    """Return the question as the prompt has it."""
    return (f"\n\nQuestion: {question}\nAnswer:",)
