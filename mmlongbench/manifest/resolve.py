"""Binding a builder to a dataset of a manifest: its options and placements, checked."""

import typing

from pydantic import ValidationError

from mmlongbench.errors import ManifestError, PluginError
from mmlongbench.lengths import format_length
from mmlongbench.manifest.calling import broken, calling
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.manifest.registry import builder_type, is_installed, metric_type, reader_type
from mmlongbench.manifest.validation import explain
from mmlongbench.packing.place import Depth, Placement
from mmlongbench.task.builder import Builder
from mmlongbench.task.rows import Row

MAX_PLACEMENTS = 1000
"""Depths or permutations of a dataset: a bound for mistyped numbers."""


def bind_builder(spec: DatasetSpec) -> Builder:
    """The builder of a dataset, bound to its name and options."""
    kind = builder_type(spec.builder)
    try:
        options = kind.options_type.model_validate(spec.options)
    except ValidationError as error:
        raise ManifestError(explain(error, f"dataset {spec.name!r}, options", kind.options_type, [])) from error
    with calling("builder", spec.builder, "__init__()", about=f"dataset {spec.name!r}"):
        return kind(spec.name, options)


def check_plugins(spec: DatasetSpec, builder: Builder) -> None:
    """Refuse plug-ins of a dataset that cannot work together, before anything is read.

    Raises:
        ManifestError: the rows of the reader lack what the builder takes.
        PluginError: the metric of the builder is not installed, or is broken.

    """
    with calling("builder", spec.builder, "spec", about=f"dataset {spec.name!r}"):
        task = builder.spec
    try:
        metric_type(task.metric)
    except PluginError as error:
        raise broken("builder", spec.builder, "spec.metric", str(error)) from error
    _check_rows(spec, builder)


def missing_metrics(builder: Builder) -> list[str]:
    """Return the further metrics of a builder that are not installed; a build does not need them."""
    return [name for name in builder.spec.further_metrics if not is_installed("metric", name)]


def _check_rows(spec: DatasetSpec, builder: Builder) -> None:
    """Refuse a reader whose rows lack fields of the row type that the builder's `draft` is annotated with."""
    given, taken = reader_type(spec.reader).row_type, _row_taken(builder)
    if taken is None or issubclass(given, taken):
        return
    if missing := sorted(taken.model_fields.keys() - given.model_fields.keys()):
        raise ManifestError(
            f"dataset {spec.name!r}: builder {spec.builder!r} takes rows of {taken.__name__}, reader {spec.reader!r} "
            f"gives rows of {given.__name__}, which have no {missing[0]!r}; choose a reader and a builder that fit"
        )


def _row_taken(builder: Builder) -> type[Row] | None:
    """The row type that a builder's `draft` is annotated with; None where it is not, or cannot be told."""
    try:
        hints = typing.get_type_hints(type(builder).draft)
    except (NameError, TypeError):  # an annotation that is a name for type checkers only
        return None
    return next((hint for hint in hints.values() if isinstance(hint, type) and issubclass(hint, Row)), None)


def check_reserve(spec: DatasetSpec, builder: Builder) -> None:
    """Refuse a reserve that leaves a prompt no room."""
    reserve = builder.spec.reserve if spec.reserve is None else spec.reserve
    for what, length in (("length", min(spec.lengths)), ("admission_length", spec.admission_length)):
        if reserve >= length:
            raise ManifestError(
                f"dataset {spec.name!r}: reserve {reserve} leaves no room at {what} {format_length(length)} "
                f"({length} tokens); lower reserve, or raise {what}"
            )


def placements_of(spec: DatasetSpec, builder: Builder) -> tuple[Placement, ...]:
    """The placements of a dataset: the manifest's where it names any, else the task's own."""
    own = builder.spec.placements
    if spec.placements is None:
        return own.all() if own else (None,)
    if own is None:
        raise ManifestError(f"dataset {spec.name!r}: builder {spec.builder!r} puts nothing at a depth; drop placements")
    if isinstance(spec.placements, int) != (own.kind is not Depth):
        expected = "a list of depths" if own.kind is Depth else "a number of permutations"
        raise ManifestError(f"dataset {spec.name!r}: placements: expected {expected}, found {_found(spec.placements)}")
    if expected := _wrong(spec.placements):
        raise ManifestError(f"dataset {spec.name!r}: placements: expected {expected}, found {_found(spec.placements)}")
    values = range(spec.placements) if isinstance(spec.placements, int) else spec.placements
    return type(own)(own.kind, tuple(values)).all()


def _wrong(placements: int | tuple[float, ...]) -> str:
    """Return what placements should be where they are not; nothing where they are."""
    if isinstance(placements, int):
        return "" if 1 <= placements <= MAX_PLACEMENTS else f"1 to {MAX_PLACEMENTS:,} permutations"
    if not 1 <= len(placements) <= MAX_PLACEMENTS:
        return f"1 to {MAX_PLACEMENTS:,} depths, such as [0, 0.5, 1]"
    if not all(0 <= value <= 1 for value in placements):
        return "depths between 0 and 1"
    return "" if len({*placements}) == len(placements) else "each depth once"


def _found(placements: int | tuple[float, ...]) -> str:
    """Return placements as a message shows them; Python prints no integer of thousands of digits."""
    if isinstance(placements, int):
        return f"{placements:,}" if abs(placements) < 10**15 else "a much larger number"
    return repr(list(placements)) if len(placements) <= MAX_PLACEMENTS else f"{len(placements):,}"
