"""Scores answers to questions about documents with a judge.

`Answers` is like the benchmark's v1.1 protocol (`doc_qa_llm`): the score is 0 or 1, and for a list the F1 of the items
that the judge counts. `official` uses the public code's own prompts and treats replies as that code does: a reply
without a verdict counts as 0. `ours` uses this project's prompts; a judge that replies without a verdict is asked
again, and if no reply has a verdict, there is no score.

`Extracted` is MMLongBench-Doc's protocol: a judge extracts the answer from a response, and rules score it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar

from mmlongbench.answers import after_prefix
from mmlongbench.documents.names import label
from mmlongbench.metrics.benchmark.metrics import ANSWER as ANSWER_PREFIX
from mmlongbench.metrics.benchmark.metrics import PUBLIC_CODE
from mmlongbench.metrics.judge.judged import (
    MAX_CHARACTERS,
    Judged,
    Manner,
    prompt_call,
    too_long,
    unscored,
    verdict_call,
)
from mmlongbench.metrics.judge.prompts import Places, own_prompt
from mmlongbench.metrics.judge.verdicts import (
    Extract,
    ListCounts,
    Mark,
    V,
    counts_of,
    mark_of,
    public_counts_of,
    public_mark_of,
)
from mmlongbench.metrics.mmlongbench_doc.metrics import PROTOCOL
from mmlongbench.models.calls import MAX_SHOWN, encodable, fence, numbered
from mmlongbench.models.client import Failed
from mmlongbench.task.metric import Details, MetricWithTotals, Profile, Score, ScoringInput

_CASE = ("question", "reference", "prediction")
_PUBLIC = Manner(temperature=None, max_tokens=256, is_literal=True)
"""The options with which the public code asks about answers; it sends no temperature."""
_OWN = Manner(temperature=0.0, max_tokens=4096)


class Answers(Judged):
    """A judge decides whether a short answer is right, or how much of a list it contains."""

    name: ClassVar[str] = "judge-answers"
    profiles: ClassVar[Mapping[Profile, str]] = {"official": PUBLIC_CODE, "ours": PUBLIC_CODE}
    prompts_file: ClassVar[str] = "utils_prompt.py"
    public_model: ClassVar[str] = "Doubao-Seed-1.8"
    places: ClassVar[Places] = {
        "DOC_QA_JUDGE_PROMPT": None,
        "CURRENT_CASE_PROMPT": _CASE,
        "DOC_QA_LIST_F1_JUDGE_PROMPT": None,
        "CURRENT_LIST_CASE_PROMPT": _CASE,
    }

    def score(self, asked: ScoringInput) -> Score:
        """Return 1 or 0, or the F1 of a list. An empty prediction is wrong; no judge is called for it."""
        if not asked.prediction.strip():
            return Score(0.0, {"is_empty": True})
        if asked.answer_format == "List":
            return self._list(asked)
        if self.public:
            prompts = ("DOC_QA_JUDGE_PROMPT", "CURRENT_CASE_PROMPT")
            mark = self._ask_publicly(asked, *prompts, "public mark", Mark, public_mark_of)
        else:
            mark = self._ask(asked, "answer", fence("reference", text_of(asked.answer)), "mark", Mark, mark_of)
        if isinstance(mark, Failed):
            return unscored(mark)
        return Score(mark.score, {"reason": mark.reason, **self._unsaid(mark)})

    def _list(self, asked: ScoringInput) -> Score:
        items = items_of(asked.answer)
        if not items:
            return Score(None, failure="the list of the reference answer is empty")
        shown = numbered(items)
        counts: ListCounts | Failed
        if self.public:
            prompts = ("DOC_QA_LIST_F1_JUDGE_PROMPT", "CURRENT_LIST_CASE_PROMPT")
            counts = self._ask_publicly(asked, *prompts, "public counts", ListCounts, public_counts_of)
        elif len(shown) > MAX_SHOWN:
            counts = too_long("items", items)
        else:
            rule = partial(counts_of, items=len(items))
            counts = self._ask(asked, "list", fence("reference", shown), "counts", ListCounts, rule)
        if isinstance(counts, Failed):
            return unscored(counts)
        details = {"items_given": counts.student_answer_count, "items_covered": counts.covered_count}
        # at most 1, even if an item of the response covers several items of the reference
        whole = counts.student_answer_count + len(items)
        score = min(1.0, 2 * counts.covered_count / whole) if counts.covered_count else 0.0
        return Score(score, {**details, "reason": counts.reason, **self._unsaid(counts)})

    def _ask(
        self, asked: ScoringInput, wording: str, reference: str, rule: str, form: type[V], find: Callable[[str], V]
    ) -> V | Failed:
        question, response = fence("question", asked.question), fence("response", asked.prediction)
        prompt = own_prompt(wording)(question=question, reference=reference, response=response)
        return self.client.ask(prompt_call(self.model, prompt, rule, form, find, _OWN))

    def _ask_publicly(
        self, asked: ScoringInput, rubric: str, case: str, rule: str, form: type[V], find: Callable[[str], V]
    ) -> V | Failed:
        """Ask as the public code does. The prompt has the question in the form of that code's loader, with the
        document's short name, and the part of the response after "Answer:".
        """
        templates = self.public.templates if self.public else {}
        question = asked.question
        if asked.evidence is not None and asked.evidence.document is not None:
            question = f"Based on Document {label(asked.evidence.document)}, answer the following question. {question}"
        said = after_prefix((asked.lead or ANSWER_PREFIX) + asked.prediction, ANSWER_PREFIX)
        texts = {"question": question, "reference": text_of(asked.answer), "prediction": said}
        if sum(map(len, texts.values())) > MAX_CHARACTERS:
            return too_long("texts", tuple(texts.values()))
        shown = {name: encodable(text) for name, text in texts.items()}
        prompt = templates[rubric].filled() + templates[case].filled(**shown)
        return self.client.ask(prompt_call(self.model, prompt, rule, form, find, _PUBLIC))

    def _unsaid(self, verdict: Mark | ListCounts) -> dict[str, bool]:
        """Return the detail `no_verdict`: whether the reply has no verdict and counts as 0. Only `official` has it."""
        return {"no_verdict": not verdict.has_verdict} if self.public else {}


class Extracted(Judged, MetricWithTotals):
    """Scores the answer that a judge extracts from a response, by MMLongBench-Doc's rules."""

    name: ClassVar[str] = "judge-mmlongbench-doc"
    profiles: ClassVar[Mapping[Profile, str]] = {"ours": PROTOCOL}

    def score(self, asked: ScoringInput) -> Score:
        """Return the score by the rules for the gold answer's format.

        An empty prediction counts as "Fail to answer", and no judge is called for it.
        """
        from mmlongbench.metrics.mmlongbench_doc import FAIL_TO_ANSWER, scored_extracted

        if not asked.prediction.strip():
            return scored_extracted(asked, FAIL_TO_ANSWER)
        case = f"{fence('question', asked.question)}\n\n{fence('response', asked.prediction)}"
        extract = self.client.ask(verdict_call(self.model, "extract", case, Extract))
        return unscored(extract) if isinstance(extract, Failed) else scored_extracted(asked, extract.text)

    def absent(self, asked: ScoringInput) -> Details:
        """Return the details of an example without a prediction (see `absent_details`)."""
        from mmlongbench.metrics.mmlongbench_doc import absent_details

        return absent_details(asked)

    @classmethod
    def totals(cls, scored: Sequence[Score]) -> Mapping[str, float]:
        """Return generalized accuracy and F1."""
        from mmlongbench.metrics.mmlongbench_doc import totals_of_extracted

        return totals_of_extracted(scored)


def items_of(gold: object) -> tuple[str, ...]:
    """Return the elements of a gold answer that is a list or the JSON of a list; any other answer is one element.

    >>> items_of('["a", 2]'), items_of(["a", 2]), items_of("a")
    (('a', '2'), ('a', '2'), ('a',))
    """
    value = gold
    if isinstance(gold, str):
        try:
            value = json.loads(gold)
        except (ValueError, RecursionError):
            return (gold,)
    return tuple(text_of(item) for item in value) if isinstance(value, list | tuple) else (text_of(value),)


def text_of(value: object) -> str:
    """Return a gold answer as text: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
