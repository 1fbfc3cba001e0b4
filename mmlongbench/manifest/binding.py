"""Binds a dataset of a manifest to its plug-ins, once, and checks that these, the placements and the reserve fit."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from mmlongbench.errors import DraftError, ManifestError, MMLongBenchError, PluginError
from mmlongbench.io.printable import has_secret
from mmlongbench.lengths import format_length
from mmlongbench.manifest.model import SAMPLE, DatasetSpec
from mmlongbench.manifest.plugins import (
    PluginCode,
    builder_type,
    contract_fault,
    described,
    metric_type,
    plugin_code,
    reader_type,
)
from mmlongbench.manifest.strict_model import MAX_SHOWN, explain
from mmlongbench.packing.place import Depth, Placement
from mmlongbench.task.builder import Builder
from mmlongbench.task.file_formats import FileFormat, FilePattern
from mmlongbench.task.metric import Metric
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import Bundle, Placements, TaskSpec
from tokenization import CrossModalCounter, TokenizationError

_ENGINE = Path(__file__).parents[1]
_LIBRARIES = {"pydantic", "pydantic_core", "contextlib.py", "<frozen"}
MAX_PLACEMENTS = 1000  # the maximum number of depths or permutations; it catches typing errors


class PluginCallError(DraftError):
    """A method of a plug-in raised an exception, or returned a value that is not allowed."""

    def __init__(self, message: str, method: str = "", row: str = "", fault: str = "", place: str = "") -> None:
        super().__init__(message)
        self.method = method
        """The method, such as `draft()`."""
        self.row = row
        """The id of the row that the method was called for; empty if there is none."""
        self.fault = fault or message
        """What is wrong, without the plug-in, the method and the row."""
        self.place = place
        """The file and the line of the row; empty if there is none."""


@contextmanager
def calling(kind: str, name: str, method: str, row: Row | None = None, about: str = "") -> Iterator[None]:
    """Turn errors inside the block into a `PluginCallError`, which names the plug-in, its method, and the row or what
    else (`about`) the method is called for.

    Errors that users can fix, such as a reject, and errors of disk and memory are not changed; a DraftError is.
    """
    try:
        yield
    except PluginCallError:
        raise
    except DraftError as error:
        raise broken(kind, name, method, str(error), row, about) from error
    except (MMLongBenchError, TokenizationError, OSError, MemoryError):
        raise
    except Exception as error:  # a plug-in's code may fail in any way
        said, line = " ".join(str(error).split())[:MAX_SHOWN], ""
        # the innermost code outside the engine and its libraries
        for frame in traceback.extract_tb(error.__traceback__):
            path = Path(frame.filename)
            is_library = path.is_relative_to(_ENGINE) or _LIBRARIES.intersection(path.parts)
            if not is_library and not path.name.startswith("<"):
                line = f" ({path.name}, line {frame.lineno})"
        fault = f"{type(error).__name__}{': ' if said else ''}{said}{line}"
        raise broken(kind, name, method, fault, row, about) from error


def broken(kind: str, name: str, method: str, fault: str, row: Row | None = None, about: str = "") -> PluginCallError:
    """Return the error for a fault of a plug-in's method.

    The error has the file and place of the row only if the reader has set them.
    """
    at = ", ".join(part for part in (row.file, row.place) if part) if row else ""
    subject = f"row {row.id!r}{f' ({at})' if at else ''}" if row else about
    message = f"{described(kind, name)}: {method}{f', {subject}' if subject else ''}: {fault}"
    fault = fault if row or not about else f"{about}: {fault}"
    return PluginCallError(message, method, row.id if row else "", fault, at)


@dataclass(frozen=True)
class Bound:
    """A dataset of a manifest with its builder, reader, metric and counter. It is made where a manifest, a plan or a
    lock is read, and handed on.

    Only the builder is there at once. A release can be read without the reader, the metric or the tokenizer; each of
    them is found when it is first asked for.
    """

    spec: DatasetSpec
    builder: Builder[Row]
    task: TaskSpec
    """What the builder declares."""

    @cached_property
    def reader_type(self) -> type[Reader[Row]]:
        """The class of the reader. A reader may keep what it has read, so that whoever reads rows makes a new one."""
        return reader_type(self.spec.reader)

    @cached_property
    def metric(self) -> type[Metric]:
        return metric_of(self.builder, self.task.metric)

    @cached_property
    def counter(self) -> CrossModalCounter:
        return self.spec.counter.open()

    @cached_property
    def count_as(self) -> dict[str, CrossModalCounter]:
        """The further counters, by the names of their models."""
        return {counter.name: counter.open() for counter in self.spec.count_as}

    @cached_property
    def code(self) -> dict[str, PluginCode]:
        """The code of the plug-ins that make the bytes of the dataset, by the kind of the plug-in."""
        names = {"builder": self.spec.builder, "reader": self.spec.reader, "metric": self.task.metric}
        if self.spec.source == SAMPLE:
            names["sample"] = self.spec.reader
        own = names.pop("metric") if self.task.metric in self.builder.own_metrics() else ""
        code = {kind: plugin_code(kind, name) for kind, name in names.items()}
        return {**code, "metric": code["builder"].model_copy(update={"name": own})} if own else code

    @property
    def reserve(self) -> int:
        """The tokens that are kept free for the answer; the task's, if the manifest names none."""
        return self.task.reserve if self.spec.reserve is None else self.spec.reserve

    @cached_property
    def names_pictures_by_content(self) -> bool:
        """Whether pictures are named by a hash of their bytes in the release."""
        names = self.spec.pictures.names
        return self.reader_type.names_images_by_content if names is None else names == "content"

    @cached_property
    def placements(self) -> tuple[Placement, ...]:
        """The placements that the manifest gives; by default, those of the task. `(None,)` if the task puts nothing at
        a depth.

        Raises:
            ManifestError: the manifest gives placements that the task cannot have.

        """
        return placements_of(self.spec, self.builder)


