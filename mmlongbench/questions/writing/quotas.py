"""How many questions of each kind are wanted, the slots for them, and which of the questions that passed are taken.

MMLongBench-Doc gives shares, and minima for each type of document. A slot is a place for one question, with its page,
format and author, drawn before any question is written. Every draw is a hash of (seed, document, name), so another
document changes no slot of this one.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import ceil

from mmlongbench.answers import AnswerFormat
from mmlongbench.draws import Draws
from mmlongbench.questions.table import Line
from mmlongbench.questions.writing.answers import words
from mmlongbench.questions.writing.asking import WritingSettings
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.lines import Candidate, Judged, Kind, PageLine, QuotaLine, Slot, passed, rejected

FORMATS: Mapping[AnswerFormat, float] = {"String": 0.291, "Integer": 0.348, "Float": 0.185, "List": 0.176}
"""The shares of formats among answerable questions (MMLongBench-Doc, Table 2)."""
UNANSWERABLE, CROSS = 0.206, 0.337  # the shares of unanswerable and of cross-page questions among all (Table 2)
MAX_A_PAGE = 2  # the maximum number of questions about a page
MAX_EVIDENCE = 4  # the maximum number of evidence pages of a question; more would not fit short contexts
WINDOWS, WIDEST_WINDOW = ((11, 2), (31, 4), (61, 6)), 8  # pages of a window by (fewer pages, width)
MINIMA: Mapping[str, Mapping[str, int]] = {
    "industr": {"all": 3, "cross": 2},
    "administration": {"all": 3, "cross": 2},
    "workshop": {"all": 6, "cross": 2, "unanswerable": 1, "table or figure": 3},
    "tutorial": {"all": 6, "cross": 2, "unanswerable": 1, "table or figure": 3},
    "research": {"all": 5, "cross": 3, "unanswerable": 1, "table": 2, "figure": 2},
    "financial": {"all": 10, "cross": 5, "unanswerable": 2, "table": 7},
    "academic": {"all": 6, "cross": 3, "unanswerable": 1, "table": 2, "figure": 3},
    "guide": {"all": 7, "cross": 3, "unanswerable": 1, "figure": 4},
    "brochure": {"all": 7, "cross": 2, "unanswerable": 1, "figure": 3},
}
"""The minimum numbers of questions by a part of the name of a document's type (MMLongBench-Doc, Table 5)."""
UNKNOWN = {"all": 6, "cross": 2, "unanswerable": 1, "table": 2, "figure": 2}  # of another type; our choice
MOST = 0.55  # the largest area under the curve that is wanted for what the words of a question tell
DROPPED_AT_ONCE = 0.1  # the share of the unanswerable questions that are dropped before it is measured again
MIN_DOCUMENTS = 4
"""In how many documents a word or a pair of words must be asked for. Others, such as the name that an edit brings into
a document, cannot be learned from one document for another."""
TOLD = "told-by-words-alone"  # the reason of a question that is dropped
_GOLDEN = 0.6180339887498949  # the step between the drawn places of formats: shares are met in short rows, too
_SAFE = "abcdefghijklmnopqrstuvwxyz0123456789"


def minima_of(doc_type: str) -> Counter[str]:
    name = doc_type.casefold()
    return Counter(next((minima for part, minima in MINIMA.items() if part in name), UNKNOWN))


def wanted_of(doc_type: str, pages: Mapping[Kind, int], per_document: int) -> dict[Kind, tuple[int, int]]:
    """Return how many questions of each kind are wanted of a document, and the minimum of each kind.

    Single-page questions are one third each about text, tables and figures, as far as the document has such pages; what
    it does not have is asked about the others. `pages` says how many have each kind of content.
    """
    minima = minima_of(doc_type)
    total = max(per_document, minima["all"])
    cross = max(minima["cross"], round(CROSS * total))
    unanswerable = max(minima["unanswerable"], round(UNANSWERABLE * total))
    single = max(total - cross - unanswerable, 0)
    least: dict[Kind, int] = {"table": minima["table"], "figure": minima["figure"], "text": 0}
    if either := minima["table or figure"]:
        least["table"], least["figure"] = either // 2, either - either // 2
    there: list[Kind] = [kind for kind in ("table", "figure", "text") if pages.get(kind)]
    layout = single // 8 if pages.get("layout") and single >= 8 else 0
    wanted: Counter[Kind] = Counter({kind: min(least[kind], single) for kind in there})
    while there and wanted.total() + layout < single:
        wanted[min(there, key=lambda kind: (wanted[kind], there.index(kind)))] += 1
    return {
        "cross": (cross, minima["cross"]),
        "unanswerable": (unanswerable, minima["unanswerable"]),
        "text": (wanted["text"], 0),
        "table": (max(wanted["table"], least["table"]), least["table"]),
        "figure": (max(wanted["figure"], least["figure"]), least["figure"]),
        "layout": (layout, 0),
    }


