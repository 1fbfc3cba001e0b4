"""Questions with contexts, as the shortcut audit reads them, and what its probes find in them."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mmlongbench.prompt import Part
from mmlongbench.shortcuts.findings import Finding, Measured, judge
from mmlongbench.shortcuts.image_features import ImageFacts
from mmlongbench.shortcuts.learners import Group, find_golds
from mmlongbench.shortcuts.probes import Kept, measure
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.task.builder import Choices


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


def judged(*measured: Measured | None) -> Finding:
    """Return the finding of the first of some probes of a release."""
    known = [each for each in measured if each is not None]
    assert len(known) == len(measured)
    return judge([(f"set {number}", "file", each) for number, each in enumerate(known)])[0][0]


def golds(groups: Sequence[Group], *names: str) -> Measured:
    """Measure how well features tell gold."""
    measured = find_golds("gold from files", names, groups)
    assert measured is not None
    return measured


def found(questions: Iterable[AskedQuestion]) -> dict[str, Finding]:
    """Return what all probes find in questions that show no images, by kind."""
    kept, images = Kept(), ImageFacts(Path())
    for each in questions:
        kept.add(each, images, has_depths=False)
    return {finding.kind: finding for finding in judge([("set", "file", each) for each in measure(kept)])[0]}


def leaks(findings: dict[str, Finding]) -> list[str]:
    """Return the kinds of findings that are leaks."""
    return [kind for kind, each in findings.items() if each.verdict == "leak"]
