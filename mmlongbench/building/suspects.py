"""Finds suspects, annotations of a source that may be wrong, and drafts errata for them (`mmlongbench doctor`). It
changes nothing.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.planning import plan_datasets
from mmlongbench.building.stages.rows import cleaned, raw_rows
from mmlongbench.documents.pages import sizes_of, texts_of
from mmlongbench.errors import ManifestError, SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import bind, calling
from mmlongbench.manifest.model import Manifest
from mmlongbench.task.builder import ExaminingBuilder
from mmlongbench.task.rows import RawRow, Row, RowFault, Suspect
from mmlongbench.task.sources import Document, Documents, Page, Sources

ERRATA_HEAD = """\
# A draft, made by `mmlongbench doctor`. Check each entry: remove it if the source is right; if not, say in `source` how
# you know. A manifest applies this file with `errata: FILE`.
"""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The suspects of one dataset."""

    dataset: str
    rows: int
    suspects: tuple[Suspect, ...]
    """The suspects, in the order of the source's rows."""
    errata: Mapping[str, Mapping[str, object]]
    """The corrections that the builder proposes for some of these suspects, in the form of an errata file."""
    fields: Mapping[str, Mapping[str, object]]
    """The fields of the source's row of each suspect, by id; a row that cannot be read has none."""
    places: Mapping[str, str]
    """Where the row of each suspect stands in the source, by id: file and line or row."""
    not_judged: Mapping[str, int]
    """The number of rows about which nothing is known, by reason."""


def examine(manifest: Manifest, progress: Progress) -> Iterator[Diagnosis]:
    """Examine every dataset whose builder can find suspects."""
    with tempfile.TemporaryDirectory() as folder:
        plans = plan_datasets([bind(spec) for spec in manifest.datasets], BuildDir(Path(folder)), progress)
        able = [(plan, own) for plan in plans if isinstance(own := plan.bound.builder, ExaminingBuilder)]
        if not able:
            names = ", ".join(sorted({plan.spec.shown_builder for plan in plans}))
            raise ManifestError(f"doctor: no builder of this manifest can examine its source ({names})")
        for plan, builder in able:
            yield _examine(plan, builder, progress)


def _examine(plan: DatasetPlan, builder: ExaminingBuilder[Row], progress: Progress) -> Diagnosis:
    reader = plan.bound.reader_type()
    raw: dict[str, RawRow | RowFault] = {}
    again: list[Suspect] = []
    for raw_row in raw_rows(reader, plan.sources, plan.spec.reader):
        if raw_row.id in raw:
            said = f"{_place(raw_row) or 'a later row'} has the id of {_place(raw[raw_row.id]) or 'an earlier row'}"
            again.append(Suspect(raw_row.id, "duplicate-id", f"{said}; a build takes the first and rejects the other"))
        else:
            raw[raw_row.id] = raw_row
    rows, suspects = [], dict[str, Suspect]()
    with progress.bar(f"{plan.spec.name}: rows", len(raw)) as advance:
        for id, raw_row in raw.items():
            row = raw_row if isinstance(raw_row, RowFault) else cleaned(reader, plan.sources, raw_row, plan.spec.reader)
            if isinstance(row, RowFault):
                suspects[id] = Suspect(id, row.fault.reason, str(row.fault))
            else:
                rows.append(row)
            advance()
    with calling("builder", plan.spec.builder, "examined_documents()"):
        ids = set(builder.examined_documents(rows))
    sources = Sources(documents=_documents(plan, ids, progress), rows=rows)
    with calling("builder", plan.spec.builder, "suspects()"):
        examined = list(builder.suspects(rows, sources))
    suspects |= {suspect.id: suspect for suspect in examined if suspect.could_judge}
    not_judged = Counter(suspect.kind for suspect in examined if not suspect.could_judge)
    ordered = (*(suspects[id] for id in raw if id in suspects), *again)
    fields = {id: given.fields for id in suspects if isinstance(given := raw.get(id), RawRow)}
    errata = {}
    for suspect in ordered:
        if suspect.correction and suspect.id in fields:
            was = {field: fields[suspect.id].get(field) for field in suspect.correction}
            source = f"mmlongbench doctor: {suspect.kind}: {suspect.evidence}"
            errata[suspect.id] = {"source": source, "set": dict(suspect.correction), "was": was}
    places = {suspect.id: _place(raw[suspect.id]) for suspect in ordered if suspect.id in raw}
    return Diagnosis(plan.spec.name, len(raw) + len(again), ordered, errata, fields, places, not_judged)


def _place(row: RawRow | RowFault) -> str:
    at = row.fault if isinstance(row, RowFault) else row
    return ", ".join(filter(None, (at.file, at.place)))


def _documents(plan: DatasetPlan, ids: set[str], progress: Progress) -> Documents:
    documents, faults, limits = {}, dict(plan.refused), plan.spec.limits
    texts: dict[str, tuple[str, ...]] = {}
    files = [file for file in plan.documents.values() if file.id in ids]
    with progress.bar(f"{plan.spec.name}: texts", len(files)) as advance:
        for file in files:
            try:
                sizes = sizes_of(file.pages, plan.spec.pages.dpi, limits)
                texts[file.name] = tuple(texts_of(file.pages, limits, ocr=plan.spec.pages.ocr))
            except SourceError as error:
                faults[file.id] = error.fault
            else:
                named = zip(file.named_pages(len(sizes)), sizes, strict=True)
                pages = tuple(Page(number, f"{file.name}/{number}", *size) for (number, _), size in named)
                documents[file.id] = Document(file.id, file.name, file.sha256, pages, missing=file.missing)
            advance()
    return Documents(documents, faults, lambda name: texts[name])
