"""The stage `checklist`: M-LongDoc's four items, each with a verdict and a reason, by a model of another family.

The paper asked the author itself, and people still rejected 19 % of what it let pass.
"""

from mmlongbench.questions.writing.asking import NoAnswer, Request
from mmlongbench.questions.writing.context import Context, passed, rejected
from mmlongbench.questions.writing.forms import Checklist
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.wordings import answered, checklist

ITEMS = (
    ("checklist-type", "has_the_type", "type_reason"),
    ("checklist-need", "needs_the_content", "need_reason"),
    ("checklist-clear", "is_clear_and_answerable", "clear_reason"),
    ("checklist-difficulty", "is_of_reasonable_difficulty", "difficulty_reason"),
)
"""The reason of a rejection, the verdict, and the model's reason, in the order of the paper."""
_READERS = 2
"""How many models are asked until one gives four verdicts."""


def check(candidate: Candidate, context: Context) -> Judged:
    """Return the first item that a question fails; without four verdicts it never passes."""
    pages = sorted({*candidate.about, *candidate.pages})
    shown = context.library.shown(candidate.doc, pages)
    failure = NoAnswer("invalid-reply", "no model of another family")
    for model in context.readers(candidate, "checklist")[:_READERS]:
        request = Request("checklist", model, checklist(candidate.kind), answered(candidate), Checklist, shown)
        found = context.ask(request)
        if isinstance(found, NoAnswer):
            failure = found
            continue
        for reason, verdict, why in ITEMS:
            if not getattr(found, verdict):
                return rejected(candidate.slot, reason, f"{model}: {getattr(found, why)}")
        return passed(candidate, f"{model}: all four items hold")
    return rejected(candidate.slot, failure.reason, f"the checklist has no verdict: {failure.detail}")
