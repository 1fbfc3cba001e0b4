"""The doctor: what may be wrong with a source's annotations, as a draft of errata. Nothing is changed."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan, plan_datasets
from mmlongbench.building.dataset import limits_of
from mmlongbench.documents.page_store import sizes_of, texts_of
from mmlongbench.errors import Fault, ManifestError, SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.registry import reader_type
from mmlongbench.manifest.resolve import bind_builder
from mmlongbench.task.rows import RawRow, Row, RowFault, Suspect, at_place
from mmlongbench.task.sources import Document, Page, World

_HEAD = """\
# A draft, made by `mmlongbench doctor`: look at each, take out what is right as it is, and say where the rest is known
# from (`source`). A manifest applies it with `errata: FILE`.
"""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found in one dataset."""

    dataset: str
    rows: int
    suspects: tuple[Suspect, ...]
    """In the order of the source's rows."""
    errata: Mapping[str, Mapping[str, Any]]
    """The corrections that follow, in the form of an errata file."""


def examine(manifest: Manifest, progress: Progress) -> Iterator[Diagnosis]:
    """Examine every dataset whose builder can tell suspects.

    Raises:
        ManifestError: none can, or a reader cannot correct rows.

    """
    with tempfile.TemporaryDirectory() as folder:
        plans = plan_datasets(manifest, BuildDir(Path(folder)), progress)
        able = [plan for plan in plans if hasattr(bind_builder(plan.spec), "suspects")]
        if not able:
            names = ", ".join(sorted({plan.spec.builder for plan in plans}))
            raise ManifestError(f"doctor: no builder of this manifest can examine its source ({names})")
        for plan in able:
            yield _examine(plan, progress)


def errata_file(errata: Mapping[str, Mapping[str, Any]]) -> str:
    """The errata as YAML, with a line on what to do with them."""
    return _HEAD + "".join(
        yaml.safe_dump({id: dict(erratum)}, allow_unicode=True, sort_keys=False, width=110)
        for id, erratum in errata.items()
    )


def _examine(plan: DatasetPlan, progress: Progress) -> Diagnosis:
    reader: Any = reader_type(plan.spec.reader)()
    if not hasattr(reader, "raw_rows"):
        raise ManifestError(f"dataset {plan.spec.name!r}: the reader {plan.spec.reader!r} cannot correct rows")
    raw: dict[str, RawRow] = {}
    for each in reader.raw_rows(plan.sources):
        raw.setdefault(each.id, each)  # of two rows of one id a build takes the first
    rows, suspects = [], dict[str, Suspect]()
    for each in raw.values():
        found = _cleaned(reader, each)
        if isinstance(found, RowFault):
            suspects[each.id] = Suspect(each.id, found.fault.reason, str(found.fault))
        else:
            rows.append(found)
    world = _world(plan, {str(doc) for row in rows if (doc := getattr(row, "doc", None))}, progress)
    builder: Any = bind_builder(plan.spec)
    suspects |= {suspect.id: suspect for suspect in builder.suspects(rows, world)}
    ordered = tuple(suspects[id] for id in raw if id in suspects)
    return Diagnosis(plan.spec.name, len(raw), ordered, dict(_errata(ordered, raw)))


def _cleaned(reader: Any, raw: RawRow) -> Row | RowFault:  # noqa: ANN401  (a CorrectableReader)
    found = raw.value if isinstance(raw.value, Fault) else reader.row(raw.id, raw.value)
    return at_place(raw.id, found, raw.file, raw.place)


def _errata(suspects: Sequence[Suspect], raw: Mapping[str, RawRow]) -> Iterable[tuple[str, dict[str, Any]]]:
    for suspect in suspects:
        fields = raw[suspect.id].value
        if suspect.correction and not isinstance(fields, Fault):
            was = {field: fields.get(field) for field in suspect.correction}
            said = f"mmlongbench doctor: {suspect.kind}: {suspect.evidence}"
            yield suspect.id, {"source": said, "set": dict(suspect.correction), "was": was}


def _world(plan: DatasetPlan, asked: set[str], progress: Progress) -> World:
    """The documents that rows are about, with the texts of their pages."""
    documents, faults, limits = {}, dict(plan.refused), limits_of(plan.spec)
    texts: dict[str, tuple[str, ...]] = {}
    files = [file for file in plan.documents.values() if file.id in asked]
    with progress.bar(f"{plan.spec.name}: texts", len(files)) as advance:
        for file in files:
            try:
                sizes = sizes_of(file.pages, plan.spec.pages.dpi, limits)
                texts[file.name] = tuple(texts_of(file.pages, limits, ocr=plan.spec.pages.ocr))
            except SourceError as error:
                faults[file.id] = error.fault
            else:
                pages = tuple(Page(n, f"{file.name}/{n}", width, height) for n, (width, height) in enumerate(sizes))
                documents[file.id] = Document(file.id, file.name, file.sha256, pages)
            advance()
    return World(documents, faults, texts=cache(lambda name: texts[name]))
