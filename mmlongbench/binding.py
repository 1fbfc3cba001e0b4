"""Binding a builder to a dataset of a manifest: its options and placements, checked."""

from pydantic import ValidationError

from mmlongbench.errors import ManifestError
from mmlongbench.manifest import DatasetSpec, explain
from mmlongbench.packing.budget import format_length
from mmlongbench.packing.placing import Depth, Placement
from mmlongbench.plugins import builder_type
from mmlongbench.task import Builder

MAX_PLACEMENTS = 1000
"""Depths or permutations of a dataset: a bound for mistyped numbers."""


def bind_builder(spec: DatasetSpec) -> Builder:
    """The builder of a dataset, bound to its name and options."""
    kind = builder_type(spec.builder)
    try:
        options = kind.options_type.model_validate(spec.options)
    except ValidationError as error:
        raise ManifestError(explain(error, f"dataset {spec.name!r}, options", kind.options_type, [])) from error
    return kind(spec.name, options)


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