def quotas(document: ReadDocument, pages: Sequence[PageLine], settings: WritingSettings) -> list[QuotaLine]:
    usable = [page for page in pages if page.worth > 0]
    kinds: tuple[Kind, ...] = ("table", "figure", "text", "layout")
    content = {kind: sum(kind in page.kinds for page in usable) for kind in kinds}
    a_page = ceil(MAX_A_PAGE * settings.over)
    lines = []
    for kind, (wanted, least) in wanted_of(document.line.doc_type, content, settings.per_document).items():
        if kind in ("cross", "unanswerable"):
            room = len(usable) if kind == "unanswerable" else max(len(usable) - 1, 0)
            why = f"{len(usable)} pages are worth asking about"
        else:
            room, why = content[kind], f"{content[kind]} pages with this content"
        slots = min(ceil(wanted * settings.over), room * a_page)
        if wanted or least:
            why = why if slots < wanted else ""
            lines.append(
                QuotaLine(doc=document.line.doc, kind=kind, wanted=wanted, least=least, slots=slots, why_fewer=why)
            )
    return lines


def slots(
    document: ReadDocument, pages: Sequence[PageLine], wanted: Sequence[QuotaLine], settings: WritingSettings
) -> Iterator[Slot]:
    """Yield the slots of a document, kind by kind.

    Pages with fewer slots come first, then those in the fifth of the document that has fewest, then those worth more;
    the rest is drawn.
    """
    draws = Draws((settings.seed, document.line.sha256, "slots"))
    name = "".join(letter for letter in document.line.doc.casefold() if letter in _SAFE)[:16] or "doc"
    count, usable = len(document.pages), [page for page in pages if page.worth > 0]
    start, answerable = draws.fraction("formats"), 0
    taken, fifths, numbers = Counter[int](), Counter[int](), Counter[tuple[int, Kind]]()

    def fifth(page: int) -> int:
        return (page - 1) * 5 // max(count, 1)

    for quota in sorted(wanted, key=lambda quota: quota.kind):
        for n in range(quota.slots):
            id, own = f"{name}-{document.line.sha256[:8]}-{quota.kind}-{n:03}", draws.at(quota.kind, n)
            author = own.choice("author", settings.authors)
            if quota.kind == "unanswerable":
                yield Slot(
                    id=id, doc=document.line.doc, kind=quota.kind, format="None", pages=(), author=author, number=n
                )
                continue
            width, worth = 1, {page.page: page.worth for page in usable if quota.kind in page.kinds}
            if quota.kind == "cross":
                width = min(count, next((width for fewer, width in WINDOWS if count < fewer), WIDEST_WINDOW))
                worth = {page.page: 0.0 for page in usable if page.page + width - 1 <= count}
                worth = worth or {max(1, count - width + 1): 0.0}
            first = min(
                worth, key=lambda page: (taken[page], fifths[fifth(page)], -worth[page], own.rank("page", str(page)))
            )
            yield Slot(
                id=id,
                doc=document.line.doc,
                kind=quota.kind,
                format=_format((start + answerable * _GOLDEN) % 1),
                pages=tuple(range(first, first + width)),
                author=author,
                number=numbers[first, quota.kind],
            )
            answerable += 1
            taken[first] += 1
            fifths[fifth(first)] += 1
            numbers[first, quota.kind] += 1


def _format(at: float) -> AnswerFormat:
    for format, share in FORMATS.items():
        if at < share:
            return format
        at -= share
    return "List"


