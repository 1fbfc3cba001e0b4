"""The probes: models answer a question from some pages, from no page, or from pages of another document."""

from collections.abc import Sequence

from mmlongbench.draws import Draws
from mmlongbench.questions.writing.answers import agrees, words
from mmlongbench.questions.writing.asking import NoAnswer, Request
from mmlongbench.questions.writing.context import Context, held, passed, rejected, revised
from mmlongbench.questions.writing.forms import Answered, Guessed
from mmlongbench.questions.writing.lines import Candidate, Judged, Kind
from mmlongbench.questions.writing.wordings import GUESS, asked, shown_answer

OTHER_PAGES = 5
"""How many of the best other pages the probe of necessity shows (k of M-LongDoc)."""
SMALL = 20
"""The largest whole number that is easily guessed."""
GUESSES, RIGHT = 3, 2
"""How often an answer that is easily guessed is asked for, and how often it must be right to count."""
_READERS = 2
_KIND_OF_SOURCE: dict[str, Kind] = {"Table": "table", "Chart": "figure", "Figure": "figure", "Layout": "layout"}


def is_right(candidate: Candidate, found: Answered | Guessed | NoAnswer) -> bool:
    """Return whether a model gave the answer of a question."""
    if isinstance(found, NoAnswer) or (isinstance(found, Answered) and not found.is_answerable):
        return False
    return agrees(candidate.answer, found.answers, candidate.answer_format)


def without_document(candidate: Candidate, context: Context) -> Judged:
    """Return whether a model that sees only the title and the question gives the answer.

    An answer that is easily guessed must be guessed twice in three samples.
    """
    is_easy = _is_easily_guessed(candidate)
    samples, most = (GUESSES, RIGHT) if is_easy else (1, 1)
    failure = "no model of another family"
    for model in context.readers(candidate, "no-document")[:_READERS]:
        right, usable, last = 0, 0, ""
        for sample in range(samples):
            temperature = 1.0 if is_easy else 0.0
            request = Request("no-document", model, GUESS, asked(candidate), Guessed, (), sample, temperature)
            found = context.ask(request)
            if isinstance(found, NoAnswer):
                failure = found.detail
                usable += found.reason == "refusal"  # a model that does not guess does not know
                continue
            usable, last = usable + 1, shown_answer(found.answers or [""])
            right += is_right(candidate, found)
        if right >= most:
            detail = f"{model} gives {last!r}, {right} of {samples} times"
            return rejected(candidate.slot, "answerable-without-document", detail)
        if usable == samples:
            return passed(candidate, f"{model} does not give it")
    return held(candidate, "unchecked-without-document", failure)


def _is_easily_guessed(candidate: Candidate) -> bool:
    text = words(candidate.answer[0]).strip()
    is_small = candidate.answer_format == "Integer" and text.isdecimal() and len(text) <= 3 and int(text) <= SMALL
    return is_small or text in ("yes", "no", "true", "false") or " or " in candidate.question.casefold()


def sufficiency(candidate: Candidate, context: Context) -> Judged:
    """Return whether models give the answer from the evidence pages alone; one of two is enough.

    Models read pictures badly, so a question about a figure is not rejected for it, but held for people.
    """
    said = []
    for model in context.readers(candidate, "sufficiency")[:_READERS]:
        found = context.answer("sufficiency", model, candidate, candidate.pages)
        if is_right(candidate, found):
            return passed(candidate, f"{model} gives it")
        said.append(f"{model} gives {_shown(found)}")
    detail = "; ".join(said)
    if candidate.kind in ("figure", "layout"):
        return held(candidate, "evidence-insufficient", detail)
    return rejected(candidate.slot, "evidence-insufficient", detail)


