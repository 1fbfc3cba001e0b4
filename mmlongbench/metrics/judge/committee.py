"""Scores open answers with a committee: several judges see pages of the document and grade from 1 to 5 (M-LongDoc).

Under `paper` and `official` a judge sees the evidence page and its neighbours but no reference, and replies with a
grade alone. In the paper each judge is asked five times, in the public code once. The released grades are single
replies, and the published agreement with people's grades (0.889) is based on them. Under `ours` a judge sees the
reference and the pages that hold the answer, and gives its reasons first.

The mean of all grades is from 1 to 5; the score is (mean − 1) / 4. Under every profile, a reply without a grade is left
out of the mean, while the public code counts it as −1. The details of a score have the number of such replies, and what
was wrong with them.
"""

import statistics
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.names import folder_names
from mmlongbench.documents.pdf import read_pages
from mmlongbench.errors import Fault, PageLimitError, SourceError
from mmlongbench.io.files import file_inside, pdfs_by_name
from mmlongbench.metrics.judge.answers import items_of
from mmlongbench.metrics.judge.judged import Judged, Manner, prompt_call, verdict_call
from mmlongbench.metrics.judge.prompts import own_prompt
from mmlongbench.metrics.judge.verdicts import Grade, last_grade
from mmlongbench.models.calls import Call, Picture, fence, numbered, picture_of
from mmlongbench.models.client import Backoff, Failed
from mmlongbench.task.metric import Details, Evidence, Profile, Score, ScoringInput, Settings

JUDGES = 3
"""The number of judges in the paper and in the public code."""
SAMPLES: Mapping[Profile, int] = {"official": 1, "paper": 5, "ours": 1}
"""How often each judge is asked, unless the settings say otherwise."""
DRAWN = 1.0
"""The temperature if each judge is asked several times; if each is asked once, it is 0."""
MAX_TOKENS = 4096
"""The token limit of a grade, including a model's reasoning before it."""
MAX_PAGES = 20
"""The maximum number of pages with the answer that a judge sees; the first of them are shown."""
MAX_KEPT = 64 * 1024 * 1024
"""How many characters of documents are kept in memory; the current document is always kept."""
_NOTHING = (
    "neither the text nor a picture of a page that holds the answer is there: give the PDFs with --documents, or the "
    "pages with --images; or ask with the reference, --profile ours"
)


class Committee(Judged):
    """How well an answer agrees with the document: the mean of the grades (1 to 5) of one or more judges."""

    name: ClassVar[str] = "judge-committee"
    profiles: ClassVar[Mapping[Profile, str]] = {
        "official": "chiayewken/multimodal-docs@ce48d6a",
        "paper": "arXiv:2411.06176",
        "ours": "arXiv:2411.06176",
    }
    is_committee: ClassVar[bool] = True

    def __init__(self, settings: Settings, backoff: Backoff | None = None) -> None:
        """Keep the folders where pages are looked for: the images of the release, and the documents."""
        super().__init__(settings, backoff)
        self._images, self._documents = settings.images, PageTexts(settings.documents)
        judges, usual = len(self.judge.models), SAMPLES[self.profile]
        self.samples = self.judge.samples or usual
        self.temperature = DRAWN if self.samples > 1 else 0.0
        times = "once" if self.samples == 1 else f"{self.samples} times"
        reference = "with the reference" if self.profile == "ours" else "no reference"
        self.choices = (*self.choices, f"each asked {times} at temperature {self.temperature:g}", reference)
        differing = []
        if judges != JUDGES:
            differing.append(f"{judges} judge{'s' if judges > 1 else ''} instead of {JUDGES}")
        if self.samples != usual:
            differing.append(f"{self.samples} sample{'s' if self.samples > 1 else ''} a judge instead of {usual}")
        if differing and self.profile != "ours":
            self.notes = (f"{' and '.join(differing)}, which {self.profile} has",)

    def out_of_scope(self, asked: ScoringInput) -> str:
        """Return why judges without a reference cannot grade an example (no page has the answer); empty if they can."""
        if self.profile == "ours" or (asked.evidence and asked.evidence.pages):
            return ""
        return "no page holds the answer, so that judges without a reference have nothing to compare it with"

    def score(self, asked: ScoringInput) -> Score:
        """Return (mean − 1) / 4; an empty prediction has grade 1, and no judge is called for it."""
        if not asked.prediction.strip():
            return Score(0.0, {"is_empty": True, "mean": 1.0})
        evidence = asked.evidence or Evidence()
        question, answer = fence("question", asked.question), fence("answer", asked.prediction)
        details: dict[str, object]
        if self.profile == "ours":
            page_texts, shown = gold_pages(evidence, self._images)
            reference = [fence("reference", numbered(items_of(asked.answer)))] if asked.answer else []
            pages = [*_caption(shown), *(fence("page", text) for text in page_texts)]
            case = "\n\n".join((*pages, question, *reference, answer))
            details = {"pages": len(shown)}
        else:
            texts, shown = excerpt_of(evidence, self._images, self._documents)
            if any(page not in texts and page not in shown for page in evidence.pages[:MAX_PAGES]):
                return Score(None, failure=_NOTHING)
            pages = [*_caption(shown), *(f"Page {page + 1}:\n{fence('page', text)}" for page, text in texts.items())]
            case = own_prompt("grade_alone")(document="\n\n".join(pages), question=question, answer=answer)
            details = {"pages": len(shown), "page_texts": len(texts)}
        grades: dict[str, list[int]] = {}
        failures: list[str] = []
        for model in self.judge.models:
            for sample in range(self.samples):
                grade = self.client.ask(self._call(model, case, tuple(shown.values()), sample))
                if isinstance(grade, Failed):
                    failures.append(grade.why)
                else:
                    grades.setdefault(model, []).append(grade.score)
        given = [grade for of_judge in grades.values() for grade in of_judge]
        named = "; ".join(dict.fromkeys(failures))[:500]
        if not given:
            return Score(None, details, f"no judge of the committee gave a grade: {named}")
        mean = statistics.fmean(given)
        details |= {"mean": mean, "spread": statistics.pstdev(given)}
        details |= {"grades": len(given), "failed_grades": len(failures)}
        if len(grades) > 1:
            details |= {f"mean of {model}": statistics.fmean(of_judge) for model, of_judge in grades.items()}
        return Score((mean - 1) / 4, {**details, **({"failures": named} if failures else {})})

    def _call(self, model: str, case: str, pictures: tuple[Picture, ...], sample: int) -> Call[Grade]:
        if self.profile == "ours":
            return verdict_call(model, "grade_reasoned", case, Grade, pictures, sample, self.temperature)
        is_literal = self.profile == "official"
        manner = Manner(self.temperature, MAX_TOKENS, is_literal=is_literal and self.samples == 1)
        rule = partial(last_grade, is_literal=is_literal)
        return prompt_call(model, case, f"grade {self.profile}", Grade, rule, manner, pictures, sample)

    def absent(self, asked: ScoringInput) -> Details:
        """Return the detail `mean` of an example without a prediction: the lowest grade."""
        return {"mean": 1.0}