def balanced(
    candidates: Sequence[Candidate], quotas: Sequence[QuotaLine], seed: int
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the questions that the quotas want, by drawn order, and the surplus, each in the order of the slots.

    A page has at most two questions, and one of each kind. Places that a kind leaves open are filled by other kinds, so
    that a document gets the number that is wanted of it.
    """
    on_page, kinds_on_page, chosen = Counter[tuple[str, int]](), set[tuple[str, int, Kind]](), set[str]()

    def take(candidate: Candidate) -> bool:
        about = [(candidate.doc, page) for page in candidate.pages or candidate.about]
        kinds = {(*page, candidate.kind) for page in about}
        if any(on_page[page] >= MAX_A_PAGE for page in about) or kinds & kinds_on_page:
            return False
        on_page.update(about)
        kinds_on_page.update(kinds)
        chosen.add(candidate.slot)
        return True

    for doc in sorted({candidate.doc for candidate in candidates}):
        own = [candidate for candidate in candidates if candidate.doc == doc]
        drawn = Draws((seed, doc, "balance")).order("questions", own, lambda each: each.slot)
        missing: Counter[Kind] = Counter({quota.kind: quota.wanted for quota in quotas if quota.doc == doc})
        for candidate in drawn:
            if missing[candidate.kind] > 0 and take(candidate):
                missing[candidate.kind] -= 1
        left = missing.total() - missing["unanswerable"]
        for candidate in drawn:
            if left > 0 and candidate.is_answerable and candidate.slot not in chosen and take(candidate):
                left -= 1
    ordered = sorted(candidates, key=lambda candidate: candidate.slot)
    taken = [candidate for candidate in ordered if candidate.slot in chosen]
    return taken, [candidate for candidate in ordered if candidate.slot not in chosen]


class WordsAlone(Line):
    """How well the words of questions tell which have no answer."""

    area: float | None = None  # under the curve: 0.5 if nothing tells; None if it is not known
    by_chance: float | None = None  # the area that 95 % of exchanges of the labels between documents do not reach
    why: str = ""  # why it is not known; what was tried if it is
    dropped: int = 0  # how many unanswerable questions were dropped because their words tell

    @property
    def is_told(self) -> bool:
        """Return whether the words tell more than is wanted, and more than chance does."""
        return self.area is not None and self.area > max(MOST, self.by_chance or 0.0)

    @property
    def is_undecided(self) -> bool:
        """Return whether there are too few questions to say that the words tell as little as is wanted."""
        return self.area is None or (self.area > MOST and not self.is_told)


def words_alone(questions: Sequence[Candidate]) -> tuple[WordsAlone, dict[str, float]]:
    """Measure how well words tell which questions have no answer, and how well those of each slot do: a ridge
    regression learns from the questions of other documents.
    """
    import numpy as np

    from mmlongbench.shortcuts.learners import guess_answers
    from mmlongbench.shortcuts.text_features import of_text, scaled, table

    # The order is drawn, because the labels of a document stay in their order when they are exchanged.
    drawn = Draws(("words alone",)).order("questions", questions, lambda question: question.slot)
    terms, where = [], dict[str, set[str]]()
    for question in drawn:
        own = words(question.question).split()
        terms.append({*own, *map(" ".join, pairwise(own))})
        for term in terms[-1]:
            where.setdefault(term, set()).add(question.doc)
    known = sorted(term for term, documents in where.items() if len(documents) >= MIN_DOCUMENTS)
    if not known:
        return WordsAlone(why="there are too few documents"), {}
    asked = np.array([[float(term in own) for term in known] for own in terms])
    form = scaled(table([of_text(question.question) for question in drawn])) / 4
    labels = ["answerable" if question.is_answerable else "unanswerable" for question in drawn]
    ids, documents = [question.slot for question in drawn], [question.doc for question in drawn]
    features = np.concatenate([asked, form], axis=1)
    measured = guess_answers("answerable", ids, documents, labels, features, "words and form of the question")
    if measured is None:
        return WordsAlone(why="there are too few documents, or too few unanswerable questions"), {}
    area, chance = float(measured.scores.mean()), float(sorted(measured.null)[ceil(0.95 * len(measured.null)) - 1])
    found = WordsAlone(area=round(area, 4), by_chance=round(chance, 4), why=measured.evidence)
    return found, dict(zip(measured.ids, map(float, measured.scores), strict=True))


def without_told(questions: Sequence[Candidate]) -> list[Judged]:
    """Reject unanswerable questions that are told by their words, until the words of the rest do not tell.

    Those that are told best are dropped, a tenth of those that are left at a time, and it is measured again; ties are
    broken by the slot.
    """
    left, dropped = list(questions), dict[str, float]()
    while True:
        found, scores = words_alone(left)
        if not found.is_told:
            break
        absent = [question.slot for question in left if not question.is_answerable]
        absent.sort(key=lambda slot: (-scores[slot], slot))
        dropped |= {slot: scores[slot] for slot in absent[: ceil(DROPPED_AT_ONCE * len(absent))]}
        left = [question for question in left if question.slot not in dropped]
    return [
        rejected(question.slot, TOLD, f"its words tell it from {dropped[question.slot]:.0%} of the answerable ones")
        if question.slot in dropped
        else passed(question)
        for question in questions
    ]
