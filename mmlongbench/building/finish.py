"""The last step of a build: it sums up what the shards have counted, and writes the lock last."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from mmlongbench.building.asset_table import write_asset_table
from mmlongbench.building.build_dir import Shard, blocks, questions_shard
from mmlongbench.building.build_plan import DatasetPlan, canary_of
from mmlongbench.building.damage import check_made, written_cell
from mmlongbench.building.executors.executor import Executor
from mmlongbench.building.lines import CELLS, NEGATIVES, QUESTIONS, RowCounts
from mmlongbench.building.lines import IMAGES as IMAGE_LINES
from mmlongbench.building.session import Session
from mmlongbench.building.source_files import files_of, one_spelling
from mmlongbench.building.stages.cells import cell_shards, described
from mmlongbench.building.stages.images import image_shards
from mmlongbench.corpus.corpus import read_info
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
from mmlongbench.release.rejects import Reject
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
        cells, parts = {}, dict[str, Any]()
        for shard in cell_shards(session, plan.spec.name):
            made = written_cell(build_dir, shard)
            files.update(made.files)
            cells[shard.name] = made.counts
        if plan.corpus:
            path = f"{ITEMS}/{plan.spec.name}.negatives.jsonl"
            parts["negatives"] = _write_negatives(build_dir.out / path, plan, session)
            files[path] = described(build_dir.out / path)
        datasets[plan.spec.name] = _counts(plan, session, cells, parts)
        for shard in image_shards(session, plan.spec.name):
            for line in build_dir.read(shard, IMAGE_LINES):
                files[f"{IMAGES}/{line.path}"] = LockedFile(bytes=line.bytes, sha256=line.sha256)
    write_whole(build_dir.out / REJECTS, map(to_json, _rejects(plans, session)))
    files[REJECTS] = described(build_dir.out / REJECTS)
    files |= _keep_tokenizers(plans, build_dir.out)
    unmatched = write_asset_table(plans, session, files)
    files[ASSETS] = described(build_dir.out / ASSETS)
    manifest = [plan.public() for plan in plans]
    more: dict[str, Any] = {"canary": canary} if (canary := canary_of(plans)) else {}
    more |= {"unmatched_licences": unmatched} if unmatched else {}
    more["files"] = dict(sorted(files.items()))
    lock = Lock(format=1, versions=versions(), manifest=manifest, datasets=datasets, **more)
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


def _counts(plan: DatasetPlan, session: Session, cells: dict[str, CellCounts], parts: dict[str, Any]) -> DatasetCounts:
    """Return what the lock says about a dataset: its counts, its renamed and refused documents, its errata and its
    licence. `parts` has what is counted already.
    """
    sources = session.dataset(plan.spec.name).sources
    rows = session.build_dir.only(questions_shard(plan.spec.name), QUESTIONS, RowCounts)
    if plan.spec.errata:  # `QuestionCounts.repaired` and the rejects show their effect
        errata = sorted(load_errata(plan.spec.errata).items())
        hidden = {id: each.model_copy(update={"source": without_secrets(each.source)}) for id, each in errata}
        parts["errata"] = {id: each.model_dump(mode="json", exclude_defaults=True) for id, each in hidden.items()}
    if plan.corpus:
        info = read_info(plan.corpus.folder)
        ids = info.wikidata_ids if info.keeps_wikidata_ids else None
        parts["corpus"] = CorpusCounts(articles=info.articles, passages=info.passages, wikidata_ids=ids)
    if sources.has_image_classes:
        parts["classes"] = _classes(sources.image_classes)
    documents, licence = _documents(plan, sources), plan.spec.licence_text
    return DatasetCounts(questions=rows.counts, cells=cells, documents=documents, licence=licence, **parts)


def _documents(plan: DatasetPlan, sources: Sources) -> DocumentCounts:
    usable = sources.documents.usable if sources.has_documents else {}
    faults = sources.documents.faults if sources.has_documents else {}
    resolutions = Counter(
        str(file.pages.dpi)
        for file in plan.documents.values()
        if isinstance(file.pages, PageImages) and file.pages.dpi is not None
    )
    damaged = {
        id: {str(page + 1): why for page, why in document.damaged.items()}
        for id, document in usable.items()
        if document.damaged
    }
    hidden = {id: len(document.hidden_text) for id, document in usable.items() if document.hidden_text}
    parts: dict[str, Any] = {
        "images_by_dpi": dict(sorted(resolutions.items())),
        "damaged": damaged,
        "hidden_text": hidden,
    }
    return DocumentCounts(
        usable=len(usable),
        refused={id: str(fault) for id, fault in sorted(faults.items())},
        renamed={file.id: file.name for file in plan.documents.values() if file.id != file.name},
        **{name: counts for name, counts in parts.items() if counts},
    )


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


def _write_negatives(path: Path, plan: DatasetPlan, session: Session) -> NegativeCounts:
    """Write a line for each query: how many hard negatives it has, and how many passages were rejected, by reason.
    Return these counts for all queries, the smallest number of hard negatives, and a digest of all results.
    """
    rejected: Counter[str] = Counter()
    fewest, digest = list[int](), hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for block in blocks(len(session.questions(plan.spec.name))):
            for line in session.build_dir.read(Shard("negatives", plan.spec.name, block), NEGATIVES):
                rejected.update(line.rejected)
                fewest.append(len(line.numbers))
                digest.update(to_json({"id": line.id, "numbers": line.numbers, "rejected": line.rejected}))
                yield to_json({"id": line.id, "clean": len(line.numbers), "rejected": line.rejected})

    write_whole(path, lines())
    return NegativeCounts(
        rejected=dict(sorted(rejected.items())), fewest_clean=min(fewest, default=0), sha256=digest.hexdigest()
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
