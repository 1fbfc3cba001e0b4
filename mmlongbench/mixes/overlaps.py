"""What an example shares with evaluation releases: a document, a question, a picture or a passage.

Everything that an evaluation release shows is compared, at every length and placement, also what only fills a context.
The rules of likeness are those of the shortcut audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict

from mmlongbench.lengths import format_length
from mmlongbench.likeness import KnownQuestions, Look, NearIndex, Pictures, digest_of, words
from mmlongbench.manifest.binding import calling
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.items import items_in_order
from mmlongbench.release.layout import IMAGES, as_utf8
from mmlongbench.release.release import Example, Release
from mmlongbench.shortcuts.reading import AskedQuestion, asked_question

Kind: TypeAlias = Literal["document", "question", "picture", "passage"]
"""What is shared. A page of a document that an evaluation release asks about is a `document`; any other picture is a
`picture`."""
KINDS: tuple[Kind, ...] = ("document", "question", "picture", "passage")


class Overlap(BaseModel):
    """One thing that an example shares with an evaluation release."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Kind
    dataset: str
    """The dataset of the example."""
    length: str
    """The length of the example, such as `8K`."""
    id: str
    """The id of its question."""
    placement: float | None
    """Its depth or the number of its permutation."""
    evaluation: str
    """The name of the evaluation release."""
    what: str
    """What is shared, in words."""

    def __str__(self) -> str:
        return f"{self.dataset}, {self.length}, {self.id}: {self.kind}: {self.what}"


class Shown(NamedTuple):
    """What an example shows, as far as it is compared."""

    asked: AskedQuestion
    """Its question without its context."""
    documents: tuple[str, ...]
    """The names of its documents: the one that it asks about first, then those that fill its context."""
    own: frozenset[str]
    """The images of the pages of its document."""
    images: tuple[str, ...]
    """All images of its prompt, each once."""
    passages: tuple[str, ...]
    """The texts of its units that are long enough to be compared."""


class _Reader:
    """Reads what the examples of a release show. The ids of units of one file are in memory at a time."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._file = ""
        self._units: Mapping[tuple[str, float | None], Sequence[str]] = {}

    def __call__(self, example: Example) -> Shown:
        builder, evidence = self._release.builder(example.dataset), example.evidence
        with calling("builder", type(builder).__name__, "a method that reads records", about=example.name):
            asked = asked_question(builder, example)
        return Shown(
            asked.without_context(),
            self._documents(example),
            frozenset(evidence.images.values()) if evidence else frozenset(),
            tuple(dict.fromkeys(example.prompt.images)),
            tuple(dict.fromkeys(unit.passage for unit in asked.units if unit.is_passage)),
        )

    def _documents(self, example: Example) -> tuple[str, ...]:
        """Return the names of the documents that an example shows, the one that the question is about first.

        A record names this one alone. Of a page that only fills the context, the items of the release have the id of
        the unit. Without items, or if the ids of own pages do not name their document, it is the only one.
        """
        own = (example.evidence.document or "") if example.evidence else ""
        if not own:
            return ()
        if self._file != example.file:
            stored = items_in_order(self._release.path, example.file, example.length)
            units = {(id, place): tuple(dict.fromkeys(item["unit"] for item in items)) for id, place, items in stored}
            self._file, self._units = example.file, units
        return (own, *named_by(self._units.get((as_utf8(example.id), placement_of(example.record)), ()), own))


def named_by(units: Sequence[str], own: str) -> list[str]:
    """Return the other documents that ids of units name, in the same place where the ids of own pages name theirs.

    >>> named_by(["reports/harbour-2019/page1.jpg", "reports/tram-review/page7.jpg"], "Harbour_2019.pdf")
    ['tram-review']
    """
    key, paths = document_key(own), [unit.split("/") for unit in units]
    places = {(len(path), at) for path in paths for at, part in enumerate(path) if document_key(part) == key}
    names = dict.fromkeys(path[at] for path in paths for size, at in sorted(places) if len(path) == size)
    return [name for name in names if document_key(name) != key]


def document_key(name: str) -> str:
    """Return the words of a document's name, without the ending of PDFs: names that differ in nothing else are one.

    >>> document_key("Harbour_2019.PDF") == document_key("harbour-2019")
    True
    """
    key, ending = words(name), " pdf "
    return key.removesuffix(ending) + " " if key.endswith(ending) else key


class Sides(BaseModel):
    """How many different things of one side were compared."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    documents: int
    """Names of documents."""
    questions: int
    pictures: int
    """Pictures, each compared by its bytes and by its looks."""
    passages: int
    """Texts of at least nine words."""
    blank_pictures: int
    """Pictures of one colour, such as empty pages: they show nothing, so they were not compared."""


