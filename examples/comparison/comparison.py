"""Answer a question that compares two documents, among pages of other documents."""

import mmlongbench.task as mt


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
    instruction = "Read the pages and answer the question with one number.\n\n"
    sources = {"questions": mt.Table, "documents": mt.Pdfs}

    def draft(self, row: ComparisonRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Require both gold pages. Then take the other pages of both documents, then other documents. The context has
        the documents in a drawn order.
        """
        documents = sources.documents
        first, second = documents[row.first], documents[row.second]
        gold = [first.page(row.first_page), second.page(row.second_page)]
        place = {id: n for n, id in enumerate(draws.order("places", documents.ids))}
        others = draws.order("others", (documents[id] for id in documents.ids), lambda document: document.id)
        units = [
            mt.Unit(page.path, mt.Image(page.path), (place[own.id], n), label=f"{own.id}, page {n + 1}")
            for own in dict.fromkeys((first, second, *others))
            for n, page in enumerate(own.pages)
        ]
        paths = [page.path for page in gold]
        required = tuple(unit for unit in units if unit.id in paths)
        rest = [unit for unit in units if unit.id not in paths]
        return mt.Draft(required, mt.InOrder(rest), answer=str(row.answer), fields={"answer_format": "Integer"})