def metric_of(builder: Builder[Row], name: str) -> type[Metric]:
    """Return a metric of the task itself, or an installed one, by its name; a `PluginError` if none works."""
    with calling("builder", builder.dataset, "metric"):
        own = builder.own_metrics().get(name)
    if own and (fault := contract_fault("metric", own)):
        raise PluginError(f"metric {name!r} is broken: {fault}")
    return own or metric_type(name)


def bind(spec: DatasetSpec) -> Bound:
    """Bind a dataset to its plug-ins: find its builder, and make it with the name and the options of the dataset.

    Raises:
        PluginError: the builder is not installed, or is broken.
        ManifestError: an option is wrong.
        PluginCallError: the builder cannot be made, or cannot say what its task is.

    """
    kind = builder_type(spec.builder)
    try:
        options = kind.options_type.model_validate(spec.options)
    except ValidationError as error:
        raise ManifestError(explain(error, f"dataset {spec.name!r}, options", kind.options_type, [])) from error
    with calling("builder", spec.builder, "__init__()", about=f"dataset {spec.name!r}"):
        builder = kind(spec.name, options)
    with calling("builder", spec.builder, "spec", about=f"dataset {spec.name!r}"):
        task = builder.spec
    return Bound(spec, builder, task)


def refuse_secrets(spec: DatasetSpec) -> None:
    """Refuse a dataset with a text that may have a secret (`has_secret`), since the lock would publish it. The
    `ManifestError` names the key, but does not repeat the text.
    """

    def secret(value: object, key: str) -> str:
        """Return the key of the first text with a secret in a value; empty if there is none."""
        if isinstance(value, str):
            return key if has_secret(value) else ""
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return next(filter(None, (secret(part, f"{key}.{name}" if key else str(name)) for name, part in inner)), "")

    published = spec.model_dump(mode="json", exclude={"source", "corpus", "errata", "downloads"})
    if key := secret(published, ""):
        raise ManifestError(
            f"dataset {spec.name!r}: {key}: expected a text that may be published, found a URL with a user, a "
            "password, a query, a fragment or parameters, or user:password@host, which the lock would hold; "
            "leave that part out"
        )


