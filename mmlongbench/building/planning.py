"""Plans a build: checks a manifest, finds and fingerprints its sources, and saves the plan, unless the folder holds a
different build.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from mmlongbench.building.asset_licences import licence_tables, stated_rights
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import CorpusPlan, DatasetPlan, load_interrupted_plan, portable, save_plans
from mmlongbench.building.differences import differences, joined, of_plans, of_saved
from mmlongbench.building.executors import Executor
from mmlongbench.building.fingerprints import DocumentFile, files_of, fingerprint, source_file_list
from mmlongbench.building.locating import CORPUS, check_errata, extract_sources, find_sources, refuse_own_output
from mmlongbench.building.ocr_texts import check_ocr, needs_ocr
from mmlongbench.building.out_folder import discard_made, has_expensive_results
from mmlongbench.building.source_files import SourceFile, SourceFiles, unchanged_while_planned
from mmlongbench.documents.ocr import ocr_engine
from mmlongbench.documents.pages import PageImages, Pages
from mmlongbench.errors import BuildError, Fault, ManifestError, SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.io.sources import SourceOpener
from mmlongbench.manifest.binding import Bound, bind, broken, calling, check_plugins, refuse_secrets
from mmlongbench.manifest.missing import unfinished_downloads
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.manifest.task_files import keep_task_file
from mmlongbench.release.lock import versions

ERRATA = "errata"
"""The `SourceFile.source` of the file of corrections."""
LICENCES = "licence.assets"
"""The `SourceFile.source` of tables of licences."""


def check_manifest(manifest: Manifest) -> list[Bound]:
    """Bind the datasets of a manifest to their plug-ins. Refuse plug-ins, placements or reserves that cannot work,
    before anything is written.
    """
    datasets = []
    for spec in manifest.datasets:
        refuse_secrets(spec)
        bound = bind(spec)
        check_plugins(bound)
        check_ocr(bound)
        datasets.append(bound)
    return datasets


def plan_build(
    datasets: Sequence[Bound],
    build_dir: BuildDir,
    executor: Executor,
    *,
    is_restart: bool = False,
    shared: Path | None = None,
) -> tuple[list[DatasetPlan], tuple[str, ...]]:
    """Find and fingerprint the sources of datasets that `check_manifest` has bound, and save the plan. Return the
    plans, and notes for the user.

    If the folder has the plan of an unfinished build that differs, and that build has made nothing expensive
    (`has_expensive_results`), the build starts again; a note says what changed. `is_restart` discards the results of an
    unfinished build, whatever they are, but only after the new build is planned; so a manifest that cannot be built
    discards nothing. Samples, corpora and caches that the new build uses stay. `shared`: see `plan_datasets`.

    Raises:
        BuildError: the folder holds results of a build with another plan, and `is_restart` is false.

    """
    if not is_restart:
        load_interrupted_plan(build_dir)  # refuses a plan of another format before anything is changed
    plans = plan_anew(datasets, build_dir, executor.progress, is_restart=is_restart, shared=shared)
    return plans, saved_or_refused(plans, build_dir, executor, is_restart=is_restart)


def plan_anew(
    datasets: Sequence[Bound],
    build_dir: BuildDir,
    progress: Progress,
    *,
    is_restart: bool,
    shared: Path | None = None,
) -> list[DatasetPlan]:
    """Find and fingerprint the sources. With `is_restart`, corpora of an unfinished build that were made from other
    articles are made again; if the new build cannot be planned, the old corpora stay. `shared`: see `plan_datasets`.
    """
    from mmlongbench.corpus.build import OtherCorpusError

    try:
        return plan_datasets(datasets, build_dir, progress, shared)
    except OtherCorpusError:
        if not is_restart:
            raise
    corpora = build_dir.corpora
    aside = corpora.with_name("corpus-before")
    shutil.rmtree(aside, ignore_errors=True)
    corpora.rename(aside)
    try:
        plans = plan_datasets(datasets, build_dir, progress, shared)
    except BaseException:
        shutil.rmtree(corpora, ignore_errors=True)
        aside.rename(corpora)
        raise
    shutil.rmtree(aside)
    return plans


def saved_or_refused(
    plans: list[DatasetPlan], build_dir: BuildDir, executor: Executor, *, is_restart: bool = False
) -> tuple[str, ...]:
    """Save the plans. If the folder has results of other plans, discard cheap ones, and return a note about that;
    refuse a folder with expensive ones, so that two builds are never mixed. `is_restart` discards all results.

    Raises:
        BuildError: the folder holds an unfinished build that differs, or one whose plan is lost; the error says what
            differs.

    """
    if is_restart:
        _start_again(plans, build_dir, executor)
        return ()
    before = load_interrupted_plan(build_dir)
    if before is None:
        if has_expensive_results(build_dir, {plan.spec.name: plan for plan in plans}):
            state = "is damaged" if build_dir.plan.is_file() else "is gone"
            raise BuildError(
                f"--out {build_dir.out}: holds an unfinished build whose plan {state} ({build_dir.plan}), so that its "
                "results cannot be continued; put the plan back, use another folder, or --restart to discard them"
            )
        build_dir.discard_all()
        if build_dir.plan.is_file():  # the plan is damaged; its build may have made files
            discard_made(build_dir.out)
        save_plans(plans, build_dir)
        return ()
    files: list[SourceFile] = []
    with suppress(BuildError), closing(SourceFiles(build_dir)) as saved:  # without it, only the manifests are compared
        files = saved.all()
    found = differences(of_saved(before, files), of_plans(plans, versions()))
    if not found:
        save_plans(plans, build_dir)  # the sources may have been moved
        return ()
    if has_expensive_results(build_dir, before.plans):
        raise BuildError(
            f"--out {build_dir.out}: already holds an unfinished build that differs ({joined(found)}); use another "
            "folder, or --restart to discard the unfinished build"
        )
    _start_again(plans, build_dir, executor)
    return (f"the unfinished build in this folder was started again, because it differed ({joined(found)})",)


def _start_again(plans: list[DatasetPlan], build_dir: BuildDir, executor: Executor) -> None:
    """Discard the results of an unfinished build, here and elsewhere, and save the new plans."""
    build_dir.discard_all()
    discard_made(build_dir.out)
    executor.discard_elsewhere(build_dir)
    save_plans(plans, build_dir)


def plan_datasets(
    datasets: Sequence[Bound], build_dir: BuildDir, progress: Progress, shared: Path | None = None
) -> list[DatasetPlan]:
    """Find and fingerprint the sources of every dataset; draw the samples that are needed, once for each reader.

    Archives are unpacked, sources at a URL downloaded, and corpora built once for all datasets: in the working folder
    or, for plans of several builds, in the folder `shared`.
    """
    drawn: dict[str, dict[str, Path]] = {}
    shared = shared or build_dir.root
    opener = SourceOpener(shared / build_dir.opened.name, progress)
    corpora = shared / build_dir.corpora.name
    plans = [_plan_dataset(bound, build_dir, drawn, opener, corpora, progress) for bound in datasets]
    _refuse_shared_images(plans)
    return plans


def _refuse_shared_images(plans: list[DatasetPlan]) -> None:
    """Refuse datasets that would write different pages under the same paths."""
    shown: dict[tuple[str, str], tuple[str, tuple[str, int, int]]] = {}
    for plan in plans:
        folder = plan.bound.reader_type.image_folder
        for file in plan.documents.values():
            made = (file.sha256, plan.spec.pages.dpi, plan.spec.pages.quality)
            name, before = shown.setdefault((folder, file.name), (plan.spec.name, made))
            if before != made:
                differ = "pages.dpi or pages.quality" if before[0] == made[0] else "the document"
                raise ManifestError(
                    f"datasets {name!r} and {plan.spec.name!r}: both show {folder}/{file.name}, and {differ} differs; "
                    "build them into two releases"
                )


def _plan_dataset(
    bound: Bound,
    build_dir: BuildDir,
    drawn: dict[str, dict[str, Path]],
    opener: SourceOpener,
    corpora: Path,
    progress: Progress,
) -> DatasetPlan:
    spec = with_kept_code(bound.spec, build_dir)
    bound = bound if spec == bound.spec else bind(spec)
    reader = bound.reader_type()
    opened = find_sources(spec, reader, build_dir.root / "sample" / spec.name, drawn, opener)
    given = {name: source.path for name, source in opened.items()}
    kept_bytes = sum({source.path: source.bytes for source in opened.values()}.values())
    refuse_own_output(spec, given, build_dir)
    articles = spec.corpus or given.pop(CORPUS, None)

    def read_twice() -> Iterator[Path]:
        """Yield the files that planning reads more than once; they must not change in between."""
        for source in given.values():
            yield from files_of(source)
        yield from _corpus_tables(articles) if articles else ()
        yield from (spec.errata,) if spec.errata else ()

    with unchanged_while_planned(spec.name, read_twice):
        check_errata(spec, reader)
        sources = extract_sources(spec, reader, given, build_dir, progress)
        corpus = _corpus(articles, spec, build_dir, corpora, progress) if articles else None
        try:
            with calling("reader", spec.reader, "documents()"):
                documents = reader.documents(sources)
            if fault := _documents_fault(documents):
                raise broken("reader", spec.reader, "documents()", fault)
            with calling("reader", spec.reader, "notes()"):
                notes = tuple(map(str, reader.notes(sources, bound.builder.options)))
            found = fingerprint(spec, sources, documents, progress)
            others = tuple(_other_files(bound, corpus, progress))
        except OSError as error:
            said, name = error.strerror or str(error), Path(str(error.filename or "")).name
            place, todo = f"dataset {spec.name!r}", "make it readable, or take it out of the sources"
            raise SourceError(
                Fault("unreadable-source", "a file that can be read", said, name, place, todo=todo)
            ) from error
        _refuse_other_resolutions(spec, found.documents)
        page_model = _page_model(spec)
        stated_rights(bound, sources)  # a contradiction is found before the long work
    tokenizer = bound.counter.text
    extracted = (path for name, path in sources.items() if name not in given)
    return DatasetPlan(
        spec=spec,
        sources=sources,
        fingerprints={name: found.by_source[name] for name in given},
        documents=found.documents,
        refused=found.refused,
        tokenizer={"name": portable(tokenizer.name), "sha256": tokenizer.sha256},
        corpus=corpus,
        errata=next((file.hashed.sha256 for file in others if file.source == ERRATA), None),
        code=bound.code,
        files=(*found.files, *others),
        ocr=ocr_engine() if needs_ocr(bound) else None,
        notes=(*notes, *unfinished_downloads(spec)),
        page_model=page_model,
        licence_tables={file.path.name: file.hashed.sha256 for file in others if file.source == LICENCES},
        opened_bytes=kept_bytes + sum(file.stat().st_size for path in extracted for file in files_of(path)),
    )


def with_kept_code(spec: DatasetSpec, build_dir: BuildDir) -> DatasetSpec:
    """Return a dataset whose task files are copies in the folder of the build, which all its processes load."""
    kept = {key: keep_task_file(getattr(spec, key), build_dir.code) for key in ("builder", "reader")}
    return spec.model_copy(update=kept)


def _documents_fault(documents: object) -> str:
    """Return why the documents that a reader gave cannot be used; empty if they can."""
    if not isinstance(documents, Mapping):
        return f"returned a {type(documents).__name__}, expected a mapping of ids to documents"
    for id, found in documents.items():
        if not isinstance(id, str):
            return f"the id of a document is {id!r}, expected a text"
        if not isinstance(found, Pages | Fault):
            return f"document {id!r} is a {type(found).__name__}, expected the path of a PDF, PageImages or a Fault"
    return ""


def _refuse_other_resolutions(spec: DatasetSpec, documents: Mapping[str, DocumentFile]) -> None:
    """Refuse page images of a DPI other than `pages.dpi`, because a model could recognise them by their resolution."""
    for document in documents.values():
        pages = document.pages
        if isinstance(pages, PageImages) and pages.dpi not in (None, spec.pages.dpi):
            raise ManifestError(
                f"dataset {spec.name!r}: the pages of document {document.id} are images of {pages.dpi} DPI, pages.dpi "
                f"is {spec.pages.dpi}; set pages.dpi to {pages.dpi}, or give the PDFs"
            )


def _page_model(spec: DatasetSpec) -> str:
    """Return the SHA-256 of the model that ranks pages, before the long work; empty if none does."""
    given = spec.page_retrieval
    if given is None or not given.named_model:
        return ""
    from mmlongbench.corpus.retrieval.dense import find_model, hash_files, need_libraries

    need_libraries()
    return hash_files(find_model(given.named_model, given.revision))


def _other_files(bound: Bound, corpus: CorpusPlan | None, progress: Progress) -> Iterator[SourceFile]:
    """Yield the files that the bytes of the release depend on, apart from the sources."""
    spec, paths = bound.spec, dict[str, Iterable[Path]]()
    if spec.errata:
        paths[ERRATA] = [spec.errata]
    if (tokenizer := Path(spec.counter.tokenizer)).is_file():
        paths["counter.tokenizer"] = [tokenizer]
    if tables := licence_tables(bound):
        paths[LICENCES] = tables
    if corpus:
        from mmlongbench.corpus.corpus import INDEX

        index = (path for path in sorted((corpus.folder / INDEX).rglob("*")) if path.is_file())
        paths["corpus"] = [*_corpus_tables(corpus.folder), *index]
    if corpus and (model := spec.retrieval.reranker):
        from mmlongbench.corpus.retrieval.dense import find_model, model_files

        paths["retrieval.reranker"] = model_files(find_model(model.model, model.revision))
    for source, found in paths.items():
        yield from source_file_list(spec.name, source, found, progress)


def _corpus_tables(folder: Path) -> list[Path]:
    """Return the files with a corpus's description and its passages."""
    from mmlongbench.corpus.corpus import INFO, PASSAGES

    return [folder / INFO, folder / PASSAGES]