def wrong_document(candidate: Candidate, context: Context) -> Judged:
    """Return whether another document of the same type gives the answer, at the same places."""
    other = _other_document(candidate, context)
    if other is None:
        return passed(candidate, "there is no other document")
    last = len(context.library.documents[other].pages)
    pages = sorted({min(page, last) for page in candidate.pages})
    model = context.readers(candidate, "wrong-document")[0]
    found = context.answer("wrong-document", model, candidate, pages, other)
    if is_right(candidate, found):
        return rejected(candidate.slot, "document-independent", f"{model} gives it from {other}, page {_listed(pages)}")
    if isinstance(found, Answered) and found.is_answerable and found.answers:
        detail = f"{model} gives {_shown(found)} from {other}: the question does not say which document it means"
        if context.settings.strict_anchor:
            return rejected(candidate.slot, "anchor-weak", detail)
        return passed(candidate, detail, "anchor-weak")
    return passed(candidate, f"{model} finds no answer in {other}")


def _other_document(candidate: Candidate, context: Context) -> str | None:
    documents = context.library.documents
    own = documents[candidate.doc].line
    names = sorted(name for name in documents if name != candidate.doc)
    alike = [name for name in names if documents[name].line.doc_type == own.doc_type]
    draws = Draws((context.settings.seed, candidate.slot, "wrong-document"))
    return next(iter(draws.order("document", alike or names)), None)


def necessity(candidate: Candidate, context: Context) -> Judged:
    """Return whether other pages give the answer, too; these are recorded, and the question stays.

    Pages with the content of an evidence page are not shown, because they are known to give it.
    """
    document = context.document(candidate)
    keys = {document.pages[page - 1].key for page in candidate.pages} - {""}
    equal = [n for n, page in enumerate(document.pages, 1) if page.key in keys and n not in candidate.pages]
    ranked = context.rankings.ranked(candidate.doc, candidate.question, [*candidate.pages, *equal])
    pages = sorted(ranked[:OTHER_PAGES])
    alternatives = tuple(equal) if len(candidate.pages) == 1 else ()
    detail = f"page {_listed(equal)} is the same page" if alternatives else ""
    model = context.readers(candidate, "necessity")[0]
    found = context.answer("necessity", model, candidate, pages) if pages else NoAnswer("", "")
    if isinstance(found, Answered) and is_right(candidate, found):
        named = sorted({page for page in found.pages if page in pages}) or pages
        alone = context.answer("necessity", model, candidate, named)
        if not is_right(candidate, alone):
            return held(
                candidate,
                "evidence-elsewhere",
                f"{model} gives it from other pages, but not from {_listed(named)} alone",
            )
        alternatives, detail = (*alternatives, *named), f"{model} gives it from page {_listed(named)}"
    if alternatives:
        return revised(candidate, "evidence-elsewhere", detail, alternatives=tuple(sorted({*alternatives})))
    return passed(candidate, f"{model} does not give it from page {_listed(pages)}" if pages else "no other page")


def each_page(candidate: Candidate, context: Context) -> Judged:
    """Return whether each of several evidence pages is needed; one that is not leaves the list."""
    model = context.readers(candidate, "each-page")[0]
    pages = list(candidate.pages)
    for page in candidate.pages:
        rest = [each for each in pages if each != page]
        if rest and is_right(candidate, context.answer("each-page", model, candidate, rest)):
            pages = rest
    if len(pages) == len(candidate.pages):
        return passed(candidate, f"{model} needs all {len(pages)} pages")
    kind = (
        candidate.kind
        if len(pages) > 1
        else next((_KIND_OF_SOURCE.get(each, "text") for each in candidate.sources), "text")
    )
    detail = f"{model} gives it from page {_listed(pages)} alone"
    return revised(candidate, "shortcut", detail, pages=tuple(pages), kind=kind)


def _shown(found: Answered | NoAnswer) -> str:
    if isinstance(found, NoAnswer):
        return f"no usable reply ({found.reason})"
    return repr(shown_answer(found.answers)[:80]) if found.is_answerable and found.answers else "no answer"


def _listed(pages: Sequence[int]) -> str:
    return ", ".join(map(str, pages))
