"""Open answers by a committee: judges who see the gold pages grade from 1 to 5, each several times (M-LongDoc).

The score is the mean of all grades, from 0 to 1. Judges who give no usable answer are left out, counted and named.
"""

import statistics
from collections.abc import Mapping
from typing import Any, ClassVar

from mmlongbench.scoring.judge.answers import items_of
from mmlongbench.scoring.judge.calls import Call, fence, numbered
from mmlongbench.scoring.judge.client import Failed
from mmlongbench.scoring.judge.gold_pages import GoldPages, gold_pages
from mmlongbench.scoring.judge.judged import Judged, question_of
from mmlongbench.scoring.judge.pace import Waits
from mmlongbench.scoring.judge.verdicts import Grade
from mmlongbench.scoring.metric import Asked, Profile, Scored, Settings

_RUBRIC = """You grade an answer to a question about a document, with the pages before you that hold what is asked \
for, where there are any, and with a reference answer, where there is one. Only correctness counts: whether what is \
said is so, and whether it is all that the question asks for. Length, style and confidence do not count.

score is
5: correct and complete, nothing wrong in it;
4: correct in all that matters, a detail missing or not exact;
3: about half of it right, or right with an error or gap that matters;
2: mostly wrong or missing, with something right in it;
1: wrong, about something else, or no answer. A question that the pages do not answer deserves an answer that says so.

In reason, compare the answer with the pages and the reference in a few sentences, before you give the score."""


class Committee(Judged):
    """Correctness from 1 to 5 against the gold pages, by several judges and several times, as their mean."""

    name: ClassVar[str] = "judge-committee"
    profiles: ClassVar[Mapping[Profile, str]] = {"ours": "arXiv:2411.06176"}

    def __init__(self, settings: Settings, waits: Waits | None = None) -> None:
        """Pages are looked for among the release's images."""
        super().__init__(settings, waits)
        self._images = settings.images

    def score(self, asked: Asked) -> Scored:
        """(mean − 1) / 4; an empty prediction is graded 1 without asking."""
        if not asked.prediction.strip():
            return Scored(0.0, {"is_empty": True, "mean": 1.0})
        pages = gold_pages(asked.record, self._images)
        case = _case(asked, pages)
        grades: dict[str, list[int]] = {}
        failures: list[str] = []
        for model in self.judge.models:
            for sample in range((self.judge.samples or 1)):
                found = self.client.ask(self._call(model, case, pages, sample))
                if isinstance(found, Failed):
                    failures.append(found.why)
                else:
                    grades.setdefault(model, []).append(found.score)
        return _scored(grades, failures, {"pages": len(pages.pictures)})

    def _call(self, model: str, case: str, pages: GoldPages, sample: int) -> Call[Grade]:
        """Several samples are drawn at temperature 1; one alone is the likeliest."""
        temperature = 1.0 if (self.judge.samples or 1) > 1 else 0.0
        return Call(model, _RUBRIC, case, Grade, pictures=pages.pictures, sample=sample, temperature=temperature)


def _case(asked: Asked, pages: GoldPages) -> str:
    shown = [pages.caption] if pages.caption else []
    texts = [fence("page", text) for text in pages.texts]
    reference = [fence("reference", numbered(items_of(asked.gold)))] if asked.gold else []
    said = [fence("question", question_of(asked)), *reference, fence("answer", asked.prediction)]
    return "\n\n".join((*shown, *texts, *said))


def _scored(grades: Mapping[str, list[int]], failures: list[str], details: Mapping[str, Any]) -> Scored:
    given = [grade for found in grades.values() for grade in found]
    named = "; ".join(dict.fromkeys(failures))[:500]
    if not given:
        return Scored(None, details, f"no judge of the committee gave a grade: {named}")
    members = (
        {f"mean of {model}": statistics.fmean(found) for model, found in grades.items()} if len(grades) > 1 else {}
    )
    mean, spread = statistics.fmean(given), statistics.pstdev(given)
    failed = {"failures": named} if failures else {}
    counts = {"mean": mean, "spread": spread, "grades": len(given), "failed_grades": len(failures)}
    return Scored((mean - 1) / 4, {**details, **counts, **members, **failed})
