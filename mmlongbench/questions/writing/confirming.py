"""The stages `pages` and `kinds`: what is on each page. The layer of the PDF says it first; where it is no good witness
(figures, scans), a model looks at the pages that slots may draw.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil

from mmlongbench.draws import Draws
from mmlongbench.questions.writing.asking import Ask, NoAnswer, Request
from mmlongbench.questions.writing.documents import Library, ReadDocument
from mmlongbench.questions.writing.forms import PageContent
from mmlongbench.questions.writing.kinds import kind_of
from mmlongbench.questions.writing.lines import PageLine
from mmlongbench.questions.writing.quotas import minima_of, wanted_of
from mmlongbench.questions.writing.settings import WritingSettings
from mmlongbench.questions.writing.wordings import PAGE_CONTENT, titled

MIN_COMPLEXITY = 4
"""The complexity, from 1 to 10, of a figure that is worth a question."""
_LOOKS = 2
"""How many nominated pages are looked at for one slot."""


def layer_pages(documents: Mapping[str, ReadDocument]) -> list[PageLine]:
    """Return what the layers of all documents tell about their pages."""
    keys = Counter(key for each in documents.values() for key in {page.key for page in each.pages if page.key})
    boilerplate = {key for key, count in keys.items() if count > 1}
    found = []
    for name, document in sorted(documents.items()):
        for number, facts in enumerate(document.pages, 1):
            kind = kind_of(facts, number, boilerplate)
            found.append(
                PageLine(doc=name, page=number, key=facts.key, kinds=kind.kinds, worth=kind.worth, why=kind.why)
            )
    return found


def nominated(document: ReadDocument, pages: Sequence[PageLine], settings: WritingSettings) -> list[int]:
    """Return the pages of a document at which a model looks: a bounded number of figures and scans, drawn."""
    doubtful = [page.page for page in pages if page.worth > 0 and {"figure", "scan"} & {*page.kinds}]
    wanted = wanted_of(minima_of(document.line.doc_type), {"figure": len(doubtful)}, settings.per_document)
    looks = _LOOKS * ceil(max(wanted["figure"][0], 1) * settings.over)
    draws = Draws((settings.seed, document.line.sha256, "kinds"))
    return sorted(draws.order("looked at", doubtful)[:looks])


def confirm(page: PageLine, model: str, library: Library, ask: Ask[PageContent]) -> PageLine:
    """Return a page with what a model sees on it. A page without a usable reply loses what only a model can tell."""
    found = ask(
        Request("kinds", model, PAGE_CONTENT, titled(page.doc), PageContent, library.shown(page.doc, [page.page]))
    )
    kept = [kind for kind in page.kinds if kind in ("text", "table", "layout")]
    if isinstance(found, NoAnswer):
        return page.model_copy(
            update={
                "kinds": tuple(kept),
                "worth": page.worth if kept else 0.0,
                "why": (*page.why, found.reason),
                "asked": model,
            }
        )
    seen = [kind for kind in found.content if kind not in ("none", "contents")]
    if "figure" in seen and found.complexity < MIN_COMPLEXITY:
        seen.remove("figure")
    kinds = tuple(dict.fromkeys([*kept, *seen]))
    worth = (max(page.worth, 0.5) if kinds else 0.0) if "contents" not in found.content else 0.0
    why = f"a model sees {', '.join(found.content) or 'nothing'}, complexity {found.complexity}"
    return page.model_copy(update={"kinds": kinds, "worth": worth, "why": (*page.why, why), "asked": model})


def unconfirmed(page: PageLine) -> PageLine:
    """Return a page at which no model looked: without the kinds that only a model can tell."""
    kinds = tuple(kind for kind in page.kinds if kind not in ("figure", "scan"))
    if kinds == page.kinds:
        return page
    return page.model_copy(
        update={
            "kinds": kinds,
            "worth": page.worth if kinds else 0.0,
            "why": (*page.why, "not looked at: enough figures were drawn before it"),
        }
    )
