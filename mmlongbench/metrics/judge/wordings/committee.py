"""The prompts for a committee that grades an answer: with a reference and reasons, or for a grade alone."""

from mmlongbench.metrics.judge.calls import MATERIAL
from mmlongbench.metrics.judge.templates import template

REASONED = """You grade an answer to a question about a document, with the pages before you that hold what is asked \
for, where there are any, and with a reference answer, where there is one. Only correctness counts: whether what is \
said is so, and whether it is all that the question asks for. Length, style and confidence do not count.

score is
5: correct and complete, nothing wrong in it;
4: correct in all that matters, a detail missing or not exact;
3: about half of it right, or right with an error or gap that matters;
2: mostly wrong or missing, with something right in it;
1: wrong, about something else, or no answer. A question that the pages do not answer deserves an answer that says so.

In reason, compare the answer with the pages and the reference in a few sentences, before you give the score."""

_GRADE_ALONE = (
    """{document}

Your task is to grade an answer to a question about the document that is shown above, in part. You have no reference \
answer: the document decides.

What counts is correctness: whether all that the answer says is so, by the document, and whether it is all that the \
question asks for. Length, style and confidence do not count.

The grades:
1: wrong, about something else, or no answer;
2: mostly wrong or missing, with something right in it;
3: about half of it right, or right with an error or gap that matters;
4: correct in all that matters, a detail missing or not exact;
5: correct and complete, nothing wrong in it.

How to go about it:
1. Read the question, and find in the document what it asks for.
2. Read the answer.
3. Compare what it says with the document, and note what is missing in it.
4. Choose the grade.

"""
    + MATERIAL
    + """

{question}

{answer}

Reply with the grade alone, a number from 1 to 5."""
)

GRADE_ALONE = template(_GRADE_ALONE, ("document", "question", "answer"))
