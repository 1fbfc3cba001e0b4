"""Short answers and lists by a judge, as the benchmark's v1.1 protocol scores document questions (`doc_qa_llm`).

0 or 1; for a List the F1 of the items the judge counts. The rubrics are our own words for the public ones.
"""

import json
from typing import Any, ClassVar

from mmlongbench.scoring.judge.calls import Call, fence, listed
from mmlongbench.scoring.judge.client import Failed
from mmlongbench.scoring.judge.judged import Judged, question_of, reason_of, too_long, unscored
from mmlongbench.scoring.judge.verdicts import Covered, Right
from mmlongbench.scoring.metric import Asked, Scored

_SAME = (
    "Two answers are the same if they mean the same without doubt: numbers of equal value however they are written "
    "(1,250 and 1250; a quarter, 0.25 and 25 %; with or without the unit or currency that the question implies), two "
    "names of one thing (Holland in the sense of the Netherlands, an abbreviation and what it stands for), one or many "
    "of a word. A number that is only close, or a notion that is only related, is not the same."
)
_RIGHT = f"""You mark answers to questions about documents. You are given a question, the reference answer, and a \
response. Find the final answer in the response and compare it with the reference; how the response got there does not \
count.

{_SAME}

correct is 1 if the final answer is the reference, whole and with nothing added: every part of a question of several \
parts is right, and no further answer stands beside the right one. Otherwise it is 0. Where the reference says that \
the question cannot be answered, only a response that comes to this is correct. In reason, say in at most three \
sentences what the final answer is and how it compares."""
_COVERED = f"""You mark answers that are lists. You are given a question, the items of the reference list by number, \
and a response. Pick the list out of the response, leaving out whatever is only said around it, then go through the \
reference items one by one.

{_SAME}

items_given is the number of items in the response's list; items_covered is the number of reference items that \
one of them is the same as. In reason, name in a few sentences what you picked and the reference items not there."""


class Answers(Judged):
    """Whether a short answer is right, and how much of a list is there, by a judge."""

    name: ClassVar[str] = "judge-answers"

    def score(self, asked: Asked) -> Scored:
        """1 or 0; the F1 of a list. An empty prediction is wrong without asking."""
        if not asked.prediction.strip():
            return Scored(0.0, {"is_empty": True})
        return self._list(asked) if asked.record.get("answer_format") == "List" else self._answer(asked)

    def _answer(self, asked: Asked) -> Scored:
        case = _case(asked, fence("reference", _text(asked.gold)))
        found = self.client.ask(Call(self.model, _RIGHT, case, Right))
        if isinstance(found, Failed):
            return unscored(found)
        return Scored(float(found.correct), {"reason": reason_of(found.reason)})

    def _list(self, asked: Asked) -> Scored:
        items = items_of(asked.gold)
        reference = listed("reference", items)
        if reference is None:
            return unscored(too_long("items", items))
        case = _case(asked, reference)
        found = self.client.ask(Call(self.model, _COVERED, case, Covered, {"items": len(items)}))
        if isinstance(found, Failed):
            return unscored(found)
        counts = {"items_given": found.items_given, "items_covered": found.items_covered}
        score = list_f1(found.items_covered, found.items_given, len(items))
        return Scored(score, {**counts, "reason": reason_of(found.reason)})


def list_f1(covered: int, given: int, items: int) -> float:
    """The F1 of a list, at most 1: an item of the response may cover several of the reference.

    >>> list_f1(2, 3, 4), list_f1(0, 0, 4), list_f1(2, 1, 2)
    (0.5714285714285714, 0.0, 1.0)
    """
    return min(1.0, 2 * covered / (given + items)) if covered else 0.0


def items_of(gold: Any) -> tuple[str, ...]:  # noqa: ANN401  (a builder's gold: a list, or its JSON)
    """The elements of a list that is a gold answer.

    >>> items_of('["a", 2]'), items_of(["a", 2]), items_of("a")
    (('a', '2'), ('a', '2'), ('a',))
    """
    if isinstance(gold, str):
        try:
            gold = json.loads(gold)
        except (ValueError, RecursionError):
            return (gold,)
    return tuple(_text(item) for item in gold) if isinstance(gold, list | tuple) else (_text(gold),)


def _text(value: Any) -> str:  # noqa: ANN401  (as above)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _case(asked: Asked, reference: str) -> str:
    return "\n\n".join((fence("question", question_of(asked)), reference, fence("response", asked.prediction)))
