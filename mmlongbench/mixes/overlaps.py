"""What an example shares with evaluation releases: a document, a question, a picture or a passage.

Everything that an evaluation release shows is compared, at every length and placement, also what only fills a context.
The rules of likeness are those of the shortcut audit.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from mmlongbench.lengths import format_length
from mmlongbench.likeness import KnownQuestions, Look, NearIndex, Pictures, digest_of, words
from mmlongbench.manifest.binding import calling
from mmlongbench.mixes.documents import ContextDocuments, document_key
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Example, Release
from mmlongbench.shortcuts.against import is_passage
from mmlongbench.shortcuts.reading import AskedQuestion, asked_question

Kind: TypeAlias = Literal["document", "question", "picture", "passage"]
"""What is shared. A page of a document that an evaluation release asks about is a `document`; any other picture is a
`picture`."""
KINDS: tuple[Kind, ...] = ("document", "question", "picture", "passage")


class Overlap(BaseModel):
    """One thing that an example shares with an evaluation release."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    kind: Kind
    """What is shared."""
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


@dataclass(frozen=True, slots=True)
class Shown:
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

    @classmethod
    def of(cls, release: Release, example: Example, documents: ContextDocuments) -> "Shown":
        """Return what an example of a release shows."""
        builder, evidence = release.builder(example.dataset), example.evidence
        with calling("builder", type(builder).__name__, "a method that reads records", about=example.name):
            asked = asked_question(builder, example)
        return cls(
            asked.without_context(),
            documents(example),
            frozenset(evidence.images.values()) if evidence else frozenset(),
            tuple(dict.fromkeys(example.prompt.images)),
            tuple(dict.fromkeys(unit.passage for unit in asked.units if is_passage(unit))),
        )


@dataclass(slots=True)
class Compared:
    """How many different things of one side are compared."""

    documents: int = 0
    """Names of documents."""
    questions: int = 0
    """Questions that have words."""
    pictures: int = 0
    """Pictures by their bytes."""
    passages: int = 0
    """Texts by their words."""
    blank_pictures: int = 0
    """Pictures of one colour, such as empty pages: they show nothing, so they are not compared."""


class Evaluation:
    """What an evaluation release shows. Less than a kilobyte is kept of a picture, and a digest of a passage."""

    def __init__(self, release: Release) -> None:
        """Read the whole release.

        Raises:
            ReleaseError: a file or a picture is missing or damaged, or a package is not installed.

        """
        self.name, self.lock = release.path.name, release.lock_id
        self.compared = Compared()
        self._questions = KnownQuestions()
        self._asked: dict[tuple[str, str], str] = {}
        self._documents: dict[str, str] = {}
        self._passages: dict[bytes, str] = {}
        self._own: dict[str, str] = {}
        self._index = NearIndex()
        self._looks: dict[str, list[str]] = {}
        documents = ContextDocuments(release)
        for dataset in release.datasets:
            for length in release.lengths(dataset):
                for example in release.examples(dataset, length):
                    self._add(dataset, Shown.of(release, example, documents))
        self._add_pictures(release)

    def _add(self, dataset: str, shown: Shown) -> None:
        key = (dataset, shown.asked.id)
        if key not in self._asked and words(shown.asked.question):
            self._asked[key] = shown.asked.question
            asked = shown.asked
            self._questions.add(key, asked.question, asked.subject, () if asked.choices else asked.answers)
        for document in shown.documents:
            if name := document_key(document):
                self._documents.setdefault(name, document)
        if shown.documents:
            self._own.update(dict.fromkeys(shown.own, shown.documents[0]))
        for passage in shown.passages:
            self._passages.setdefault(digest_of(passage), f"{dataset}, {shown.asked.id}: {passage!r:.60}")
        self.compared.documents, self.compared.questions = len(self._documents), len(self._asked)
        self.compared.passages = len(self._passages)

    def _add_pictures(self, release: Release) -> None:
        """Add every image of the lock, also those that no prompt shows, such as a page of the evidence."""
        pictures = Pictures.of(release)
        for path in [name.removeprefix(f"{IMAGES}/") for name in release.lock.files if name.startswith(f"{IMAGES}/")]:
            look = pictures[path]
            if look.is_blank:
                self.compared.blank_pictures += 1
            else:
                self._index.add(look)
                self._looks.setdefault(look.digest, []).append(path)
        self.compared.pictures = len(self._looks)

    def question(self, asked: AskedQuestion) -> str:
        """Return at which question of this release a question is asked too; empty if at none."""
        for key in self._questions.same(asked.question, asked.subject, asked.answers):
            return f"asks what {', '.join(key)} asks: {self._asked[key]!r:.80}"
        return ""

    def document(self, name: str) -> str:
        """Return which document of this release has a name; empty if none."""
        found = self._documents.get(document_key(name)) if name else None
        return f"the document {name!r:.80} has the name of {found!r:.80}" if found else ""

    def picture(self, look: Look) -> tuple[Kind, str] | None:
        """Return the picture of this release that is like a picture, a page of a document first; None: none is."""
        paths = sorted(path for digest in self._index.near(look) for path in self._looks[digest])
        pages = [path for path in paths if path in self._own]
        if pages:
            return "document", f"is like {pages[0]}, a page of {self._own[pages[0]]!r:.80}"
        return ("picture", f"is like {paths[0]}") if paths else None

    def passage(self, text: str) -> str:
        """Return where this release shows a passage; empty if nowhere."""
        return self._passages.get(digest_of(text), "")


