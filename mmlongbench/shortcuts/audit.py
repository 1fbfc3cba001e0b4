"""The shortcut audit without a model: every probe over every dataset of a release; and the questions that carry what it
finds, to exclude them or to look at them.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.io.files import atomic_write
from mmlongbench.io.progress import Progress
from mmlongbench.likeness import Pictures
from mmlongbench.manifest.errata import errata_text
from mmlongbench.packing.place import Depth
from mmlongbench.prompt import Image
from mmlongbench.release.items import items_path
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import DatasetCounts, Lock
from mmlongbench.release.release import Release
from mmlongbench.shortcuts.against import Answering
from mmlongbench.shortcuts.counted import GOLD, Depths, Leakage, Overlap, Tenths
from mmlongbench.shortcuts.difficulty import MAX_QUESTIONS, Difficulties, Difficulty, Search
from mmlongbench.shortcuts.findings import MIN_SUBJECTS, MOST_CARRIERS, Finding, Measured, judge
from mmlongbench.shortcuts.image_features import ImageFacts
from mmlongbench.shortcuts.probes import KINDS, Kept, candidates, gold_groups, measure
from mmlongbench.shortcuts.reading import AskedQuestion, PageTexts, asked_questions
from mmlongbench.shortcuts.text_features import written

_NO_QUESTION = (
    "not tried: whether the question tells the answer or where gold is, whether it holds an answer, and whether it is "
    "asked twice; its records have no question (question_of)"
)
_MAY_REPEAT = "its task lets several units show the same picture (repeats_pictures)"
_NO_TENTH = "not tried: whether a tenth of a context is enough"


@dataclass(frozen=True, slots=True)
class ShortcutAudit:
    """What the audit says about a release."""

    findings: tuple[Finding, ...]
    """A finding for each probe of each dataset."""
    p: float | None
    """The probability that the strongest of all probes is so strong if nothing tells anywhere; None if nothing could be
    tried."""
    notes: tuple[str, ...]
    """The datasets that could not be tried, or not in full, and why."""
    difficulties: tuple[Difficulty, ...] = ()
    """How far down a search finds gold, by dataset, length and search; this is no finding."""

    @property
    def leaks(self) -> tuple[Finding, ...]:
        """Return the findings that are leaks, those with the largest excess first."""
        leaks = [finding for finding in self.findings if finding.verdict == "leak"]
        return tuple(sorted(leaks, key=lambda finding: -finding.excess))


def audit_shortcuts(
    release: Release,
    progress: Progress,
    datasets: Sequence[str] = (),
    against: Path | None = None,
    searches: Sequence[Search] = (Search(),),
    without: Mapping[str, Collection[str]] | None = None,
) -> ShortcutAudit:
    """Try every probe on a release (see `mmlongbench.find_shortcuts`). `searches` say how gold is searched for, to say
    how difficult that is; `without` has the ids of questions that are left out, by dataset.
    """
    for name in datasets:
        if name not in release.datasets:
            hint = nearest(name, release.datasets)
            raise ReleaseError(
                f"{release.path.name}: no dataset {name!r}; there are {', '.join(release.datasets)}{hint}"
            )
    chosen = [name for name in release.datasets if name in datasets or not datasets]
    pictures = Pictures.of(release)
    reading = _Reading(release, searches, pictures, None if against is None else Answering(pictures), without or {})
    with progress.bar("datasets tried", len(chosen)) as advance:
        for name in chosen:
            reading.try_dataset(name)
            advance()
    estimated, p = judge(reading.measured)
    shared: list[Finding] = []
    if reading.shared and against is not None:
        reading.shared.compare(against)
        shared += reading.shared.findings()
    findings = (*estimated, *reading.counted, *shared)
    return ShortcutAudit(findings, p, tuple(dict.fromkeys(reading.notes)), tuple(reading.difficulties))


class _Reading:
    """Reads each dataset once, and gives each question to everything that looks at it."""

    def __init__(
        self,
        release: Release,
        searches: Sequence[Search],
        pictures: Pictures,
        shared: Answering | None,
        without: Mapping[str, Collection[str]],
    ) -> None:
        self._release, self._searches, self._pictures, self.shared = release, searches, pictures, shared
        self._without = without
        self._images = ImageFacts(release.path / IMAGES)
        self._texts = PageTexts(release)
        self.measured: list[tuple[str, str, Measured]] = []
        self.counted: list[Finding] = []
        self.notes: list[str] = []
        self.difficulties: list[Difficulty] = []

    def try_dataset(self, dataset: str) -> None:
        """Try every length: a question may tell its answer in a short context that a longer one hides."""
        lengths = self._release.lengths(dataset)
        ids = sorted(set(self._release.ids(dataset, lengths[-1]))) if lengths else []
        searched = set(Draws(("shortcuts", dataset)).order("difficulty", ids)[:MAX_QUESTIONS])
        spec = self._release.builder(dataset).spec
        placements, was_tried = spec.placements, False
        # If the places of needles are requested, they tell nothing about gold by design.
        has_depths = placements is not None and placements.kind is Depth
        counted: dict[str, Finding] = {}  # a count has the length at which it is strongest
        for length in lengths:
            file, kept = "", Kept()
            tenths, asks = Tenths(dataset), False
            overlap = Overlap(dataset, self._pictures, may_repeat=spec.repeats_pictures)
            counting = (Leakage(dataset), overlap, Depths(dataset), tenths)
            hard = Difficulties(dataset, length, self._searches, self._texts)
            for asked in asked_questions(self._release, dataset, length):
                if asked.id in self._without.get(dataset, ()):
                    continue
                file, asks = asked.file, asks or bool(asked.question.strip())
                if asked.id in searched:
                    hard.add(asked)
                kept.add(asked, self._images, has_depths=has_depths, texts=self._texts)
                for counter in counting:
                    counter.add(asked)
                if self.shared and length == lengths[-1]:
                    self.shared.add(dataset, asked)
            if file and not items_path(self._release.path, file).is_file():
                only = "gold is looked for only where the needles are known"
                self.notes.append(f"{dataset}: the release has no items of {file}: {only}")
            if file and not asks:
                self.notes.append(f"{dataset}: {_NO_QUESTION}")
            if file and spec.repeats_pictures:
                self.notes.append(f"{dataset}: not tried: {GOLD}: {_MAY_REPEAT}")
            if tenths.untried:
                self.notes.append(f"{dataset}: {_NO_TENTH}: {tenths.untried}")
            measured = [(dataset, file, replace(probe, length=length)) for probe in measure(kept)]
            was_tried |= bool(measured)
            self.measured += measured
            self.difficulties += hard.lines()
            for finding in (finding for counter in counting for finding in counter.findings()):
                known = counted.get(finding.kind)
                strength = finding.verdict == "leak", finding.excess
                if known is None or strength > (known.verdict == "leak", known.excess):
                    counted[finding.kind] = finding.model_copy(update={"length": length})
        if lengths and not was_tried:
            self.notes.append(
                f"{dataset}: not tried: its questions are about fewer than {MIN_SUBJECTS} subjects, or one answer"
            )
        self.counted += counted.values()


# ---- Questions to exclude


def carriers(leaks: Sequence[Finding], questions: Mapping[str, int]) -> dict[str, dict[str, str]]:
    """Return the questions to exclude: by dataset and id, the kinds of the leaks that they carry, in words.

    `questions` has the number of questions of each dataset. At most a tenth of them are excluded: first those of
    counted leaks, then those that carry the most leaks, then those that tell most in one of them, then by id.
    """
    chosen: dict[str, dict[str, str]] = {}
    for dataset in dict.fromkeys(leak.dataset for leak in leaks):
        kinds: dict[str, list[str]] = {}
        counted, place = set[str](), dict[str, int]()
        for leak in (leak for leak in leaks if leak.dataset == dataset):
            for at, id in enumerate(leak.carriers):
                kinds.setdefault(id, []).append(leak.kind)
                place[id] = min(at, place.get(id, at))
            if leak.p is None:
                counted.update(leak.carriers)
        order = sorted(kinds, key=lambda id: (id not in counted, -len(kinds[id]), place[id], id))
        if strongest := order[: math.floor(MOST_CARRIERS * questions[dataset])]:
            chosen[dataset] = {id: ", ".join(kinds[id]) for id in strongest}
    return chosen


def leaks_left(leaks: Sequence[Finding], after: Sequence[Finding]) -> dict[str, str]:
    """Return in words, by dataset, what a second audit finds of the leaks of the first one, and which leaks are new."""
    said = {}
    now = {(finding.dataset, finding.kind): finding for finding in after}
    known = {(leak.dataset, leak.kind) for leak in leaks}
    new_leaks = [found for found in after if found.verdict == "leak" and (found.dataset, found.kind) not in known]
    for dataset in dict.fromkeys(leak.dataset for leak in (*leaks, *new_leaks)):
        own = [leak for leak in leaks if leak.dataset == dataset]
        parts: dict[str, list[str]] = {"left": [], "undecided": [], "clean": [], "gone": [], "not tried": []}
        for leak in own:
            found = now.get((dataset, leak.kind))
            if found is None:  # what is counted has a finding only where there is something to count
                parts["gone" if leak.p is None else "not tried"].append(leak.kind)
            elif found.verdict == "undecided":
                shares = f"found {100 * found.found:.0f}, chance {100 * found.chance:.0f}"
                parts["undecided"].append(f"{leak.kind}: {shares}")
            else:
                parts["left" if found.verdict == "leak" else "clean"].append(leak.kind)
        words = ", ".join(f"{len(kinds)} {part} ({'; '.join(kinds)})" for part, kinds in parts.items() if kinds)
        new = [leak.kind for leak in new_leaks if leak.dataset == dataset]
        new_words = f"{len(new)} new ({'; '.join(new)})" if new else "none new"
        said[dataset] = f"of {len(own)} leaks {words}; {new_words}" if own else new_words
    return said


def question_numbers(release: Release, datasets: Iterable[str]) -> dict[str, int]:
    """Return how many questions each dataset has, over all its lengths."""
    return {
        name: len({id for length in release.lengths(name) for id in release.ids(name, length)}) for name in datasets
    }


def exclude_files(path: Path, datasets: Sequence[str]) -> dict[str, Path]:
    """Return the file for the questions to exclude of each dataset: the given one for a single dataset; for several,
    its name is followed by that of the dataset, since each dataset of a manifest has errata of its own. A file that is
    already there is a `ReleaseError`.
    """
    several = {name: path.with_name(f"{path.stem}.{name}{path.suffix}") for name in datasets}
    files = several if len(datasets) > 1 else dict.fromkeys(datasets, path)
    for file in (path, *files.values()):
        if file.exists():
            raise ReleaseError(f"{file}: already exists, and is not overwritten; give --write-exclude another file")
    return files


def smaller_sample(lock: Lock | None, dataset: str, excluded: int) -> int | None:
    """Return the `sample.n` with which no other questions are drawn in place of excluded ones; None if there are no
    others.
    """
    counts = lock.datasets.get(dataset) if lock else None
    is_sampled = isinstance(counts, DatasetCounts) and counts.questions.not_sampled > 0
    entry = next((entry for entry in lock.manifest if entry.get("name") == dataset), {}) if lock else {}
    sample = entry.get("sample")
    size = sample.get("n") if isinstance(sample, dict) else None
    return max(1, size - excluded) if is_sampled and isinstance(size, int) else None


def write_exclude(path: Path, lock: Lock | None, dataset: str, reasons: Mapping[str, str]) -> None:
    """Write questions as errata that leave them out, with the errata that the dataset was built with."""
    counts = lock.datasets.get(dataset) if lock else None
    errata: dict[str, Mapping[str, object]] = dict(counts.errata) if isinstance(counts, DatasetCounts) else {}
    errata |= {id: {"source": f"mmlongbench shortcuts: {why}", "drop": True} for id, why in reasons.items()}
    head = f"# {len(reasons):,} questions of {dataset}, excluded by `mmlongbench shortcuts --write-exclude`.\n"
    with atomic_write(path) as file:
        file.write(errata_text(errata, head).encode("utf-8"))


# ---- Questions to look at: with the answer, and gold beside other units; cut, so that a page of any release is small

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
    """A question that carries a finding; its texts are cut."""

    id: str
    question: str
    answer: str
    units: tuple[SeenUnit, ...]
    """Gold, then others; empty if the finding is about the question or the answer alone."""


def questions_to_look_at(
    release: Release, findings: Iterable[Finding]
) -> Mapping[tuple[str, str], tuple[SeenQuestion, ...]]:
    """Return the questions that carry findings most, by the dataset and the kind of the finding.

    Each file is read once, up to the last of these questions.
    """
    seen: dict[tuple[str, str], tuple[SeenQuestion, ...]] = {}
    images = ImageFacts(release.path / IMAGES)
    by_file: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings:
        by_file.setdefault((finding.dataset, finding.length), []).append(finding)
    for (dataset, length), own in by_file.items():
        shown: dict[tuple[str, str], SeenQuestion] = {}
        left = {id for finding in own for id in finding.examples[:MAX_EXAMPLES]}
        for asked in asked_questions(release, dataset, length or None) if dataset in release.datasets else ():
            if not left:
                break
            if asked.id in left:
                left.remove(asked.id)
                for finding in own:
                    if asked.id in finding.examples[:MAX_EXAMPLES]:
                        shown[finding.kind, asked.id] = _seen(asked, finding, images)
        for finding in own:
            there = (shown.get((finding.kind, id)) for id in finding.examples[:MAX_EXAMPLES])
            seen[dataset, finding.kind] = tuple(question for question in there if question)
    return seen


def _seen(asked: AskedQuestion, finding: Finding, images: ImageFacts) -> SeenQuestion:
    answer, units = asked.answer, list[SeenUnit]()
    if choices := asked.choices:
        names = [(part.path, "") if isinstance(part, Image) else ("", part) for part in choices.offered]
        answer = f"{''.join(names[choices.right])} (choice {choices.right + 1} of {len(names)})"
        if finding.kind.startswith("right choice"):
            for place, (image, text) in enumerate(names[: MAX_GOLDS + MAX_OTHERS]):
                units.append(SeenUnit(place == choices.right, "", _cut(text), image))
    if any(word in finding.kind for word in ("gold", "context", "negative")):
        units += _units(asked, finding, images)
    return SeenQuestion(asked.id, _cut(asked.question), _cut(answer), tuple(units))


def _units(asked: AskedQuestion, finding: Finding, images: ImageFacts) -> Iterator[SeenUnit]:
    """Yield gold, then drawn other units that the probe compares it with."""
    golds, places = candidates(asked)
    others = Draws(("shortcuts", asked.id)).order("candidates", [place for place in places if place not in golds])
    group = dict(gold_groups(asked, images, has_depths=False)).get(finding.kind)
    for place in (*golds[:MAX_GOLDS], *others[:MAX_OTHERS]):
        unit = asked.units[place]
        row = group.features[places.index(place)].tolist() if group else []
        numbers = tuple(  # the features that the evidence names; letters are hashes
            (name, written(name, value))
            for name, value in zip(KINDS[finding.kind] if row else (), row, strict=True)
            if name in finding.evidence and not name.startswith("letters of")
        )
        yield SeenUnit(unit.is_gold, unit.role, _cut(unit.text), unit.image, numbers)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else f"{text[:MAX_LETTERS]} …"