class Evaluation:
    """What an evaluation release shows. Less than a kilobyte is kept of a picture, and a digest of a passage."""

    def __init__(self, release: Release) -> None:
        """Read the whole release; raises ReleaseError if a file, a picture or a package is missing or damaged."""
        self.name, self.lock = release.path.name, release.lock_id
        self._questions = KnownQuestions()
        self._asked: dict[tuple[str, str], str] = {}
        self._documents: dict[str, str] = {}
        self._passages: dict[bytes, str] = {}
        self._own: dict[str, str] = {}  # the document of each page
        self._index = NearIndex()
        self._looks: dict[str, list[str]] = {}
        shown_by = _Reader(release)
        for dataset in release.datasets:
            for length in release.lengths(dataset):
                for example in release.examples(dataset, length):
                    self._add(dataset, shown_by(example))
        # every image of the lock, also those that no prompt shows, such as a page of the evidence
        pictures, blank = Pictures.of(release), 0
        for path in (name.removeprefix(f"{IMAGES}/") for name in release.lock.files if name.startswith(f"{IMAGES}/")):
            look = pictures[path]
            if look.is_blank:
                blank += 1
            else:
                self._index.add(look)
                self._looks.setdefault(look.digest, []).append(path)
        self.compared = Sides(
            documents=len(self._documents),
            questions=len(self._asked),
            pictures=len(self._looks),
            passages=len(self._passages),
            blank_pictures=blank,
        )

    def _add(self, dataset: str, shown: Shown) -> None:
        key, asked = (dataset, shown.asked.id), shown.asked
        if key not in self._asked and words(asked.question):
            self._asked[key] = asked.question
            self._questions.add(key, asked.question, asked.subject, () if asked.choices else asked.answers)
        for document in shown.documents:
            if name := document_key(document):
                self._documents.setdefault(name, document)
        if shown.documents:
            self._own.update(dict.fromkeys(shown.own, shown.documents[0]))
        for passage in shown.passages:
            self._passages.setdefault(digest_of(passage), f"{dataset}, {asked.id}: {passage!r:.60}")

    def document(self, name: str) -> str:
        """Return which document of this release has a name; empty if none."""
        same = self._documents.get(document_key(name)) if name else None
        return f"the document {name!r:.80} has the name of {same!r:.80}" if same else ""

    def picture(self, look: Look) -> tuple[Kind, str] | None:
        """Return the picture of this release that is like a picture, a page of a document first; None: none is."""
        paths = sorted(path for digest in self._index.near(look) for path in self._looks[digest])
        if page := next((path for path in paths if path in self._own), ""):
            return "document", f"is like {page}, a page of {self._own[page]!r:.80}"
        return ("picture", f"is like {paths[0]}") if paths else None

    def shared(self, shown: Shown, likes: Mapping[str, Mapping[str, tuple[Kind, str]]]) -> Iterator[tuple[Kind, str]]:
        """Yield what an example shares with this release. `likes` has what its images are like, by lock."""
        for document in shown.documents:
            if said := self.document(document):
                yield "document", said
        asked = shown.asked
        for key in self._questions.same(asked.question, asked.subject, asked.answers):
            yield "question", f"asks what {', '.join(key)} asks: {self._asked[key]!r:.80}"
        for path in shown.images:
            if self.lock in likes[path]:
                kind, said = likes[path][self.lock]
                yield kind, f"{path} {said}"
        for passage in shown.passages:
            if where := self._passages.get(digest_of(passage)):
                yield "passage", f"shows a passage of {where}"


class Comparison:
    """Compares examples of one release with evaluation releases. What is found about a picture is kept."""

    def __init__(self, release: Release, evaluations: Sequence[Evaluation]) -> None:
        """Take the release of the examples."""
        self.evaluations = evaluations
        self._shown_by = _Reader(release)
        self._pictures = Pictures.of(release)
        self._likes: dict[str, Mapping[str, tuple[Kind, str]]] = {}
        self._names: set[str] = set()
        self._questions: set[tuple[str, str]] = set()
        self._passages: set[bytes] = set()
        self._blank: set[str] = set()

    @property
    def compared(self) -> Sides:
        """Return how many different things of the examples were compared."""
        return Sides(
            documents=len(self._names),
            questions=len(self._questions),
            pictures=len(self._likes) - len(self._blank),
            passages=len(self._passages),
            blank_pictures=len(self._blank),
        )

    def overlaps(self, example: Example, placement: float | None) -> list[Overlap]:
        """Return what an example shares with the evaluation releases: the first thing of each kind and release.

        Raises:
            ReleaseError: a picture is missing or damaged.

        """
        shown = self._shown_by(example)
        if words(shown.asked.question):
            self._questions.add((example.dataset, shown.asked.id))
        self._names.update(filter(None, map(document_key, shown.documents)))
        self._passages.update(map(digest_of, shown.passages))
        for path in shown.images:
            if path not in self._likes:
                look = self._pictures[path]
                if look.is_blank:
                    self._blank.add(path)
                near = {} if look.is_blank else {each.lock: each.picture(look) for each in self.evaluations}
                self._likes[path] = {lock: like for lock, like in near.items() if like}
        first: dict[tuple[str, Kind], str] = {}
        for evaluation in self.evaluations:
            for kind, what in evaluation.shared(shown, self._likes):
                first.setdefault((evaluation.name, kind), what)
        return [
            Overlap(
                kind=kind,
                dataset=example.dataset,
                length=format_length(example.length),
                id=example.id,
                placement=placement,
                evaluation=evaluation_name,
                what=what,
            )
            for (evaluation_name, kind), what in first.items()
        ]
