"""Questions with contexts, as the shortcut audit reads them."""

from mmlongbench.prompt import Part
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.task.choices import Choices


def unit(role: str, *texts: str, image: str = "") -> ShownUnit:
    """Return a unit with a role; a gold or needle holds the answer."""
    return ShownUnit("", role, texts, (image,) if image else (), is_gold=role in ("gold", "needle"))


def asked(
    id: str,
    question: str = "",
    *units: ShownUnit,
    subject: str = "",
    answers: tuple[str, ...] = (),
    images: tuple[str, ...] = (),
    needles: tuple[Part, ...] = (),
    is_free: bool = True,
) -> AskedQuestion:
    """Return a question; one that is not free offers yes and no."""
    choices = None if is_free else Choices(("Yes", "No"), 0)
    return AskedQuestion(id, "NIAH/x_K8.jsonl", question, subject, answers, choices, images, needles, units)
