"""Scores summaries by fluency × F1, from the recall of the gold's key points and the precision of the sentences.

The structure is the public code's (`scripts/eval_gpt4_summ.py`), with three calls for each example. In one, the judge
decides on fluency (0 or 1). In another, it counts the key points that the summary contains; in the third, all sentences
of the summary and those that the gold summary supports. The score is the F1 of recall and precision, times fluency.
`official` uses the public code's own prompts and accepts what that code accepts, even a recall above 1. `ours` uses
this project's prompts and refuses impossible counts.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from mmlongbench.metrics.benchmark.metrics import PUBLIC_CODE
from mmlongbench.metrics.judge.calls import Manner, PromptCall, Reading
from mmlongbench.metrics.judge.claims import GoldClaims, claims_files
from mmlongbench.metrics.judge.judged import MAX_CHARACTERS, Judged, too_long, unscored
from mmlongbench.metrics.judge.public_prompts import Places
from mmlongbench.metrics.judge.readings import fluency_of, key_points_of, sentences_of
from mmlongbench.metrics.judge.templates import Template
from mmlongbench.metrics.judge.verdicts import Fluency, KeyPoints, Sentences, V
from mmlongbench.metrics.judge.wordings import case, report
from mmlongbench.models.client import Failed
from mmlongbench.models.fences import encodable, fence, numbered
from mmlongbench.models.pace import Backoff
from mmlongbench.task.metric import Details, MetricWithTotals, Profile, Score, ScoringInput, Settings

PREFIX = "Summary:"
"""The prompt's last word, which models repeat; the public scorer removes it too."""
TEMPERATURE, MAX_TOKENS, TRIES = 0.1, 4096, 10
"""The options of the public code."""
FIGURES = {"recall": "recall", "precision": "precision", "fluency": "fluency", "f1": "f1", "flu-f1": "flu_f1"}
"""The figures that the public code reports, each with the name of a detail. A figure is the mean of its detail
over the examples with scores."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """The three questions about a summary."""

    fluency: Template
    recall: Template
    precision: Template


OWN = {
    "report": Prompts(report.FLUENCY, report.RECALL, report.PRECISION),
    "case": Prompts(case.FLUENCY, case.RECALL, case.PRECISION),
}
"""The prompts by the kind of example; examples of any other kind use those of a case, as in the public code."""
_SUFFIXES = {"report": "gov", "case": "lexsum"}
"""The endings of the names of the public code's prompts, by the kind of example."""


