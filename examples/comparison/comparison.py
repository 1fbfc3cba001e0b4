"""Answer a question that compares two documents, among pages of other documents."""

import mmlongbench.task as mt

INSTRUCTION = "Read the pages and answer the question with one number.\n\n"


class ComparisonRow(mt.Row):
    """A question about a page of one document and a page of another one; pages are counted from 1."""

    question: str
    answer: int
    first: str
    first_page: int
    second: str
    second_page: int


class Comparison(mt.Task[ComparisonRow]):
    """A question that compares two documents, each with one gold page."""

    metric = "doc_qa"
    sources = {"questions": mt.Table, "documents": mt.Pdfs}

    def draft(self, row: ComparisonRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Require both gold pages. Then take the other pages of both documents, then other documents. The context has
        the documents in a drawn order.
        """
        documents = sources.documents
        first, second = documents[row.first], documents[row.second]
        gold = [first.page(row.first_page).path, second.page(row.second_page).path]
        place = {id: n for n, id in enumerate(draws.order("places", documents.ids))}
        others = draws.order("others", (documents[id] for id in documents.ids), lambda document: document.id)
        units = [
            mt.Unit(page.path, mt.Image(page.path), (place[own.id], n), "gold" if page.path in gold else "padding")
            for own in dict.fromkeys((first, second, *others))
            for n, page in enumerate(own.pages)
        ]
        question = mt.Question(row.id, ask(row.question), {"row": row, "gold": gold})
        required = tuple(unit for unit in units if unit.id in gold)
        rest = tuple(unit for unit in units if unit.id not in gold)
        return mt.Draft(required, mt.InOrder(rest), id=row.id, instruction=(INSTRUCTION,), questions=(question,))

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the file. The metric `doc_qa` needs the format of the answer."""
        row, pages = example.question.data["row"], [unit.id for unit in example.units]
        asked = {"id": example.id, "question": row.question, "answer": str(row.answer), "answer_format": "Integer"}
        return {**asked, "gold_pages": example.question.data["gold"], "pages": pages}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Rebuild the prompt of a line."""
        units = [mt.Unit(path, mt.Image(path), (), "padding") for path in record["pages"]]
        return mt.assemble((INSTRUCTION,), units, "\n\n", ask(record["question"]))


def ask(question: str) -> tuple[str]:
    """Return the question as the prompt has it."""
    return (f"\n\nQuestion: {question}\nAnswer:",)
