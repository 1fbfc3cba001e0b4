"""The prompts of document questions, as public loaders write them (paper, appendix B)."""

import mmlongbench.task as mt
from builders.common import pages

_ASK = (
    "Answer the question as concisely as you can, using a single phrase or sentence if possible. If the question "
    "cannot be answered based on the information in the article, write 'Not answerable.' Write your answer in the "
    "following format:\nAnswer: [answer]\n\n"
)
INSTRUCTION = f"You are given a document with text and images, and a question. {_ASK}"
TEXT_INSTRUCTION = f"You are given a document, and a question. {_ASK}"
_LABELS = {"none": "", "index": " (page {0})", "printed": " (page {1})"}


def page_unit(path: str, index: int, label: str, role: mt.Role) -> mt.Unit:
    """Return a page as an image, after the line that names its document; `index` counts from 0."""
    return pages.page_unit(path, index, role, (0, index), _LABELS[label].format(index, index + 1))


def question_parts(document: str, question: str) -> tuple[mt.Part, ...]:
    """Return the text after the pages."""
    asked = f"Based on Document {mt.label(document)}, answer the following question. {question}"
    return (f"\n\nQuestion: {asked}\nAnswer:",)
