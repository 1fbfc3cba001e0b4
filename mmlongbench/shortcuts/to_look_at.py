"""The questions that carry a finding, as a person looks at them: the question with its answer, and gold beside other
units of its context. What is read is cut, so that a page of any release stays small.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.draws import Draws
from mmlongbench.prompt import Image
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Release
from mmlongbench.shortcuts import features as f
from mmlongbench.shortcuts.candidates import KINDS, candidates, gold_groups
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.reading import AskedQuestion, asked_questions

MAX_EXAMPLES = 3
"""The most questions of a finding that are shown."""
MAX_GOLDS = 2
"""The most golds of a context that are shown."""
MAX_OTHERS = 4
"""The most units beside gold that are shown."""
MAX_LETTERS = 600
"""The most characters of a text that are shown."""


@dataclass(frozen=True, slots=True)
class SeenUnit:
    """A unit of a context, or an answer that a question offers."""

    is_gold: bool
    """Whether it holds the answer, or is the right choice."""
    role: str
    """Its role; empty for an offered answer."""
    text: str
    """Its text, cut; empty for an image alone."""
    image: str
    """The path of its image, below `mmlb_image/`; empty for a text."""
    numbers: tuple[tuple[str, str], ...] = ()
    """What tells it: (name, value) of features that the finding names."""


@dataclass(frozen=True, slots=True)
class SeenQuestion:
    """A question that carries a finding."""

    id: str
    """The id of the question."""
    question: str
    """Its words, cut."""
    answer: str
    """Its answer, cut."""
    units: tuple[SeenUnit, ...]
    """Gold, then others; empty if the finding is about the question or the answer alone."""


def questions_to_look_at(
    release: Release, findings: Iterable[Finding]
) -> Mapping[tuple[str, str], tuple[SeenQuestion, ...]]:
    """Return the questions that carry findings most, by the dataset and the kind of the finding.

    Each file is read once, up to the last of these questions.

    Raises:
        ReleaseError: a file or an image cannot be read.
        DraftError: the builder cannot read a record.

    """
    found: dict[tuple[str, str], tuple[SeenQuestion, ...]] = {}
    images = f.ImageFacts(release.path / IMAGES)
    cells: dict[tuple[str, int], list[Finding]] = {}
    for each in findings:
        cells.setdefault((each.dataset, each.length), []).append(each)
    for (dataset, length), own in cells.items():
        wanted = {id: [each for each in own if id in each.examples[:MAX_EXAMPLES]] for id in _ids(own)}
        seen: dict[tuple[str, str], SeenQuestion] = {}
        for asked in _read(release, dataset, length, set(wanted)):
            for finding in wanted[asked.id]:
                seen[finding.kind, asked.id] = _seen(asked, finding, images)
        for each in own:
            there = (seen.get((each.kind, id)) for id in each.examples[:MAX_EXAMPLES])
            found[dataset, each.kind] = tuple(question for question in there if question)
    return found


def _ids(findings: Iterable[Finding]) -> list[str]:
    return list(dict.fromkeys(id for each in findings for id in each.examples[:MAX_EXAMPLES]))


def _read(release: Release, dataset: str, length: int, ids: set[str]) -> Iterator[AskedQuestion]:
    left = set(ids)
    for asked in asked_questions(release, dataset, length or None) if left and dataset in release.datasets else ():
        if asked.id in left:
            left.remove(asked.id)
            yield asked
        if not left:
            return


def _seen(asked: AskedQuestion, finding: Finding, images: f.ImageFacts) -> SeenQuestion:
    units = _choices(asked) if finding.kind.startswith("right choice") else _units(asked, finding, images)
    return SeenQuestion(asked.id, _cut(asked.question), _answer(asked), tuple(units))


def _answer(asked: AskedQuestion) -> str:
    """Return the answer; of a question that offers answers, also its place among them."""
    if asked.choices is None:
        return _cut(asked.answer)
    right = asked.choices.offered[asked.choices.right]
    text = right.path if isinstance(right, Image) else right
    return _cut(f"{text} (choice {asked.choices.right + 1} of {len(asked.choices.offered)})")


def _choices(asked: AskedQuestion) -> Iterator[SeenUnit]:
    """Yield the offered answers in their order."""
    if asked.choices:
        for place, each in enumerate(asked.choices.offered[: MAX_GOLDS + MAX_OTHERS]):
            image, text = (each.path, "") if isinstance(each, Image) else ("", _cut(each))
            yield SeenUnit(place == asked.choices.right, "", text, image)


def _units(asked: AskedQuestion, finding: Finding, images: f.ImageFacts) -> Iterator[SeenUnit]:
    """Yield gold, then drawn other units that the probe compares it with, if the finding is about gold."""
    if "gold" not in finding.kind and "context" not in finding.kind and "negative" not in finding.kind:
        return
    golds, places = candidates(asked)
    others = Draws(("shortcuts", asked.id)).order("candidates", [place for place in places if place not in golds])
    group = dict(gold_groups(asked, images, has_depths=False)).get(finding.kind)
    for place in (*golds[:MAX_GOLDS], *others[:MAX_OTHERS]):
        unit = asked.units[place]
        row = group.features[places.index(place)].tolist() if group else []
        yield SeenUnit(unit.is_gold, unit.role, _cut(unit.text), unit.image, tuple(_numbers(finding, row)))


def _numbers(finding: Finding, row: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Yield the features of a unit that the evidence names."""
    for name, value in zip(KINDS[finding.kind] if row else (), row, strict=True):
        if name in finding.evidence and not name.startswith("letters of"):  # letters are hashes
            yield name, f.written(name, value)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else f"{text[:MAX_LETTERS]} …"
