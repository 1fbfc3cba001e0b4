"""The last step of a build: it sums up what the shards have counted, and writes the lock last."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mmlongbench.building.assets import write_asset_table
from mmlongbench.building.build_dir import Shard, questions_shard
from mmlongbench.building.build_plan import CorpusPlan, DatasetPlan
from mmlongbench.building.canary import canary_of
from mmlongbench.building.executors.executor import Executor
from mmlongbench.building.fingerprints import files_of
from mmlongbench.building.lines import CELLS, NEGATIVES, QUESTIONS, FoundNegatives, Reject, RowCounts
from mmlongbench.building.lines import IMAGES as IMAGE_LINES
from mmlongbench.building.made import check_made, written_cell
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import one_spelling
from mmlongbench.building.stages.cells import cell_shards, described
from mmlongbench.building.stages.images import image_shards
from mmlongbench.building.stages.records import blocks_of
from mmlongbench.corpus.info import read_info
from mmlongbench.documents.pages import PageImages
from mmlongbench.errors import SourceChangedError
from mmlongbench.io.files import sweep, write_whole
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.errata import load_errata
from mmlongbench.release.assets import ASSETS
from mmlongbench.release.layout import IMAGES, ITEMS, LOCK, REJECTS, TOKENIZERS
from mmlongbench.release.lock import (
    CellCounts,
    ClassCounts,
    CorpusCounts,
    DatasetCounts,
    DocumentCounts,
    DomainCounts,
    Lock,
    LockedFile,
    NegativeCounts,
    UnreadableCounts,
    lock_bytes,
    versions,
)
from mmlongbench.task.formats import to_json
from mmlongbench.task.sources import ImageClass, ImageClasses, Sources
from tokenization import tokenizer_file


def finish(plans: list[DatasetPlan], session: Session, executor: Executor) -> Lock:
    """Write what a release still lacks when all its shards are done, and return the lock, which is written last.

    Raises:
        SourceChangedError: a source has changed since it was fingerprinted.
        BuildError: a file of the release has changed since a shard made it.

    """
    build_dir = session.build_dir
    files: dict[str, LockedFile] = dict(session.released.images) if session.released else {}
    datasets = dict[str, DatasetCounts | UnreadableCounts]()
    for plan in plans:
        cells = {}
        for shard in cell_shards(session, plan.spec.name):
            made = written_cell(build_dir, shard)
            files.update(made.files)
            cells[shard.name] = made.counts
        files.update({path: described(build_dir.out / path) for path in _write_negatives(plan, session)})
        datasets[plan.spec.name] = _counts(plan, session, cells)
        files.update(_images(plan, session))
    write_whole(build_dir.out / REJECTS, map(to_json, _rejects(plans, session)))
    files[REJECTS] = described(build_dir.out / REJECTS)
    files |= _keep_tokenizers(plans, build_dir.out)
    unmatched = write_asset_table(plans, session, files)
    files[ASSETS] = described(build_dir.out / ASSETS)
    manifest = [plan.public() for plan in plans]
    parts: dict[str, Any] = {"canary": canary} if (canary := canary_of(plans)) else {}
    parts |= {"unmatched_licences": unmatched} if unmatched else {}
    parts["files"] = dict(sorted(files.items()))
    lock = Lock(format=1, versions=versions(), manifest=manifest, datasets=datasets, **parts)
    check_made(plans, session, files, executor)
    check_sources(plans, session, executor.progress)
    sweep(build_dir.out)
    write_whole(build_dir.out / LOCK, lock_bytes(lock))
    return lock


def _keep_tokenizers(plans: Sequence[DatasetPlan], out: Path) -> dict[str, LockedFile]:
    """Copy the tokenizers that are no part of this package into the release, so that it can be counted anywhere."""
    kept = {}
    for name in sorted({plan.spec.counter.tokenizer for plan in plans}):
        if (file := tokenizer_file(name)) is not None:
            content = file.read_bytes()
            path = f"{TOKENIZERS}/{hashlib.sha256(content).hexdigest()}.json"
            write_whole(out / path, [content])
            kept[path] = described(out / path)
    return kept


def _counts(plan: DatasetPlan, session: Session, cells: dict[str, CellCounts]) -> DatasetCounts:
    """Return what the lock says about a dataset: its counts, its renamed and refused documents, its errata and its
    licence.
    """
    dataset = session.dataset(plan.spec.name)
    rows = session.build_dir.only(questions_shard(plan.spec.name), QUESTIONS, RowCounts)
    parts: dict[str, Any] = {"errata": _errata(plan)} if plan.spec.errata else {}
    if plan.corpus:
        parts |= {"corpus": _corpus(plan.corpus), "negatives": _negatives(plan, session)}
    if dataset.sources.has_image_classes:
        parts["classes"] = _classes(dataset.sources.image_classes)
    documents = _documents(plan, dataset.sources)
    return DatasetCounts(
        questions=rows.counts, cells=cells, documents=documents, licence=plan.spec.licence_text, **parts
    )


def _documents(plan: DatasetPlan, sources: Sources) -> DocumentCounts:
    found = sources.documents if sources.has_documents else None
    usable = found.usable if found else {}
    parts: dict[str, Any] = {
        "images_by_dpi": _images_by_dpi(plan),
        "damaged": {
            id: {str(page + 1): why for page, why in each.damaged.items()}
            for id, each in usable.items()
            if each.damaged
        },
        "hidden_text": {id: len(each.hidden_text) for id, each in usable.items() if each.hidden_text},
    }
    return DocumentCounts(
        usable=len(usable),
        refused={id: str(fault) for id, fault in sorted(found.faults.items())} if found else {},
        renamed={file.id: file.name for file in plan.documents.values() if file.id != file.name},
        **{name: counts for name, counts in parts.items() if counts},
    )


def _corpus(plan: CorpusPlan) -> CorpusCounts:
    """Return the size of a corpus."""
    info = read_info(plan.folder)
    ids = info.wikidata_ids if info.keeps_wikidata_ids else None
    return CorpusCounts(articles=info.articles, passages=info.passages, wikidata_ids=ids)


def _images_by_dpi(plan: DatasetPlan) -> dict[str, int]:
    """Return how many documents the source has as page images, by DPI; documents of unknown DPI are not counted."""
    found = Counter(str(file.pages.dpi) for file in plan.documents.values() if isinstance(file.pages, PageImages))
    return {dpi: count for dpi, count in sorted(found.items()) if dpi != "None"}


def _errata(plan: DatasetPlan) -> dict[str, object]:
    """Return the errata as JSON values, by row id. `QuestionCounts.repaired` and the rejects show the effect of the
    errata.
    """
    errata = load_errata(plan.spec.errata) if plan.spec.errata else {}
    errata = {id: each.model_copy(update={"source": without_secrets(each.source)}) for id, each in errata.items()}
    return {id: erratum.model_dump(mode="json", exclude_defaults=True) for id, erratum in sorted(errata.items())}


def _classes(found: ImageClasses) -> ClassCounts:
    """Return the names of the two splits. For each domain, return the counts of both splits, and the classes that only
    one split has.
    """
    domains: dict[str, list[ImageClass]] = {}
    for each in found.classes.values():
        domains.setdefault(each.domain, []).append(each)
    return ClassCounts(
        splits={"exemplars": found.exemplar_split, "tests": found.test_split},
        domains={
            domain: DomainCounts(
                classes=len(classes),
                exemplars=sum(len(each.exemplars) for each in classes),
                tests=sum(each.tests for each in classes),
                without_exemplars=sorted(each.name for each in classes if not each.exemplars),
                without_tests=sorted(each.name for each in classes if not each.tests),
            )
            for domain, classes in sorted(domains.items())
        },
    )


def _images(plan: DatasetPlan, session: Session) -> dict[str, LockedFile]:
    shards = image_shards(session, plan.spec.name)
    lines = (line for shard in shards for line in session.build_dir.read(shard, IMAGE_LINES))
    return {f"{IMAGES}/{line.path}": LockedFile(bytes=line.bytes, sha256=line.sha256) for line in lines}


def _write_negatives(plan: DatasetPlan, session: Session) -> Iterator[str]:
    """Write a line for each query: how many hard negatives it has, and how many passages were rejected, by reason.
    Yield the path of the file. Without a corpus, write and yield nothing.
    """
    if plan.corpus:
        path = f"{ITEMS}/{plan.spec.name}.negatives.jsonl"
        found = ({"id": e.id, "clean": len(e.numbers), "rejected": e.rejected} for e in _searched(plan, session))
        write_whole(session.build_dir.out / path, map(to_json, found))
        yield path


def _searched(plan: DatasetPlan, session: Session) -> Iterator[FoundNegatives]:
    for block in blocks_of(len(session.questions(plan.spec.name))) if plan.corpus else ():
        yield from session.build_dir.read(Shard("negatives", plan.spec.name, block), NEGATIVES)


def _negatives(plan: DatasetPlan, session: Session) -> NegativeCounts:
    """Return how many passages were rejected, by reason; the smallest number of hard negatives that a query has; and a
    digest of all results of the search.
    """
    rejected: Counter[str] = Counter()
    fewest, found = [], hashlib.sha256()
    for line in _searched(plan, session):
        rejected.update(line.rejected)
        fewest.append(len(line.numbers))
        found.update(to_json({"id": line.id, "numbers": line.numbers, "rejected": line.rejected}))
    return NegativeCounts(
        rejected=dict(sorted(rejected.items())), fewest_clean=min(fewest, default=0), sha256=found.hexdigest()
    )


def _rejects(plans: list[DatasetPlan], session: Session) -> Iterator[dict[str, object]]:
    """Yield the rejects, dataset after dataset: first the rejected rows, then the questions that do not fit, length
    after length.
    """
    for plan in plans:
        read, name = session.build_dir.read, plan.spec.name
        cells = (line for shard in cell_shards(session, name) for line in read(shard, CELLS))
        yield from (line.fields() for line in read(questions_shard(name), QUESTIONS) if isinstance(line, Reject))
        yield from (line.fields() for line in cells if isinstance(line, Reject))


def check_sources(plans: Iterable[DatasetPlan], session: Session, progress: Progress) -> None:
    """List and hash all sources again, to make sure that they have not changed since they were fingerprinted.

    Raises:
        SourceChangedError: a file has changed, is gone or is new.

    """
    files = session.source_files
    with progress.bar("finish: sources compared", files.count()) as advance:
        files.check_all(advance)
    for plan in plans:
        for name, path in plan.sources.items():
            known = files.names(plan.spec.name, f"source.{name}")
            for new in (found for found in files_of(path) if one_spelling(found) not in known):
                raise SourceChangedError(
                    f"{new}: appeared in the source while the release was built (dataset {plan.spec.name!r}, "
                    f"source.{name}); remove it and run the command again, or remove {session.build_dir.out} and "
                    "start the build again"
                )
