"""The last step of a build: it sums up what the shards have counted, checks that files and sources are as they were,
and writes the lock last.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mmlongbench.building.asset_table import write_asset_table
from mmlongbench.building.build_dir import block_shards, questions_shard
from mmlongbench.building.build_plan import DatasetPlan, canary_of
from mmlongbench.building.executors import Executor
from mmlongbench.building.finished_release import damaged
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import CELLS, NEGATIVES, QUESTIONS, RowCounts, WrittenCell
from mmlongbench.building.shard_results import IMAGES as IMAGE_LINES
from mmlongbench.building.source_files import Hashed, files_of, hash_files, one_spelling
from mmlongbench.building.stages.cells import cell_shards, locked_file
from mmlongbench.building.stages.images import image_shards
from mmlongbench.corpus.corpus import read_info
from mmlongbench.documents.pages import PageImages
from mmlongbench.errors import BuildError, SourceChangedError
from mmlongbench.io.files import sweep, write_whole
from mmlongbench.io.printable import without_secrets
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
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.sources import ImageClass, ImageClasses, Sources
from tokenization import tokenizer_json


def finish(session: Session, executor: Executor) -> Lock:
    """Write what a release still lacks when all its shards are done, and return the lock, which is written last, unless
    a source or a file of the release has changed.
    """
    build_dir, out, plans = session.build_dir, session.build_dir.out, session.plans.values()
    files: dict[str, LockedFile] = dict(session.released.images) if session.released else {}
    datasets: dict[str, DatasetCounts | UnreadableCounts] = {}
    for name, plan in session.plans.items():
        cells: dict[str, CellCounts] = {}
        for shard in cell_shards(session, name):
            cell = build_dir.only(shard, CELLS, WrittenCell)
            files.update(cell.files)
            cells[shard.name] = cell.counts
        negatives = None
        if plan.corpus:
            path = f"{ITEMS}/{name}.negatives.jsonl"
            negatives = _write_negatives(out / path, plan, session)
            files[path] = locked_file(out / path)
        datasets[name] = _counts(plan, session, cells, negatives)
        for shard in image_shards(session, name):
            for image in build_dir.read(shard, IMAGE_LINES):
                files[f"{IMAGES}/{image.path}"] = LockedFile(bytes=image.bytes, sha256=image.sha256)
    write_whole(out / REJECTS, (to_json(reject.fields()) for plan in plans for reject in _rejects(plan, session)))
    files[REJECTS] = locked_file(out / REJECTS)
    # tokenizers and templates that are no part of this package are kept, so that the release can be counted anywhere
    for counter in (each for plan in plans for each in (plan.bound.counter, *plan.bound.count_as.values())):
        if (content := tokenizer_json(counter.text.name)) is not None:
            path = f"{TOKENIZERS}/{counter.text.sha256}.json"
            write_whole(out / path, [content])
            files[path] = locked_file(out / path)
        if counter.template:
            path = f"{TOKENIZERS}/{counter.template.sha256}.jinja"
            write_whole(out / path, [counter.template.text.encode()])
            files[path] = locked_file(out / path)
    unmatched = write_asset_table(session, files)
    files[ASSETS] = locked_file(out / ASSETS)
    manifest = [plan.public() for plan in plans]
    more: dict[str, Any] = {"canary": canary} if (canary := canary_of(plans)) else {}
    more |= {"unmatched_licences": unmatched} if unmatched else {}
    more["files"] = dict(sorted(files.items()))
    lock = Lock(format=1, versions=versions(), manifest=manifest, datasets=datasets, **more)
    _check_files(session, files, executor)
    # all sources are listed and hashed again
    session.source_files.check_all(executor.progress)
    for dataset, plan in session.plans.items():
        for name, source in plan.sources.items():
            known = session.source_files.names(dataset, f"source.{name}")
            for new in (file for file in files_of(source) if one_spelling(file) not in known):
                raise SourceChangedError(
                    f"{new}: appeared in the source while the release was built (dataset {dataset!r}, source.{name}); "
                    f"remove it and run the command again, or remove {out} and start the build again"
                )
    sweep(out)
    write_whole(out / LOCK, lock_bytes(lock))
    return lock


def _rejects(plan: DatasetPlan, session: Session) -> Iterator[Reject]:
    """Yield the rejected rows of a dataset, then the questions that do not fit, length after length."""
    name, read = plan.spec.name, session.build_dir.read
    yield from (line for line in read(questions_shard(name), QUESTIONS) if isinstance(line, Reject))
    for shard in cell_shards(session, name):
        yield from (line for line in read(shard, CELLS) if isinstance(line, Reject))


def _counts(
    plan: DatasetPlan, session: Session, cells: dict[str, CellCounts], negatives: NegativeCounts | None
) -> DatasetCounts:
    sources = session.dataset(plan.spec.name).sources
    rows = session.build_dir.only(questions_shard(plan.spec.name), QUESTIONS, RowCounts)
    more: dict[str, Any] = {}  # the lock has these only if they say something
    if negatives:
        more["negatives"] = negatives
    if plan.spec.errata:  # `QuestionCounts.repaired` and the rejects show their effect
        errata = sorted(load_errata(plan.spec.errata).items())
        hidden = {id: erratum.model_copy(update={"source": without_secrets(erratum.source)}) for id, erratum in errata}
        more["errata"] = {id: erratum.model_dump(mode="json", exclude_defaults=True) for id, erratum in hidden.items()}
    if plan.corpus:
        info = read_info(plan.corpus.folder)
        ids = info.wikidata_ids if info.keeps_wikidata_ids else None
        more["corpus"] = CorpusCounts(articles=info.articles, passages=info.passages, wikidata_ids=ids)
    if sources.has_image_classes:
        more["classes"] = _classes(sources.image_classes)
    documents, licence = _documents(plan, sources), plan.spec.licence_text
    return DatasetCounts(questions=rows.counts, cells=cells, documents=documents, licence=licence, **more)


def _documents(plan: DatasetPlan, sources: Sources) -> DocumentCounts:
    usable = sources.documents.usable if sources.has_documents else {}
    faults = sources.documents.faults if sources.has_documents else {}
    images = (file.pages for file in plan.documents.values() if isinstance(file.pages, PageImages))
    resolutions = Counter(str(pages.dpi) for pages in images if pages.dpi is not None)
    damaged_pages = {
        id: {str(page + 1): why for page, why in document.damaged.items()}
        for id, document in usable.items()
        if document.damaged
    }
    hidden = {id: len(document.hidden_text) for id, document in usable.items() if document.hidden_text}
    more: dict[str, Any] = {"images_by_dpi": dict(sorted(resolutions.items())), "damaged": damaged_pages}
    more["hidden_text"] = hidden
    return DocumentCounts(
        usable=len(usable),
        refused={id: str(fault) for id, fault in sorted(faults.items())},
        renamed={file.id: file.name for file in plan.documents.values() if file.id != file.name},
        **{name: counts for name, counts in more.items() if counts},
    )


def _classes(image_classes: ImageClasses) -> ClassCounts:
    by_domain: dict[str, list[ImageClass]] = {}
    for image_class in image_classes.classes.values():
        by_domain.setdefault(image_class.domain, []).append(image_class)
    domains = {
        domain: DomainCounts(
            classes=len(classes),
            exemplars=sum(len(image_class.exemplars) for image_class in classes),
            tests=sum(image_class.tests for image_class in classes),
            without_exemplars=sorted(image_class.name for image_class in classes if not image_class.exemplars),
            without_tests=sorted(image_class.name for image_class in classes if not image_class.tests),
        )
        for domain, classes in sorted(by_domain.items())
    }
    return ClassCounts(
        splits={"exemplars": image_classes.exemplar_split, "tests": image_classes.test_split}, domains=domains
    )


def _write_negatives(path: Path, plan: DatasetPlan, session: Session) -> NegativeCounts:
    """Write a line for each query: how many hard negatives it has, and how many passages were rejected, by reason.
    Return these counts for all queries, the smallest number of hard negatives, and a digest of all results.
    """
    rejected: Counter[str] = Counter()
    fewest, digest = list[int](), hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for shard in block_shards("negatives", plan.spec.name, len(session.questions(plan.spec.name))):
            for line in session.build_dir.read(shard, NEGATIVES):
                rejected.update(line.rejected)
                fewest.append(len(line.numbers))
                digest.update(to_json({"id": line.id, "numbers": line.numbers, "rejected": line.rejected}))
                yield to_json({"id": line.id, "clean": len(line.numbers), "rejected": line.rejected})

    write_whole(path, lines())
    return NegativeCounts(
        rejected=dict(sorted(rejected.items())), fewest_clean=min(fewest, default=0), sha256=digest.hexdigest()
    )


def _check_files(session: Session, files: Mapping[str, LockedFile], executor: Executor) -> None:
    """Make sure that every file of the release is as its shard has made it.

    If a file was changed or is missing, the file and the result of its shard are removed, so that both are made again.
    Files that other machines have uploaded to a URL are not on this machine and are not compared.
    """
    build_dir, out = session.build_dir, session.build_dir.out
    here = {build_dir.file(path): path for path in files if executor.has_all_files or (out / path).exists()}
    with executor.progress.bar("finish: files compared", len(here)) as advance:
        changed = [
            here[path]
            for path, hashed in hash_files(list(here), advance)
            if not (isinstance(hashed, Hashed) and hashed.sha256 == files[here[path]].sha256)
        ]
    if not changed:
        return
    gone = set(changed)
    if session.released:
        taken = session.released.lock.files
        if old := [path for path in changed if taken.get(path) == files[path] and not (out / path).exists()]:
            raise damaged(session.released.out, old[0], "its content is not what the lock says")
    for name in session.plans:
        made = [
            (path, shard)
            for shard in cell_shards(session, name)
            for path in build_dir.only(shard, CELLS, WrittenCell).files
        ]
        for shard in image_shards(session, name):
            made += [(f"{IMAGES}/{line.path}", shard) for line in build_dir.read(shard, IMAGE_LINES)]
        for path, shard in made:
            if path in gone:
                (out / path).unlink(missing_ok=True)
                build_dir.discard(shard)
    more = f", and {len(changed) - 1:,} more files" if len(changed) > 1 else ""
    raise BuildError(
        f"{out / changed[0]}: is missing or not as this build made it{more}; run the command again to make it again"
    )