def gold_pages(evidence: Evidence, images: Path | None) -> tuple[list[str], dict[int, Picture]]:
    """Return the pages of the prompt that hold the answer: their pictures by page number, from 0, or, if none has a
    picture, their texts. If only some of the pages have a picture, the other pages are left out.
    """
    answers = set(evidence.pages)
    pages = [page for page in evidence.shown if page in answers][:MAX_PAGES]
    shown = _pictures(evidence, pages, images)
    return [] if shown else [evidence.texts[page] for page in pages if page in evidence.texts], shown


def excerpt_of(
    evidence: Evidence, images: Path | None, documents: "PageTexts"
) -> tuple[dict[int, str], dict[int, Picture]]:
    """Return the pages that hold the answer and their neighbours, as far as they can be found: texts and pictures by
    page number, from 0.

    M-LongDoc shows the texts of these pages, and cut-outs of the tables and figures of the evidence page. A release has
    no cut-outs, so the whole evidence page is shown as a picture. A neighbour without text is shown as a picture too.
    """
    answers = evidence.pages[:MAX_PAGES]
    wanted = sorted({page for answer in answers for page in (answer - 1, answer, answer + 1) if page >= 0})
    missing = [page for page in wanted if page not in evidence.texts]
    read = documents.of(evidence.document) if missing and evidence.document is not None else ()
    known = {**evidence.texts, **{page: read[page] for page in missing if page < len(read)}}
    texts = {page: known[page] for page in wanted if known.get(page, "").strip()}
    pictured = [page for page in wanted if page in answers or page not in texts]
    return texts, _pictures(evidence, pictured, images)


def _pictures(evidence: Evidence, pages: Iterable[int], images: Path | None) -> dict[int, Picture]:
    """Return the pictures of pages that a release has and that can be shown."""
    pictures = {}
    for page in pages:
        path = evidence.images.get(page, "")
        file = file_inside(images, path) if images and path else None
        if file and (picture := picture_of(file)):
            pictures[page] = picture
    return pictures


def _caption(pictures: Iterable[int]) -> list[str]:
    """Return the sentence of the prompt about the pictures, which come before the words; none if there are none."""
    pages = ", ".join(str(page + 1) for page in pictures)
    return [f"The pictures are the document's pages {pages}, in this order."] if pages else []


class PageTexts:
    """The page texts of the PDFs of a folder, by a document's name in a release or its file name; several threads may
    use it.
    """

    def __init__(self, folder: Path | None) -> None:
        """Keep the folder; a document is read when its text is needed."""
        self._folder = folder
        self._guard = threading.Lock()
        self._kept = OrderedDict[str, tuple[str, ...]]()
        self._size = 0

    def of(self, name: str) -> tuple[str, ...]:
        """Return the text of each page; empty for a document that is missing or cannot be read within limits.

        Raises:
            SourceError: the folder cannot be read.
            PageLimitError: a page of the document takes too much time or memory.

        """
        with self._guard:
            if name not in self._kept:
                self._kept[name] = self._read(name)
                self._size += _size(self._kept[name])
                while len(self._kept) > 1 and self._size > MAX_KEPT:
                    self._size -= _size(self._kept.popitem(last=False)[1])
            self._kept.move_to_end(name)
            return self._kept[name]

    def _read(self, name: str) -> tuple[str, ...]:
        path = self._files.get(name)
        if self._folder is None or not isinstance(path, Path):
            return ()
        inside = file_inside(self._folder, path.relative_to(self._folder))
        try:
            return tuple(page.text for page in read_pages(inside, Limits())) if inside else ()
        except PageLimitError as error:
            raise error.in_scores() from error
        except SourceError:
            return ()

    @cached_property
    def _files(self) -> Mapping[str, Path | Fault]:
        """Return every PDF by the name of its file, with and without `.pdf`, and by its name in a release."""
        own = pdfs_by_name(self._folder) if self._folder else {}
        released = folder_names(own)
        return {released[stem]: path for stem, path in own.items()} | {f"{s}.pdf": p for s, p in own.items()} | own


def _size(texts: Sequence[str]) -> int:
    """Return what the texts of a document count in memory: their characters, and a little for each page."""
    return 64 * (1 + len(texts)) + sum(map(len, texts))