class Comparison:
    """Compares examples of one release with evaluation releases. What is found about a picture is kept."""

    def __init__(self, release: Release, evaluations: Sequence[Evaluation]) -> None:
        """Take the release of the examples."""
        self._release, self._evaluations = release, evaluations
        self._documents = ContextDocuments(release)
        self._pictures = Pictures.of(release)
        self._known: dict[str, Mapping[str, tuple[Kind, str]]] = {}
        self._names: set[str] = set()
        self._questions: set[tuple[str, str]] = set()
        self._passages: set[bytes] = set()
        self._blank: set[str] = set()

    @property
    def compared(self) -> Compared:
        """Return how many different things of the examples were compared."""
        pictures = len(self._known) - len(self._blank)
        return Compared(len(self._names), len(self._questions), pictures, len(self._passages), len(self._blank))

    def overlaps(self, example: Example, placement: float | None) -> list[Overlap]:
        """Return what an example shares with the evaluation releases: the first thing of each kind and release.

        Raises:
            ReleaseError: a picture is missing or damaged.

        """
        shown, found = Shown.of(self._release, example, self._documents), dict[tuple[str, Kind], str]()
        for evaluation, kind, what in self._found(example.dataset, shown):
            found.setdefault((evaluation, kind), what)
        return [
            Overlap(
                kind=kind,
                dataset=example.dataset,
                length=format_length(example.length),
                id=example.id,
                placement=placement,
                evaluation=evaluation,
                what=what,
            )
            for (evaluation, kind), what in found.items()
        ]

    def _found(self, dataset: str, shown: Shown) -> Iterator[tuple[str, Kind, str]]:
        if words(shown.asked.question):
            self._questions.add((dataset, shown.asked.id))
        self._names.update(filter(None, map(document_key, shown.documents)))
        self._passages.update(map(digest_of, shown.passages))
        for each in self._evaluations:
            for document in shown.documents:
                if said := each.document(document):
                    yield each.name, "document", said
            if said := each.question(shown.asked):
                yield each.name, "question", said
            for path in shown.images:
                if hit := self._like(path).get(each.lock):
                    yield each.name, hit[0], f"{path} {hit[1]}"
            for passage in shown.passages:
                if said := each.passage(passage):
                    yield each.name, "passage", f"shows a passage of {said}"

    def _like(self, path: str) -> Mapping[str, tuple[Kind, str]]:
        """Return what a picture is like, by the lock of the evaluation release."""
        if path not in self._known:
            look, found = self._pictures[path], dict[str, tuple[Kind, str]]()
            if look.is_blank:
                self._blank.add(path)
            else:
                found = {each.lock: hit for each in self._evaluations if (hit := each.picture(look))}
            self._known[path] = found
        return self._known[path]
