"""The stages `pages` and `kinds`: what is on each page, and whether it is worth asking about.

The layer of the PDF says it first. Tables are found well in this way (17 of 18 pages with table answers of the public
MMLongBench-Doc subset, against 30 % of all pages), figures poorly, scans not at all. So a model looks at pages with
figures and scans before anything is asked about them.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from math import ceil

from mmlongbench.documents.page_facts import PageFacts, is_number
from mmlongbench.draws import Draws
from mmlongbench.models.calls import fence
from mmlongbench.questions.writing.asking import Desk, NoAnswer, PageContent, Request, WritingSettings, wording
from mmlongbench.questions.writing.documents import Library, ReadDocument
from mmlongbench.questions.writing.lines import PageLine
from mmlongbench.questions.writing.quotas import wanted_of

VERSION = 1  # the version of the rules for layers, which is in the lock
MIN_LETTERS = 40  # a page with fewer letters has no text of its own
MIN_TEXT, RICH_TEXT = 600, 1_500  # the letters of a page that is asked about as text, and of one that is worth more
MIN_RASTER, SCAN_RASTER = 0.05, 0.5  # the share of a page under pictures from which it may have a figure, or be a scan
MIN_DRAWINGS = 100
UNREADABLE = 0.3  # the share of characters without a meaning from which the text layer is of no use
WORTH = {"table": 1.0, "figure": 0.9, "text": 0.7, "layout": 0.5}
MIN_COMPLEXITY = 4  # the complexity, from 1 to 10, of a figure that is worth a question
LOOKS = 2  # how many pages a model looks at for one slot of a figure
_CAPTION = re.compile(
    r"^\s*(table|tab\.|figure|fig\.|chart|map|exhibit|diagram)\s+[\dIVX]+", re.IGNORECASE | re.MULTILINE
)
_CONTENTS_LINE = re.compile(r"(?:\.\s?){3,}\s*(\d{1,4})\s*$|\S\s{2,}(\d{1,4})\s*$")
_REFERENCE_LINE = re.compile(r"^\s*(\[\d+\]|\d+\.\s|[A-Z][\w'-]+,\s+[A-Z])|\((19|20)\d\d[a-z]?\)|\b(19|20)\d\d[a-z]?\.")
_ITEM = re.compile(r"^\s*([•▪■‣–-]|\(?[a-z0-9]{1,2}[.)])\s+\S", re.MULTILINE)
_NAMES_AND_NUMBERS = re.compile(r"\b\d[\d.,]*\b|(?<=[a-z,] )[A-Z][a-z]{2,}")


def layer_pages(documents: Mapping[str, ReadDocument]) -> list[PageLine]:
    keys = Counter(key for document in documents.values() for key in {page.key for page in document.pages if page.key})
    boilerplate = {key for key, count in keys.items() if count > 1}
    lines = []
    for name, document in sorted(documents.items()):
        for number, facts in enumerate(document.pages, 1):
            kinds, worth, why = kind_of(facts, number, boilerplate)
            lines.append(PageLine(doc=name, page=number, key=facts.key, kinds=kinds, worth=worth, why=why))
    return lines


def kind_of(
    facts: PageFacts, number: int, boilerplate: Collection[str] = ()
) -> tuple[tuple[str, ...], float, tuple[str, ...]]:
    """Return what is on a page (text, table, figure, layout, scan, contents, references, blank, damaged), its worth,
    and why, as its layer tells; `boilerplate` has the keys of pages that stand in several documents.
    """
    if facts.lost:
        return ("damaged",), 0.0, (facts.lost,)
    letters, pictures = sum(map(str.isalpha, facts.text)), f"pictures cover {facts.raster:.0%}"
    if letters < MIN_LETTERS:
        kind = "scan" if facts.raster >= SCAN_RASTER else "figure" if facts.raster > MIN_RASTER else "blank"
        return (kind,), {"scan": 0.5, "figure": 0.7, "blank": 0.0}[kind], (f"{letters} letters", pictures)
    shown = [letter for letter in facts.text if not letter.isspace()]
    meaningless = sum(letter == "\ufffd" or "\ue000" <= letter <= "\uf8ff" for letter in shown)
    if meaningless / max(1, len(shown)) > UNREADABLE:
        return ("scan",), 0.5, ("the letters of its fonts have no meaning",)
    if index := _index_of(facts.text):
        return (index[0],), 0.0, (index[1],)

    kinds = {}
    captions = {caption[1].casefold()[:3] for caption in _CAPTION.finditer(facts.text)}
    grid = grid_rows(facts.rows)
    if grid >= 3 or "tab" in captions:
        kinds["table"] = f"{grid} rows of cells in a run" if grid >= 3 else "a caption of a table"
    if captions - {"tab"}:
        kinds["figure"] = "a caption of a figure"
    elif facts.raster > MIN_RASTER:
        kinds["figure"] = pictures
    elif facts.drawings >= MIN_DRAWINGS and not kinds:
        kinds["figure"] = f"{facts.drawings} drawings"
    if letters >= MIN_TEXT:
        kinds["text"] = f"{letters} letters"
    if (items := len(_ITEM.findall(facts.text))) >= 3:
        kinds["layout"] = f"{items} items of lists"

    if facts.key in boilerplate:
        return tuple(kinds) or ("text",), 0.0, ("the same page is in another document",)
    if number == 1:
        return tuple(kinds) or ("text",), 0.0, ("the first page",)
    worth = max((WORTH[kind] for kind in kinds), default=0.2)
    if set(kinds) == {"text"} and (letters < RICH_TEXT or len({*_NAMES_AND_NUMBERS.findall(facts.text)}) < 3):
        worth = 0.5
    return tuple(kinds), worth, tuple(kinds.values()) or (f"{letters} letters, less than {MIN_TEXT}",)


def _index_of(text: str) -> tuple[str, str] | None:
    lines = [line for line in text.splitlines() if line.strip()]
    numbers = [int(entry[1] or entry[2]) for line in lines if (entry := _CONTENTS_LINE.search(line))]
    rising = sum(number <= after for number, after in pairwise(numbers))
    if len(numbers) >= 5 and rising >= 0.8 * (len(numbers) - 1):
        return "contents", f"{len(numbers)} lines end with rising page numbers"
    head = " ".join(lines[:2]).strip().casefold()
    if head.startswith(("contents", "table of contents", "index")) and len(lines) >= 5:
        return "contents", "its heading"
    is_headed = any(line.strip().casefold() in ("references", "bibliography", "works cited") for line in lines[:3])
    entries = sum(bool(_REFERENCE_LINE.search(line)) for line in lines)
    if is_headed and len(lines) >= 5 and entries >= 0.5 * (len(lines) - 1):
        return "references", f"{entries} of {len(lines)} lines are entries"
    return None


def grid_rows(rows: Sequence[Sequence[str]]) -> int:
    """Return the length of the longest run of rows that look like those of a table: three cells or more, of which two
    are numbers (one, in a run of at least four). Up to two other lines may stand between them.

    >>> grid_rows([["Year", "2019", "2020"], ["Costs", "12", "14"], ["Total"], ["Sales", "20", "31"]])
    3
    """
    longest = {}
    for numbers in (2, 1):
        longest[numbers] = run = between = 0
        for row in rows:
            if len(row) >= 3 and sum(map(is_number, row)) >= numbers:
                run, between = run + 1, 0
                longest[numbers] = max(longest[numbers], run)
            else:
                between += 1
                run = run if between <= 2 else 0
    return max(longest[2], longest[1] if longest[1] >= 4 else 0)


def looked_at(library: Library, pages: Sequence[PageLine], settings: WritingSettings) -> set[tuple[str, int]]:
    """Return the pages at which a model looks: of each document, a bounded number of figures and scans, drawn."""
    chosen = set()
    for name, document in library.documents.items():
        doubtful = [
            page.page for page in pages if page.doc == name and page.worth > 0 and {"figure", "scan"} & {*page.kinds}
        ]
        wanted, _ = wanted_of(document.line.doc_type, {"figure": len(doubtful)}, settings.per_document)["figure"]
        drawn = Draws((settings.seed, document.line.sha256, "kinds")).order("looked at", doubtful)
        chosen |= {(name, page) for page in drawn[: LOOKS * ceil(max(wanted, 1) * settings.over)]}
    return chosen


def confirm(page: PageLine, model: str, desk: Desk) -> PageLine:
    """Return a page with what a model sees on it. A page without a usable reply loses what only a model can tell."""
    shown = desk.library.shown(page.doc, [page.page])
    content = desk.ask(Request("kinds", model, wording("page_content"), fence("title", page.doc), PageContent, shown))
    kinds = [kind for kind in page.kinds if kind in ("text", "table", "layout")]
    if isinstance(content, NoAnswer):
        worth, why = page.worth if kinds else 0.0, str(content.reason)
    else:
        seen = [kind for kind in content.content if kind not in ("none", "contents")]
        if "figure" in seen and content.complexity < MIN_COMPLEXITY:
            seen.remove("figure")
        kinds = list(dict.fromkeys([*kinds, *seen]))
        worth = max(page.worth, 0.5) if kinds and "contents" not in content.content else 0.0
        why = f"a model sees {', '.join(content.content) or 'nothing'}, complexity {content.complexity}"
    return page.model_copy(update={"kinds": tuple(kinds), "worth": worth, "why": (*page.why, why), "asked": model})


def unconfirmed(page: PageLine) -> PageLine:
    """Return a page at which no model looked: without the kinds that only a model can tell."""
    kinds = tuple(kind for kind in page.kinds if kind not in ("figure", "scan"))
    if kinds == page.kinds:
        return page
    why = "not looked at: enough figures were drawn before it"
    return page.model_copy(update={"kinds": kinds, "worth": page.worth if kinds else 0.0, "why": (*page.why, why)})
