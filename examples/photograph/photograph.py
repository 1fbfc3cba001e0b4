"""Answer a question about a photograph that is hidden among pages of PDFs."""

import mmlongbench.task as mt


class PhotographRow(mt.Row):
    """A question about a photograph of the folder."""

    photograph: str
    question: str
    answer: str


class Photograph(mt.Task[PhotographRow]):
    """A question about a photograph, at a depth among pages."""

    metric = "sub_em"
    instruction = "One of these images is a photograph; the others are pages. Look for it and answer the question.\n\n"
    sources = {"questions": mt.Table, "photographs": mt.Folder, "documents": mt.Pdfs}
    placements = mt.Placements(mt.Depth, mt.DEPTHS)

    def draft(self, row: PhotographRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Put the photograph at a depth (it has no place) among the documents, which are in a drawn order."""
        documents = draws.order("documents", sources.documents.ids)
        pages = [page.path for id in documents for page in sources.documents[id].pages]
        needle, *units = (mt.Unit(path, mt.Image(path)) for path in (sources.images[row.photograph].path, *pages))
        return mt.Draft((needle,), mt.InOrder(units))
