"""MMLongBench-Doc's protocol with a judge: the judge extracts the answer from a response, and rules score it.

The formats, "Not answerable" and "Fail to answer" come from the paper of the protocol (arXiv:2407.01523); the rubric is
this project's.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from mmlongbench.metrics.judge.calls import Call
from mmlongbench.metrics.judge.judged import Judged, unscored
from mmlongbench.metrics.judge.verdicts import Extract
from mmlongbench.metrics.mmlongbench_doc.metrics import PROTOCOL
from mmlongbench.models.client import Failed
from mmlongbench.models.fences import fence
from mmlongbench.task.metric import Details, MetricWithTotals, Profile, Score, ScoringInput

_RUBRIC = """You take the answer out of a response to a question about a document, without judging it. You do not \
know the document; answer nothing yourself and correct nothing.

format is what the answer is: Integer, Float, String or List. answer holds its text, as short as it can be: a number \
without the sentence around it, a name, a phrase; of a List, each element as a text of its own, in the order of the \
response; of all other formats, one text.
If the response comes to the conclusion that the document does not answer the question, format is "Not answerable" \
and answer is empty. If it only says that it cannot see, open or read the pages, format is "Fail to answer" and \
answer is empty."""


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
        found = self.client.ask(Call(self.model, _RUBRIC, case, Extract))
        return unscored(found) if isinstance(found, Failed) else scored_extracted(asked, found.text)

    def absent(self, asked: ScoringInput) -> Details:
        """Return the details of an example without a prediction (see `absent_details`)."""
        from mmlongbench.metrics.mmlongbench_doc import absent_details

        return absent_details(asked)

    @classmethod
    def totals(cls, scored: Sequence[Score]) -> Mapping[str, float]:
        """Return generalized accuracy and F1."""
        from mmlongbench.metrics.mmlongbench_doc import totals_of_extracted

        return totals_of_extracted(scored)
