"""A release as a user reads it: its lock, and its examples one at a time. It counts nothing; images are opened only for
messages that contain them.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.documents.image_urls import ImageUrls
from mmlongbench.draws import digest
from mmlongbench.errors import DraftError, ReleaseError, nearest
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import bind, calling
from mmlongbench.manifest.model import length_of
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.messages import Messages, messages
from mmlongbench.prompt import Prompt
from mmlongbench.release.examples import name_of
from mmlongbench.release.layout import DATA, IMAGES
from mmlongbench.release.loading import locked_spec, recognised
from mmlongbench.release.lock import Lock, example_digest, leads_out, lock_id, read_lock
from mmlongbench.release.measuring import placement_of
from mmlongbench.task.builder import Builder
from mmlongbench.task.formats import FileFormat
from mmlongbench.task.metric import Evidence, is_answered
from mmlongbench.task.rows import Record, Row
from tokenization import TokenCount


@dataclass(frozen=True, slots=True)
class Example:
    """One example of a release: the prompt for a model, and the known answer."""

    id: str
    """The id of its question, the same at every length and placement."""
    file: str
    """The public file of the example, below `mmlb_data/`; its predictions name this file."""
    record: Record
    """The public JSON, as it is in the file."""
    prompt: Prompt
    """The prompt for a model: texts and images in reading order. Paths of images are below `mmlb_image/`."""
    answer: object
    """The answer that metrics compare with: a text or a list of texts; in some tasks a number or an object."""
    evidence: Evidence | None
    """Where the answer is; None if the task does not say."""
    tokens: TokenCount
    """Tokens of text and of images in the prompt, as the build counted them. `mmlongbench.audit` counts them again."""
    facets: Mapping[str, Sequence[str]]
    """The groups that the example is in, by facet, such as `answer format`; a report shows the score of each group."""
    dataset: str
    """The name of its dataset."""
    length: int
    """The length of its file, in tokens."""
    _release: "Release" = field(repr=False, compare=False)

    @property
    def key(self) -> dict[str, object]:
        """The fields that name the example in a line of predictions: `file`, `id`, and `depth` or `permutation` if its
        task has placements.
        """
        placed = {name: self.record[name] for name in ("depth", "permutation") if self.record.get(name) is not None}
        return {"file": self.file, "id": self.id, **placed}

    @property
    def name(self) -> str:
        """The file, the id and the placement, as messages name the example."""
        return f"{self.file}, {name_of(self.record)}"

    @property
    def reserve(self) -> int:
        """The tokens that the build kept free for the answer and a chat template; 0 if the record does not say."""
        reserve = self.record["tokens"].get("reserve")
        return reserve if type(reserve) is int and reserve > 0 else 0

    @property
    def digest(self) -> str:
        """The SHA-256 of what a prediction depends on: the prompt, the bytes of its images, and the answer.

        Raises:
            ReleaseError: the lock does not have an image of the prompt.

        """
        return example_digest(self.prompt, self.answer, self._release.lock)

    def messages(self, images: str = "path", *, system: str | None = None, max_pixels: int | None = None) -> Messages:
        """Return the prompt as a model is sent it: messages in the form of OpenAI's chat completions, with texts and
        images in reading order.

        Args:
            images: how an image is given: `path` (its absolute path), `file-url`, `data-uri` (the bytes of the file in
                base64), or the URL at which `mmlb_image/` is served, such as `http://127.0.0.1:8080/mmlb_image`.
            system: what a system message before the prompt says; None: there is none.
            max_pixels: the maximum width × height; a larger image is made smaller, and `shrunk` of the result names it.
                Only a `data-uri` can hold a smaller image. None: the bytes of the release are sent.

        Returns:
            A list of messages.

        Raises:
            ReleaseError: an image is missing or broken, or `images` is not a known form.

        """
        urls = self._release.image_urls(images, max_pixels)
        return Messages(messages(self.prompt, urls, system), urls.shrunk)


@dataclass(frozen=True, slots=True)
class ExampleSize:
    """An example without its prompt: what names it, and its tokens."""

    id: str
    """The id of its question."""
    placement: float | None
    """The depth or the number of the permutation; None if its task has no placements."""
    tokens: int
    """Tokens of text and of images in the prompt, as the build counted them."""
    has_answer: bool
    """Whether the release knows an answer."""
    question: bytes
    """A digest that is the same for the same question: the same words about the same thing with the same answer, in any
    dataset. If its builder does not say what it is about, it is the question of its dataset with this id."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release of this engine, open for reading. Its files are read only when examples are requested."""

    path: Path
    """Its folder."""
    lock: Lock = field(repr=False)
    """What the release is made of: files with their SHA-256, the resolved manifest, versions, counts."""
    _files: Mapping[str, Mapping[int, "_File"]] = field(repr=False)
    tasks: TaskFiles = field(default=NO_TASK_FILES, repr=False)
    """The task files that were given to open it."""

    @property
    def lock_id(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `build.lock.json`; predictions and scores carry it.

        Raises:
            ReleaseError: the lock cannot be read any more.

        """
        return lock_id(self.path)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of its datasets, in the order of the manifest."""
        return tuple(self._files)

    def lengths(self, dataset: str) -> tuple[int, ...]:
        """Return the lengths of a dataset, in tokens, the shortest first.

        Raises:
            ReleaseError: there is no such dataset.

        """
        return tuple(sorted(self._of(dataset)))

    def examples(self, dataset: str, length: int | str, ids: Collection[str] | None = None) -> Iterator[Example]:
        """Yield the examples of a dataset at a length, in the order of the file; one is in memory at a time.

        Args:
            dataset: its name.
            length: in tokens, or as text such as `"8K"`.
            ids: the ids of the questions; the prompts of other examples are not made. None: all.

        Raises:
            ReleaseError: there is no such dataset or length, the file is missing, or one of its records is damaged.
            DraftError: the dataset's builder cannot read a record.
            ManifestError: `length` is not a valid length.

        """
        files, tokens = self._of(dataset), length_of(length)
        if tokens not in files:
            there = ", ".join(map(format_length, sorted(files)))
            raise ReleaseError(
                f"{self.path.name}: {dataset} has no examples of {format_length(tokens)}; lengths: {there}"
            )
        return files[tokens].examples(self, ids)

    def ids(self, dataset: str, length: int) -> Iterator[str]:
        """Yield the id of each example of a dataset at a length; prompts are not made."""
        return (str(record.get("id")) for _, record in self._of(dataset)[length].records(self))

    def example(self, dataset: str, length: int, id: str, placement: float | None = None) -> Example:
        """Return the example of a question; the prompts of other examples are not made.

        Args:
            dataset: the name of its dataset.
            length: the length, in tokens.
            id: the id of the question.
            placement: the depth or the number of the permutation; None if the example has no placement.

        Raises:
            ReleaseError: there is no such example, or the file cannot be read.

        """
        file = self._of(dataset)[length]
        for where, record in file.records(self):
            if str(record.get("id")) == id and placement_of(record) == placement:
                return file.example(self, record, f"{file.name}, {where}")
        at = "" if placement is None else f" at placement {placement:g}"
        raise ReleaseError(f"{self.path.name}: {file.name} has no example {id!r}{at}; see `mmlongbench verify`")

    def keys(self, dataset: str, length: int) -> Iterator[tuple[str, float | None]]:
        """Yield (id, placement) of each example of a dataset at a length; prompts are not made."""
        return ((str(each.get("id")), placement_of(each)) for _, each in self._of(dataset)[length].records(self))

    def sizes(self, dataset: str, length: int) -> "Iterator[ExampleSize]":
        """Yield the size of each example of a dataset at a length, as the build counted it; prompts are not made.

        Raises:
            ReleaseError: there is no such dataset, or a record is damaged.

        """
        file = self._of(dataset)[length]
        for where, record in file.records(self):
            yield file.size(record, f"{file.name}, {where}")

    def file(self, dataset: str, length: int) -> str:
        """Return the public file of a dataset at a length, below `mmlb_data/`."""
        return self._of(dataset)[length].name

    def image_urls(self, form: str = "path", max_pixels: int | None = None) -> ImageUrls:
        """Return a function from the path of an image below `mmlb_image/` to its address (see `Example.messages`)."""
        return ImageUrls(self.path / IMAGES, form, max_pixels)

    def builder(self, dataset: str) -> Builder[Row]:
        """Return the builder that reads the records of a dataset.

        Raises:
            ReleaseError: there is no such dataset, or it has no file.

        """
        files = self._of(dataset)
        if not files:
            raise ReleaseError(f"{self.path.name}: {dataset} has no file")
        return next(iter(files.values())).builder

    def _of(self, dataset: str) -> Mapping[int, "_File"]:
        if dataset not in self._files:
            hint = nearest(dataset, self._files)
            raise ReleaseError(f"{self.path.name}: no dataset {dataset!r}; there are {', '.join(self._files)}{hint}")
        return self._files[dataset]


def open_release(path: Path, tasks: TaskFiles = NO_TASK_FILES) -> Release:
    """Open a release of this engine: read its lock and find the builders of its datasets. Its task files are used only
    if `tasks` has them.

    Raises:
        ReleaseError: there is no lock, or it cannot be read.
        PluginError: a builder that the lock names is not installed, or is broken.

    """
    lock = read_lock(path)
    names = [name.removeprefix(f"{DATA}/") for name in lock.files if name.startswith(f"{DATA}/")]
    files = {}
    for data in lock.manifest:
        spec, _ = locked_spec(data, tasks=tasks)
        builder = bind(spec).builder
        found = [(name, each) for name in names if (each := recognised(builder, name)) and not each.is_bundle]
        files[spec.name] = {
            each.length: _File(name, each.length, each.form, spec.name, spec.builder, builder) for name, each in found
        }
    return Release(path.absolute(), lock, files, tasks)


@dataclass(frozen=True, slots=True)
class _File:
    """A public file, with the builder that reads its records."""

    name: str
    length: int
    form: FileFormat
    dataset: str
    builder_name: str
    builder: Builder[Row]

    def examples(self, release: Release, ids: Collection[str] | None) -> Iterator[Example]:
        for where, record in self.records(release):
            if ids is None or str(record.get("id")) in ids:
                yield self.example(release, record, f"{self.name}, {where}")

    def records(self, release: Release) -> Iterator[tuple[str, Record]]:
        """Yield (where in the file, record) of each example."""
        path = release.path / DATA / self.name
        try:
            if path.exists() and not path.is_file():  # reading a pipe might never end
                raise ReleaseError(f"{path}: is no file; see `mmlongbench verify`")
            if leads_out(release.path, f"{DATA}/{self.name}"):
                raise ReleaseError(f"{path}: is a link out of the release; see `mmlongbench verify`")
            yield from self.form.unbundle(path)
        except OSError as error:
            raise ReleaseError(
                f"{path}: cannot be read: {error.strerror or error}; see `mmlongbench verify`"
            ) from error

    def size(self, record: Record, where: str) -> ExampleSize:
        id, tokens = str(record.get("id")), _tokens(record, where).total
        with calling("builder", self.builder_name, "a method that reads records", about=where):
            gold = self.builder.gold(record)
            question, cluster = self.builder.question(record), self.builder.cluster(record)
        is_known = bool(question) and bool(cluster)
        said = (str(question), str(cluster), str(gold)) if is_known else (self.dataset, id)
        return ExampleSize(id, placement_of(record), tokens, is_answered(gold), digest(*said))

    def example(self, release: Release, record: Record, where: str) -> Example:
        tokens, id = _tokens(record, where), record.get("id")
        if not isinstance(id, str | int):
            raise ReleaseError(f"{where}: id: expected a text or a whole number, found {id!r:.80}")
        with calling("builder", self.builder_name, "a method that reads records", about=where):
            evidence = self.builder.evidence(record)
            if not isinstance(evidence, Evidence | None):
                raise DraftError(f"evidence() returned a {type(evidence).__name__}, expected mt.Evidence or None")
            return Example(
                id=str(id),
                file=self.name,
                record=record,
                prompt=self.builder.prompt(record),
                answer=self.builder.gold(record),
                evidence=evidence,
                tokens=tokens,
                facets=self.builder.facets(record),
                dataset=self.dataset,
                length=self.length,
                _release=release,
            )


def _tokens(record: Record, where: str) -> TokenCount:
    counted = record.get("tokens")
    text, image = (counted.get("text"), counted.get("image")) if isinstance(counted, dict) else (None, None)
    if type(text) is not int or type(image) is not int or text < 0 or image < 0:
        raise ReleaseError(f"{where}: tokens: expected the numbers `text` and `image`, found {counted!r:.80}")
    return TokenCount(text, image)


LENGTH = 32
"""The number of characters. Servers accept at most 64."""


def custom_id(example: Example, sample: int | None = None) -> str:
    """Return the name of the request for an example. It depends on the example alone: on its file, id and placement,
    and on what a model is sent (see `Example.digest`). So results of another release are not taken for this one's.

    Args:
        example: the example.
        sample: the number of the sample, if an example is sent several times; None: it is sent once.

    Raises:
        ReleaseError: the lock does not have an image of the prompt.

    """
    numbered = {} if sample is None else {"sample": sample}
    named = {**example.key, **numbered, "digest": example.digest}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:LENGTH]