def check_plugins(bound: Bound) -> None:
    """Refuse a dataset whose plug-ins, placements or reserve do not fit together, before anything is read.

    Raises:
        ManifestError: the reader gives rows of a type that the builder does not take, there is a corpus or there are
            placements that the builder does not take, or the reserve leaves no room for a prompt.
        PluginError: the reader is not installed, or is broken.
        PluginCallError: the builder's `spec` is not a `TaskSpec`, or its format or metric cannot be used.

    """
    spec, task, where = bound.spec, bound.task, f"dataset {bound.spec.name!r}"
    given, taken = bound.reader_type.row_type, bound.builder.row_type
    if fault := _task_fault(task):
        raise broken("builder", spec.builder, "spec", fault)
    if task.full_prompt and spec.corpus:
        said = "full_prompt measures all units when questions are chosen, before hard negatives are searched for"
        todo = "remove `corpus`"
        raise ManifestError(f"{where}: builder {spec.shown_builder!r} takes no corpus: TaskSpec.{said}; {todo}")
    try:
        _ = bound.metric
    except PluginError as error:
        raise broken("builder", spec.builder, "spec.metric", str(error)) from error
    if not issubclass(given, taken):
        raise ManifestError(
            f"{where}: builder {spec.shown_builder!r} takes rows of {taken.__name__}, reader "
            f"{spec.shown_reader!r} gives rows of {given.__name__}; choose a reader and a builder that fit"
        )
    _ = bound.placements
    for what, length in (("length", min(spec.lengths)), ("admission_length", spec.admission_length)):
        if bound.reserve >= length:
            raise ManifestError(
                f"{where}: reserve {bound.reserve} leaves no room at {what} {format_length(length)} "
                f"({length} tokens); lower reserve, or raise {what}"
            )


def _task_fault(task: object) -> str:
    if not isinstance(task, TaskSpec):
        return f"it is a {type(task).__name__}, expected a TaskSpec"
    parts: dict[str, TaskSpec | Bundle] = {"": task, **({"bundle.": task.bundle} if task.bundle else {})}
    for name, part in parts.items():
        if not isinstance(part.files, FilePattern):
            said = "is not a FilePattern, such as FilePattern('tasks/{name}_K{k}.jsonl')"
            return f"{name}files: {part.files!r:.120} {said}"
        if part.files.fault:
            return f"{name}files {part.files.fault}"
        if not isinstance(part.format, FileFormat):
            kind = part.format if isinstance(part.format, type) else type(part.format)
            return f"{name}format: {kind.__name__} is not an object of a subclass of {FileFormat.__module__}.FileFormat"
    return task.placements.fault if isinstance(task.placements, Placements) else ""


def placements_of(spec: DatasetSpec, builder: Builder[Row]) -> tuple[Placement, ...]:
    """Return the placements that the manifest gives for a dataset (see `Bound.placements`)."""
    own, given, expected = builder.spec.placements, spec.placements, ""
    if given is None:
        return own.all() if own else (None,)
    if own is None:
        raise ManifestError(
            f"dataset {spec.name!r}: builder {spec.shown_builder!r} puts nothing at a depth; leave out placements"
        )
    if isinstance(given, int):
        # Python does not print integers with thousands of digits
        found = f"{given:,}" if abs(given) < 10**15 else "a much larger number"
        if own.kind is Depth:
            expected = "a list of depths"
        elif not 1 <= given <= MAX_PLACEMENTS:
            expected = f"1 to {MAX_PLACEMENTS:,} permutations"
    else:
        found = repr(list(given)) if len(given) <= MAX_PLACEMENTS else f"{len(given):,}"
        if own.kind is not Depth:
            expected = "a number of permutations"
        elif not 1 <= len(given) <= MAX_PLACEMENTS:
            expected = f"1 to {MAX_PLACEMENTS:,} depths, such as [0, 0.5, 1]"
        elif not all(0 <= value <= 1 for value in given):
            expected = "depths between 0 and 1"
        elif len({*given}) < len(given):
            expected = "each depth once"
    if expected:
        raise ManifestError(f"dataset {spec.name!r}: placements: expected {expected}, found {found}")
    values = range(given) if isinstance(given, int) else given
    return replace(own, values=tuple(values)).all()
