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
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, TypeAlias

from mmlongbench.metrics.judge.answers import items_of
from mmlongbench.metrics.judge.calls import Call, Manner, PromptCall, Reading
from mmlongbench.metrics.judge.excerpts import excerpt_of
from mmlongbench.metrics.judge.gold_pages import GoldPages, gold_pages
from mmlongbench.metrics.judge.judged import Judged
from mmlongbench.metrics.judge.page_texts import PageTexts
from mmlongbench.metrics.judge.readings import last_grade
from mmlongbench.metrics.judge.verdicts import Grade
from mmlongbench.metrics.judge.wordings.committee import GRADE_ALONE, REASONED
from mmlongbench.models.calls import ModelCall
from mmlongbench.models.client import Failed
from mmlongbench.models.fences import fence, numbered
from mmlongbench.models.pace import Backoff
from mmlongbench.task.metric import Details, Evidence, Profile, Score, ScoringInput, Settings

JUDGES = 3
"""The number of judges in the paper and in the public code."""
SAMPLES: Mapping[Profile, int] = {"official": 1, "paper": 5, "ours": 1}
"""How often each judge is asked, unless the settings say otherwise."""
DRAWN = 1.0
"""The temperature if each judge is asked several times; if each is asked once, it is 0."""
MAX_TOKENS = 4096
"""The token limit of a grade, including a model's reasoning before it."""
_NO_PAGES = "no page holds the answer, so that judges without a reference have nothing to compare it with"
_Asking: TypeAlias = Callable[[str, int], ModelCall[Grade]]
"""Makes the call to a judge from its name and the number of the sample."""


@dataclass(frozen=True, slots=True)
class _Case:
    """How judges are asked about one example, and details for its score."""

    call: _Asking
    details: Details


class Committee(Judged):
    """How well an answer agrees with the document: the mean of the grades (1 to 5) of one or more judges."""

    name: ClassVar[str] = "judge-committee"
    profiles: ClassVar[Mapping[Profile, str]] = {
        "official": "chiayewken/multimodal-docs@ce48d6a",
        "paper": "arXiv:2411.06176",
        "ours": "arXiv:2411.06176",
    }

    def __init__(self, settings: Settings, backoff: Backoff | None = None) -> None:
        """Keep the folders where pages are looked for: the images of the release, and the documents."""
        super().__init__(settings, backoff)
        self._images, self._documents = settings.images, PageTexts(settings.documents)
        self.samples = self.judge.samples or SAMPLES[self.profile]
        self.temperature = DRAWN if self.samples > 1 else 0.0
        times = "once" if self.samples == 1 else f"{self.samples} times"
        reference = "with the reference" if self.profile == "ours" else "no reference"
        asked = f"each asked {times} at temperature {self.temperature:g}"
        self.choices = (*self.choices, asked, reference)
        self.notes = self._differences()

    def _differences(self) -> tuple[str, ...]:
        """Return a note if the number of judges or of samples differs from the profile's; empty if not."""
        if self.profile == "ours":
            return ()
        judges, samples, usual = len(self.judge.models), self.samples, SAMPLES[self.profile]
        differing = [
            *([f"{judges} judge{'s' if judges > 1 else ''} instead of {JUDGES}"] if judges != JUDGES else []),
            *([f"{samples} sample{'s' if samples > 1 else ''} a judge instead of {usual}"] if samples != usual else []),
        ]
        return (f"{' and '.join(differing)}, which {self.profile} has",) if differing else ()

    @property
    def _asked(self) -> tuple[str, ...]:
        return self.judge.models

    def out_of_scope(self, asked: ScoringInput) -> str:
        """Return why judges without a reference cannot grade an example (no page has the answer); empty if they can."""
        return "" if self.profile == "ours" or (asked.evidence and asked.evidence.pages) else _NO_PAGES

    def score(self, asked: ScoringInput) -> Score:
        """Return (mean − 1) / 4; an empty prediction has grade 1, and no judge is called for it."""
        if not asked.prediction.strip():
            return Score(0.0, {"is_empty": True, "mean": 1.0})
        case = self._reasoned(asked) if self.profile == "ours" else self._alone(asked)
        if isinstance(case, Failed):
            return Score(None, failure=case.why)
        grades: dict[str, list[int]] = {}
        failures: list[str] = []
        for model in self.judge.models:
            for sample in range(self.samples):
                found = self.client.ask(case.call(model, sample))
                if isinstance(found, Failed):
                    failures.append(found.why)
                else:
                    grades.setdefault(model, []).append(found.score)
        return _scored(grades, failures, case.details)

    def absent(self, asked: ScoringInput) -> Details:
        """Return the detail `mean` of an example without a prediction: the lowest grade."""
        return {"mean": 1.0}

    def _alone(self, asked: ScoringInput) -> _Case | Failed:
        """Return how to ask for a grade alone, based on the document; Failed if pages with the answer are missing."""
        excerpt = excerpt_of(asked.evidence or Evidence(), self._images, self._documents)
        if not excerpt.is_enough:
            return Failed(
                "neither the text nor a picture of a page that holds the answer is there: give the PDFs with "
                "--documents, or the pages with --images; or ask with the reference, --profile ours"
            )
        said = {"question": fence("question", asked.question), "answer": fence("answer", asked.prediction)}
        prompt = GRADE_ALONE.filled(document=excerpt.shown, **said)
        is_literal = self.profile == "official"
        manner = Manner(self.temperature, MAX_TOKENS, is_literal=is_literal and self.samples == 1)
        reading = Reading(f"grade {self.profile}", Grade, partial(last_grade, is_literal=is_literal))
        pictures = tuple(excerpt.pictures.values())

        def call(model: str, sample: int) -> PromptCall[Grade]:
            return PromptCall(model, prompt, reading, manner, pictures, sample)

        return _Case(call, {"pages": len(pictures), "page_texts": len(excerpt.texts)})

    def _reasoned(self, asked: ScoringInput) -> _Case:
        """Return how to ask for reasons and a grade, based on the reference and the pages that hold the answer."""
        pages = gold_pages(asked.evidence or Evidence(), self._images)
        case = _case(asked, pages)

        def call(model: str, sample: int) -> Call[Grade]:
            return Call(model, REASONED, case, Grade, pages.pictures, sample, self.temperature)

        return _Case(call, {"pages": len(pages.pictures)})


def _case(asked: ScoringInput, pages: GoldPages) -> str:
    shown = [pages.caption] if pages.caption else []
    texts = [fence("page", text) for text in pages.texts]
    reference = [fence("reference", numbered(items_of(asked.gold)))] if asked.gold else []
    said = [fence("question", asked.question), *reference, fence("answer", asked.prediction)]
    return "\n\n".join((*shown, *texts, *said))


def _scored(grades: Mapping[str, list[int]], failures: list[str], details: Mapping[str, object]) -> Score:
    given = [grade for found in grades.values() for grade in found]
    named = "; ".join(dict.fromkeys(failures))[:500]
    if not given:
        return Score(None, details, f"no judge of the committee gave a grade: {named}")
    members = (
        {f"mean of {model}": statistics.fmean(found) for model, found in grades.items()} if len(grades) > 1 else {}
    )
    mean, spread = statistics.fmean(given), statistics.pstdev(given)
    failed = {"failures": named} if failures else {}
    counts = {"mean": mean, "spread": spread, "grades": len(given), "failed_grades": len(failures)}
    return Score((mean - 1) / 4, {**details, **counts, **members, **failed})