class FluencyF1(Judged, MetricWithTotals):
    """Fluency × F1 of a summary, by a judge.

    The judge counts the key points of the gold summary that the summary contains, and the sentences of the summary that
    the gold summary supports.
    """

    name: ClassVar[str] = "judge-fluency-f1"
    profiles: ClassVar[Mapping[Profile, str]] = {"official": PUBLIC_CODE, "ours": PUBLIC_CODE}
    prompts_file: ClassVar[str] = "scripts/eval_gpt4_summ.py"
    public_model: ClassVar[str] = "gpt-4o-2024-11-20"
    places: ClassVar[Places] = {
        f"{call}_prompt_{suffix}": places
        for suffix in _SUFFIXES.values()
        for call, places in (
            ("fluency", ("text",)),
            ("recall", ("keypoints", "summary")),
            ("precision", ("expert_summary", "summary")),
        )
    }

    def __init__(self, settings: Settings, backoff: Backoff | None = None) -> None:
        """Use the claims that are released with the data, if there are any."""
        super().__init__(settings, backoff)
        self._claims = GoldClaims(self.client, settings.data)
        files = claims_files(settings.data)
        self.choices = (*self.choices, f"claims of {', '.join(files)}" if files else "claims by the judge")
        self._manner = Manner(TEMPERATURE, MAX_TOKENS, TRIES, is_literal=self.public is not None)

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1; an empty prediction scores 0, and no judge is called for it."""
        summary = encodable(asked.prediction).strip().removeprefix(PREFIX).strip()
        gold = encodable(str(asked.gold))
        if not summary:
            return Score(0.0, {"is_empty": True, **self.absent(asked)})
        if longest := [text for text in (summary, gold) if len(text) > MAX_CHARACTERS]:
            return unscored(too_long("summaries" if len(longest) > 1 else "summary", longest))
        prompts = self._prompts(asked.kind)
        claims = self._claims_of(asked, gold)
        fluent = self._ask(prompts.fluency, "fluency", Fluency, fluency_of, text=self._shown("text", summary))
        recalled = claims if isinstance(claims, Failed) else self._recalled(prompts.recall, claims, summary)
        shown = {"expert_summary": self._shown("expert", gold), "summary": self._shown("summary", summary)}
        precise = self._ask(prompts.precision, "precision", Sentences, sentences_of, **shown)
        match claims, fluent, recalled, precise:  # all calls are made, because answers are kept for the next run
            case tuple(), Fluency(), KeyPoints(), Sentences():
                return scored(fluent, recalled, len(claims), precise)
        return unscored(next(found for found in (claims, fluent, recalled, precise) if isinstance(found, Failed)))

    def absent(self, asked: ScoringInput) -> Details:
        """Return the figures of an example without a prediction: zeros, which count in the means."""
        return dict.fromkeys(FIGURES.values(), 0.0)

    @classmethod
    def totals(cls, scored: Sequence[Score]) -> Mapping[str, float]:
        """Return the means that the public code reports; examples without a usable reply are left out."""
        lines = [each.details for each in scored if each.score is not None and "flu_f1" in each.details]
        return {name: statistics.fmean(line[key] for line in lines) for name, key in FIGURES.items()} if lines else {}

    def _prompts(self, kind: str) -> Prompts:
        known = kind if kind in OWN else "case"
        if not self.public:
            return OWN[known]
        suffix, found = _SUFFIXES[known], self.public.templates
        return Prompts(*(found[f"{call}_prompt_{suffix}"] for call in ("fluency", "recall", "precision")))

    def _shown(self, name: str, text: str) -> str:
        """Return a text as a prompt shows it: unchanged in the public code's prompts, fenced in this project's."""
        return text if self.public else fence(name, text, MAX_CHARACTERS)

    def _claims_of(self, asked: ScoringInput, gold: str) -> tuple[str, ...] | Failed:
        """Return the key points; under `official` only released ones, as in the public code."""
        if self.public:
            return self._claims.released(asked.file, asked.dataset, asked.id, asked.source_id)
        return self._claims.of(asked.file, asked.dataset, asked.id, gold, asked.source_id)

    def _recalled(self, prompt: Template, claims: tuple[str, ...], summary: str) -> KeyPoints | Failed:
        plain = "\n".join(f"{number}. {encodable(claim)}" for number, claim in enumerate(claims, 1))
        points = plain if self.public else numbered(claims)
        if len(points) > MAX_CHARACTERS:
            return too_long("claims", claims)
        rule = partial(key_points_of, claims=len(claims))
        shown = {"keypoints": self._shown("key-points", points), "summary": self._shown("summary", summary)}
        return self._ask(prompt, "recall", KeyPoints, rule, **shown)

    def _ask(self, prompt: Template, name: str, verdict: type[V], rule: Any, **texts: str) -> V | Failed:  # noqa: ANN401
        """Ask one question. `rule` reads the reply: it is called with the text of the reply and `is_literal`."""
        is_literal = self._manner.is_literal
        reading = Reading(f"{name} {'literal' if is_literal else 'own'}", verdict, partial(rule, is_literal=is_literal))
        return self.client.ask(PromptCall(self.model, prompt.filled(**texts), reading, self._manner))


def scored(fluent: Fluency, recalled: KeyPoints, claims: int, precise: Sentences) -> Score:
    """Return the score from the judge's counts: the F1 of recall and precision, times fluency.

    Recall or precision may be above 1 if a judge counts more than there is. The score is cut to 1; its details have the
    figures of the public code, which are not cut.

    >>> precise = Sentences(precision=2, sentence_count=4)
    >>> scored(Fluency(fluency=1), KeyPoints(recall=1), 4, precise).details["f1"]
    0.3333333333333333
    """
    recall = recalled.recall / claims if claims else 0.0
    precision = precise.precision / precise.sentence_count if precise.sentence_count else 0.0
    f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0.0
    flu_f1 = fluent.fluency * f1
    details: dict[str, Any] = {"fluency": fluent.fluency, "recall": recall, "precision": precision, "f1": f1}
    counts = {"claims": claims, "claims_found": recalled.recall, "sentences": precise.sentence_count}
    said = {"recall_reason": recalled.reason, "precision_reason": precise.reason}
    points = {"supported_key_points": list(recalled.supported_key_points)} if recalled.supported_key_points else {}
    found = {"sentences_supported": precise.precision, **points, **said}
    return Score(min(1.0, flu_f1), {**details, "flu_f1": flu_f1, **counts, **found})
