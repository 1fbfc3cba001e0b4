"""Scores short answers and lists with a judge, like the benchmark's v1.1 protocol for document questions
(`doc_qa_llm`).

The score is 0 or 1, and for a list the F1 of the items that the judge counts. `official` uses the public code's own
prompts and treats replies as that code does: a reply without a verdict counts as 0. `ours` uses this project's prompts;
a judge that replies without a verdict is asked again, and if no reply has a verdict, there is no score.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import ClassVar

from mmlongbench.answers import after_prefix
from mmlongbench.documents.names import label
from mmlongbench.metrics.benchmark.metrics import ANSWER as ANSWER_PREFIX
from mmlongbench.metrics.benchmark.metrics import PUBLIC_CODE
from mmlongbench.metrics.judge.calls import Manner, PromptCall, Reading
from mmlongbench.metrics.judge.judged import MAX_CHARACTERS, Judged, too_long, unscored
from mmlongbench.metrics.judge.public_prompts import Places
from mmlongbench.metrics.judge.readings import counts_of, mark_of, public_counts_of, public_mark_of
from mmlongbench.metrics.judge.verdicts import ListCounts, Mark, V
from mmlongbench.metrics.judge.wordings.answers import ANSWER, LIST
from mmlongbench.models.client import Failed
from mmlongbench.models.fences import encodable, fence, listed
from mmlongbench.task.metric import Profile, Score, ScoringInput

_CASE = ("question", "reference", "prediction")
_PUBLIC = Manner(temperature=None, max_tokens=256, is_literal=True)
"""The options with which the public code asks about answers; it sends no temperature."""
_OWN = Manner(temperature=0.0, max_tokens=4096)
_PUBLIC_MARK = Reading("public mark", Mark, public_mark_of)
_PUBLIC_COUNTS = Reading("public counts", ListCounts, public_counts_of)
_MARK = Reading("mark", Mark, mark_of)


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
        if asked.answer_format != "List":
            return self._answer(asked)
        items = items_of(asked.gold)
        return self._list(asked, items) if items else Score(None, failure="the list of the reference answer is empty")

    def _answer(self, asked: ScoringInput) -> Score:
        if self.public:
            found = self._ask_publicly(asked, "DOC_QA_JUDGE_PROMPT", "CURRENT_CASE_PROMPT", _PUBLIC_MARK)
        else:
            prompt = ANSWER.filled(**_fenced(asked, fence("reference", text_of(asked.gold))))
            found = self.client.ask(PromptCall(self.model, prompt, _MARK, _OWN))
        if isinstance(found, Failed):
            return unscored(found)
        return Score(found.score, {"reason": found.reason, **self._unsaid(found)})

    def _list(self, asked: ScoringInput, items: tuple[str, ...]) -> Score:
        found: ListCounts | Failed
        if self.public:
            found = self._ask_publicly(asked, "DOC_QA_LIST_F1_JUDGE_PROMPT", "CURRENT_LIST_CASE_PROMPT", _PUBLIC_COUNTS)
        elif (reference := listed("reference", items)) is None:
            found = too_long("items", items)
        else:
            reading = Reading("counts", ListCounts, partial(counts_of, items=len(items)))
            found = self.client.ask(PromptCall(self.model, LIST.filled(**_fenced(asked, reference)), reading, _OWN))
        if isinstance(found, Failed):
            return unscored(found)
        counts = {"items_given": found.student_answer_count, "items_covered": found.covered_count}
        score = list_f1(found.covered_count, found.student_answer_count, len(items))
        return Score(score, {**counts, "reason": found.reason, **self._unsaid(found)})

    def _ask_publicly(self, asked: ScoringInput, rubric: str, case: str, reading: Reading[V]) -> V | Failed:
        """Ask as the public code does. The prompt has the question in the form of that code's loader, and the part of
        the response after "Answer:".
        """
        found = self.public.templates if self.public else {}
        said = after_prefix((asked.lead or ANSWER_PREFIX) + asked.prediction, ANSWER_PREFIX)
        texts = {"question": _public_question(asked), "reference": text_of(asked.gold), "prediction": said}
        if sum(map(len, texts.values())) > MAX_CHARACTERS:
            return too_long("texts", tuple(texts.values()))
        shown = {name: encodable(text) for name, text in texts.items()}
        return self.client.ask(
            PromptCall(self.model, found[rubric].filled() + found[case].filled(**shown), reading, _PUBLIC)
        )

    def _unsaid(self, found: Mark | ListCounts) -> dict[str, bool]:
        """Return the detail `no_verdict`: whether the reply has no verdict and counts as 0. Only `official` has it."""
        return {"no_verdict": not found.has_verdict} if self.public else {}


def list_f1(covered: float, given: float, items: int) -> float:
    """Return the F1 of a list, at most 1, even if an item of the response covers several items of the reference.

    >>> list_f1(2, 3, 4), list_f1(0, 0, 4), list_f1(2, 1, 2)
    (0.5714285714285714, 0.0, 1.0)
    """
    return min(1.0, 2 * covered / (given + items)) if covered else 0.0


def items_of(gold: object) -> tuple[str, ...]:
    """Return the elements of a gold answer that is a list or the JSON of a list; any other answer is one element.

    >>> items_of('["a", 2]'), items_of(["a", 2]), items_of("a")
    (('a', '2'), ('a', '2'), ('a',))
    """
    found = gold
    if isinstance(gold, str):
        try:
            found = json.loads(gold)
        except (ValueError, RecursionError):
            return (gold,)
    return tuple(text_of(item) for item in found) if isinstance(found, list | tuple) else (text_of(found),)


def text_of(value: object) -> str:
    """Return a gold answer as text: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _fenced(asked: ScoringInput, reference: str) -> dict[str, str]:
    question, response = fence("question", asked.question), fence("response", asked.prediction)
    return {"question": question, "reference": reference, "response": response}


def _public_question(asked: ScoringInput) -> str:
    """Return the question in the form of the public code's loader, with the document's short name (see `label`)."""
    if asked.evidence is None or asked.evidence.document is None:
        return asked.question
    return f"Based on Document {label(asked.evidence.document)}, answer the following question. {asked.question}"
