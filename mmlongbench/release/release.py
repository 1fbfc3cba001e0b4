"""A release, open for reading: its files, its datasets, and its examples one at a time.

There is one way to open a release of this engine, a folder that `publish` wrote, and public files of other origin.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mmlongbench.documents.image_urls import ImageUrls
from mmlongbench.draws import digest
from mmlongbench.errors import DraftError, ReleaseError, nearest
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.model import length_of
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.messages import Messages, messages
from mmlongbench.prompt import Prompt
from mmlongbench.release.example_cost import ImageSizes, counted, placement_of
from mmlongbench.release.items import keys_of_items
from mmlongbench.release.layout import CLAIMS, DATA, IMAGES, LOCK, by_length, name_of
from mmlongbench.release.lock import Lock, example_digest, files_below, leads_out, lock_id, read_lock
from mmlongbench.release.published_folder import is_publication, restored
from mmlongbench.release.read_dataset import (
    ReadDataset,
    dataset_of_builder,
    installed_datasets,
    locked_dataset,
    with_variant,
)
from mmlongbench.task.builder import Builder
from mmlongbench.task.file_formats import JSON_LINES, FileFormat
from mmlongbench.task.metric import Evidence, is_answered
from mmlongbench.task.rows import Record, Row
from tokenization import TokenCount

NO_LOCK = Lock(format=1, manifest=[], datasets={}, files={})


@dataclass(frozen=True, slots=True)
class PublicFile:
    """One public file, and how to read it."""

    name: str
    """The path below `mmlb_data/`."""
    path: Path
    dataset: ReadDataset | None
    """None if no known dataset has such a file."""
    length: int
    form: FileFormat
    sizes: ImageSizes
    sha256: str | None = None
    """The SHA-256 in the lock; None if the lock does not have the file."""
    is_bundle: bool = False
    """Whether it is the second file that a task makes of its records (`TaskSpec.bundle`)."""
    is_part: bool = False
    """Whether a publication has only a part of its examples, or has them in another order, so that its bytes are not
    those of the lock."""


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
    """Texts and images in reading order. Paths of images are below `mmlb_image/`."""
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
    variant: str = ""
    """The form of `prompt`, of which `tokens` are counted anew; empty: the released form."""

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
        """The SHA-256 of what a prediction depends on: the released prompt, the bytes of its images, and the answer
        (see `example_digest`).
        """
        prompt = self._release.builder(self.dataset).prompt(self.record) if self.variant else self.prompt
        return example_digest(prompt, self.answer, self._release.lock)

    def messages(self, images: str = "path", *, system: str | None = None, max_pixels: int | None = None) -> Messages:
        """Return the prompt as a model is sent it, in the form of OpenAI's chat completions.

        Args:
            images: how an image is given: `path` (its absolute path), `file-url`, `data-uri` (the bytes of the file in
                base64), or the URL at which `mmlb_image/` is served, such as `http://127.0.0.1:8080/mmlb_image`.
            system: what a system message before the prompt says; None: there is none.
            max_pixels: the maximum width × height; a larger image is made smaller, and `shrunk` of the result names it.
                Only a `data-uri` can hold a smaller image. None: the bytes of the release are sent.

        Raises:
            ReleaseError: an image is missing or broken, or `images` is not a known form.

        """
        urls = self._release.image_urls(images, max_pixels)
        return Messages(messages(self.prompt, urls, system), urls.shrunk)


@dataclass(frozen=True, slots=True)
class ExampleSize:
    """An example without its prompt: what names it, and its tokens."""

    id: str
    placement: float | None
    """The depth or the number of the permutation; None if its task has no placements."""
    tokens: int
    """Tokens of text and of images in the prompt, as the build counted them."""
    has_answer: bool
    question: bytes
    """A digest that is the same for the same question: the same words about the same thing with the same answer, in any
    dataset. If its builder does not say what it is about, it is the question of its dataset with this id."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release, open for reading. Its files are read only when examples are requested."""

    path: Path
    """Its folder; of a publication, the folder in the user's cache in which its files were made again; of files of
    other origin, the first path that was given."""
    lock: Lock = field(repr=False)
    """What the release is made of: files with their SHA-256, the resolved manifest, versions, counts. Files of other
    origin have an empty one."""
    files: tuple[PublicFile, ...] = field(repr=False)
    """The public files that are there, sorted by name; numbers in names, such as lengths, are compared as numbers."""
    missing: tuple[str, ...] = field(repr=False)
    """The public files that the lock names but that do not exist."""
    _datasets: Mapping[str, ReadDataset] = field(repr=False)
    _by_length: Mapping[str, Mapping[int, PublicFile]] = field(repr=False)
    """The files with examples, also missing ones, by dataset and length."""
    tasks: TaskFiles = field(default=NO_TASK_FILES, repr=False)
    """The task files that were given to open it."""
    is_publication: bool = False
    """Whether it was made again from a folder that `publish` wrote, which has no items and no rejects, and may leave
    out examples."""

    @classmethod
    def open(
        cls,
        *paths: Path,
        images: Path | None = None,
        tokenizer: str | None = None,
        variant: str = "",
        builder: str = "",
        tasks: TaskFiles = NO_TASK_FILES,
        with_images: bool = True,
    ) -> "Release":
        """Open a release of this engine or a folder that `publish` wrote, which have a lock, or public files of other
        origin. The latter are recognised by their folders and names. Task files are used only if `tasks` has them.

        Args:
            paths: the folder of a release or publication; or files such as
                `mmlb_data/NIAH/vh_single_test_1000_K64_dep6.jsonl`, or folders of them.
            images: the folder that the records' image paths start from; `mmlb_image` beside `mmlb_data` by default.
            tokenizer: the path or hub id of the tokenizer that the release was counted with; None: it is found by the
                name in the lock.
            variant: another form of the prompts that builders offer.
            builder: the name of the builder of files with unknown names, with its default options; empty: they have
                none.
            tasks: the task files that the release was built with.
            with_images: whether the images of a publication are needed.

        Raises:
            ReleaseError: the lock or the publication cannot be read, no file has a known name, no builder offers the
                variant, no folder of images is found, or no dataset was counted with the tokenizer.
            PluginError: a builder that the lock names is not installed, or is broken.

        """
        if len(paths) == 1 and (paths[0] / LOCK).is_file():
            return _open_locked(paths[0], images, tokenizer, variant, tasks, with_images=with_images)
        if tokenizer:  # public files of other origin are counted as the benchmark counts
            said = f"{paths[0]} has no {LOCK}, so its text is counted with Llama 2; leave it out"
            raise ReleaseError(f"--tokenizer {tokenizer}: {said}, or give a model's with --text-tokenizer")
        return _open_public(paths, images, variant, builder)

    @property
    def is_locked(self) -> bool:
        """Whether it has a lock; False for files of other origin."""
        return self.lock is not NO_LOCK

    @property
    def lock_id(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of `build.lock.json`; predictions and scores carry it. A
        `ReleaseError` if the lock cannot be read any more.
        """
        return lock_id(self.path)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The names of its datasets, in the order of the manifest."""
        return tuple(self._datasets)

    def dataset(self, name: str) -> ReadDataset:
        """Return a dataset; raises ReleaseError if there is no such dataset."""
        if name not in self._datasets:
            hint = nearest(name, self._datasets)
            raise ReleaseError(f"{self.path.name}: no dataset {name!r}; there are {', '.join(self._datasets)}{hint}")
        return self._datasets[name]

    def builder(self, dataset: str) -> Builder[Row]:
        """Return the builder that reads the records of a dataset."""
        return self.dataset(dataset).builder

    def load_tokenizers(self) -> None:
        """Load the tokenizers of all datasets now, so that a missing or wrong one is named before a file is read (see
        `ReadDataset.counter`).
        """
        for dataset in self._datasets.values():
            _ = dataset.counter, dataset.count_as

    def lengths(self, dataset: str) -> tuple[int, ...]:
        """Return the lengths of a dataset, in tokens, the shortest first."""
        return tuple(sorted(self._files_of(dataset)))

    def file(self, dataset: str, length: int) -> PublicFile:
        """Return the public file of a dataset at a length."""
        return self._files_of(dataset)[length]

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
        files, tokens = self._files_of(dataset), length_of(length)
        if tokens not in files:
            there = ", ".join(map(format_length, sorted(files)))
            raise ReleaseError(
                f"{self.path.name}: {dataset} has no examples of {format_length(tokens)}; lengths: {there}"
            )
        return (
            self._example(files[tokens], record, where)
            for where, record in self._records(files[tokens])
            if ids is None or str(record.get("id")) in ids
        )

    def example(self, dataset: str, length: int, id: str, placement: float | None = None) -> Example:
        """Return the example of a question; `placement` is the depth or the number of the permutation, if any."""
        file = self._files_of(dataset)[length]
        for where, record in self._records(file):
            if str(record.get("id")) == id and placement_of(record) == placement:
                return self._example(file, record, where)
        at = "" if placement is None else f" at placement {placement:g}"
        raise ReleaseError(f"{self.path.name}: {file.name} has no example {id!r}{at}; see `mmlongbench verify`")

    def ids(self, dataset: str, length: int) -> Iterator[str]:
        """Yield the id of each example of a dataset at a length; prompts are not made."""
        return (str(record.get("id")) for _, record in self._records(self._files_of(dataset)[length]))

    def keys(self, dataset: str, length: int) -> Iterator[tuple[str, float | None]]:
        """Yield (id, placement) of each example of a dataset at a length, to find an example by; prompts are not made.

        They are read from the items, which is much faster, or from the records if the items lack some, or may have
        another spelling of ids. Items that are damaged may have other ids than the records, which `ids` reads.
        """
        file, cell = self._files_of(dataset)[length], self.lock.cell(dataset, length)
        try:
            keys = keys_of_items(self.path, file.name) if cell else None
        except ReleaseError:  # is reported where the items are needed
            keys = None
        if keys and cell and len(keys) == cell.examples and not any("\\" in id for id, _ in keys):
            return iter(keys)
        return ((str(record.get("id")), placement_of(record)) for _, record in self._records(file))

    def sizes(self, dataset: str, length: int) -> Iterator[ExampleSize]:
        """Yield the size of each example of a dataset at a length, as the build counted it; prompts are not made."""
        file, builder = self._files_of(dataset)[length], self.dataset(dataset).builder
        for where, record in self._records(file):
            id, tokens = str(record.get("id")), _tokens(record, where).total
            with calling("builder", self.dataset(dataset).spec.builder, "a method that reads records", about=where):
                gold = builder.answer_of(record)
                question, cluster = builder.question_of(record), builder.cluster(record)
            same = (str(question), str(cluster), str(gold)) if question and cluster else (dataset, id)
            yield ExampleSize(id, placement_of(record), tokens, is_answered(gold), digest(*same))

    def image_urls(self, form: str = "path", max_pixels: int | None = None) -> ImageUrls:
        """Return a function from the path of an image below `mmlb_image/` to its address (see `Example.messages`)."""
        return ImageUrls(self.path / IMAGES, form, max_pixels)

    def _files_of(self, dataset: str) -> Mapping[int, PublicFile]:
        self.dataset(dataset)  # raises an error if there is none
        return self._by_length[dataset]

    def _records(self, file: PublicFile) -> Iterator[tuple[str, Record]]:
        """Yield (file and place in it, record) of each example."""
        try:
            if file.path.exists() and not file.path.is_file():  # reading a pipe might never end
                raise ReleaseError(f"{file.path}: is no file; see `mmlongbench verify`")
            if self.is_locked and leads_out(self.path, f"{DATA}/{file.name}"):
                raise ReleaseError(f"{file.path}: is a link out of the release; see `mmlongbench verify`")
            for where, record in file.form.unbundle(file.path):
                yield f"{file.name}, {where}", record
        except OSError as error:
            raise ReleaseError(
                f"{file.path}: cannot be read: {error.strerror or error}; see `mmlongbench verify`"
            ) from error

    def _example(self, file: PublicFile, record: Record, where: str) -> Example:
        tokens, id = _tokens(record, where), record.get("id")
        if not isinstance(id, str | int):
            raise ReleaseError(f"{where}: id: expected a text or a whole number, found {id!r:.80}")
        if file.dataset is None:
            raise ReleaseError(f"{where}: no dataset has a file of this name")
        builder, variant = file.dataset.builder, file.dataset.variant
        with calling("builder", file.dataset.spec.builder, "a method that reads records", about=where):
            evidence, prompt = builder.evidence(record), file.dataset.prompt(record)
            if variant:
                tokens = counted(prompt, file.dataset.counter, file.sizes)
            if not isinstance(evidence, Evidence | None):
                raise DraftError(f"evidence() returned a {type(evidence).__name__}, expected mt.Evidence or None")
            return Example(
                id=str(id),
                file=file.name,
                record=record,
                prompt=prompt,
                answer=builder.answer_of(record),
                evidence=evidence,
                tokens=tokens,
                facets=builder.facets(record),
                dataset=file.dataset.name,
                length=file.length,
                _release=self,
                variant=variant,
            )


def _tokens(record: Record, where: str) -> TokenCount:
    counted = record.get("tokens")
    text, image = (counted.get("text"), counted.get("image")) if isinstance(counted, dict) else (None, None)
    if type(text) is not int or type(image) is not int or text < 0 or image < 0:
        raise ReleaseError(f"{where}: tokens: expected the numbers `text` and `image`, found {counted!r:.80}")
    return TokenCount(text, image)


def open_release(path: Path, tasks: TaskFiles = NO_TASK_FILES, variant: str = "") -> Release:
    """Open a release that has a lock (see `Release.open`). A folder without a lock is a ReleaseError."""
    if not (path / LOCK).is_file():
        read_lock(path)  # says what is missing
    return Release.open(path, tasks=tasks, variant=variant)


def _open_locked(
    folder: Path, images: Path | None, tokenizer: str | None, variant: str, tasks: TaskFiles, *, with_images: bool
) -> Release:
    lock = read_lock(folder)
    datasets = [locked_dataset(data, tokenizer, tasks, folder) for data in lock.manifest]
    if tokenizer and all(dataset.counter.text.name != tokenizer for dataset in datasets):
        raise ReleaseError(f"--tokenizer {tokenizer}: no dataset of {folder} was counted with it; leave it out")
    datasets = with_variant(datasets, variant)
    locked = {
        name.removeprefix(f"{DATA}/"): file.sha256 for name, file in lock.files.items() if name.startswith(f"{DATA}/")
    }
    root, parts, was_published = folder.absolute(), list[str](), is_publication(folder)
    if was_published:
        known = {}
        for name, dataset in ((name, dataset) for name in locked for dataset in datasets):
            if (recognised := dataset.recognise(name)) and not recognised[2]:
                cell = lock.cell(dataset.spec.name, recognised[0])
                known[name] = (recognised[1], cell.examples if cell else 0)
        root, parts = restored(folder, lock, known, with_images=with_images)
    data, sizes = root / DATA, ImageSizes(images or root / IMAGES)
    there = {file.relative_to(data).as_posix() for file in files_below(data) if not file.name.endswith(CLAIMS)}
    names = there if was_published else {*locked, *there}  # what a publication does not have was left out
    files = [
        replace(_public_file(name, data / name, datasets, sizes, locked.get(name)), is_part=name in parts)
        for name in sorted(names, key=by_length)
    ]
    return Release(
        root,
        lock,
        files=tuple(file for file in files if file.name in there),
        missing=tuple(file.name for file in files if file.name not in there),
        _datasets={dataset.spec.name: dataset for dataset in datasets},
        _by_length=_by_length(datasets, (file for file in files if file.name in locked)),
        tasks=tasks,
        is_publication=was_published,
    )


def _open_public(paths: Sequence[Path], images: Path | None, variant: str, builder: str) -> Release:
    listed = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*_K*.json*")))]
    datasets = installed_datasets(variant)
    roots: dict[Path, ImageSizes] = {}
    files: dict[str, PublicFile] = {}
    for path in dict.fromkeys(file.resolve() for file in listed):
        beside = (folder.parent / IMAGES for folder in path.parents if folder.name == DATA)
        root = images or next((folder for folder in beside if folder.is_dir()), None)
        if root is None:
            raise ReleaseError(f"{path}: no {IMAGES}/ beside {DATA}/; give the folder of images with --images")
        name = "/".join(path.parts[-2:])
        file = _public_file(name, path, datasets, roots.setdefault(root, ImageSizes(root)))
        if file.dataset is None and builder:
            dataset, length, form, is_bundle = dataset_of_builder(builder, path, variant)
            file = replace(file, dataset=dataset, length=length, form=form, is_bundle=is_bundle)
        unique = name if name not in files else path.as_posix()
        files[unique] = replace(file, name=unique)
    files = {name: files[name] for name in sorted(files, key=by_length)}
    named = {file.dataset.name: file.dataset for file in files.values() if file.dataset}
    if not named:
        names = ", ".join(sorted({f"{each.builder.spec.files.template} ({each.name})" for each in datasets})[:6])
        raise ReleaseError(
            f"{', '.join(map(str, paths))}: no public file with a known name, such as {names}, …; "
            "keep the files in their folders (documentQA/, NIAH/, …), or name their builder with --builder"
        )
    by_dataset = _by_length(named.values(), files.values())
    return Release(paths[0].absolute(), NO_LOCK, tuple(files.values()), (), named, by_dataset)


def _by_length(datasets: Iterable[ReadDataset], files: Iterable[PublicFile]) -> Mapping[str, Mapping[int, PublicFile]]:
    files_of: dict[str, dict[int, PublicFile]] = {dataset.name: {} for dataset in datasets}
    for file in files:
        if file.dataset and not file.is_bundle:
            files_of[file.dataset.name][file.length] = file
    return files_of


def _public_file(
    name: str, path: Path, datasets: Iterable[ReadDataset], sizes: ImageSizes, sha256: str | None = None
) -> PublicFile:
    """Return a public file with the facts that its name gives; a file with an unknown name belongs to no dataset."""
    for dataset in datasets:
        if known := dataset.recognise(name):
            length, form, is_bundle = known
            return PublicFile(name, path, dataset, length, form, sizes, sha256, is_bundle)
    return PublicFile(name, path, None, 0, JSON_LINES, sizes, sha256)


def custom_id(example: Example, sample: int | None = None) -> str:
    """Return the name of the request for an example. It depends on the example alone: on its file, id and placement,
    and on what a model is sent (see `Example.digest`). So results of another release are not taken for this one's.

    `sample` is the number of the sample, if an example is sent several times.
    """
    numbered = {} if sample is None else {"sample": sample}
    form = {"context": example.variant} if example.variant else {}
    named = {**example.key, **numbered, "digest": example.digest, **form}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:32]  # servers accept 64