def _corpus(path: Path, spec: DatasetSpec, build_dir: BuildDir, corpora: Path, progress: Progress) -> CorpusPlan:
    """Return the plan of the corpus of a dataset. If `path` is no finished corpus, build one from it below `corpora`,
    as `corpus build` does; datasets with the same articles share it.
    """
    from mmlongbench.corpus.build import make_corpus
    from mmlongbench.corpus.corpus import INFO, Corpus
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index
    from mmlongbench.corpus.retrieval.dense import find_model, hash_files, need_libraries

    if not path.exists():
        raise ManifestError(f"dataset {spec.name!r}: corpus: no such file or folder: {path}")
    if spec.retrieval.reranker:
        need_libraries()  # fail before the long work
    folder = path
    if not (path / INFO).is_file():
        folder = corpora / hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:16]
        make_corpus(str(path), folder, progress=progress)
    corpus = Corpus.open(folder)
    cache = folder if os.access(folder, os.W_OK) else build_dir.root / "cache" / spec.name
    if spec.retrieval.engine == "tantivy":
        find_index(corpus, cache / FOLDER, progress)
    model = spec.retrieval.reranker
    reranker = hash_files(find_model(model.model, model.revision)) if model else ""
    return CorpusPlan(folder, corpus.fingerprint, cache, reranker)
