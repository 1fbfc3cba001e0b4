"""Plans a build: finds and fingerprints the sources of its datasets, and saves the plan, unless the folder holds a
different build.
"""

import hashlib
import inspect
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from mmlongbench.building.asset_licences import licence_tables, stated_rights
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import (
    CORPUS,
    CorpusPlan,
    DatasetPlan,
    load_interrupted_plan,
    locked_counter,
    portable,
    save_plans,
)
from mmlongbench.building.differences import Described, by_source, differences, joined, of_plans
from mmlongbench.building.executors import Executor
from mmlongbench.building.out_folder import discard_made, has_expensive_results
from mmlongbench.building.source_files import (
    SourceFile,
    SourceFiles,
    files_of,
    fingerprint,
    hash_files,
    stamp_of,
    unchanged_while_planned,
    when_compared,
)
from mmlongbench.building.stages.documents import needs_ocr
from mmlongbench.documents.ocr import ocr_engine, ocr_version
from mmlongbench.documents.pages import PageImages, Pages
from mmlongbench.errors import BuildError, Fault, ManifestError, SourceError, nearest
from mmlongbench.io.files import write_whole
from mmlongbench.io.locations import Location
from mmlongbench.io.progress import Progress
from mmlongbench.io.sources import OpenedSource, SourceOpener
from mmlongbench.manifest.binding import Bound, bind, broken, calling, check_plugins, refuse_secrets
from mmlongbench.manifest.errata import load_errata
from mmlongbench.manifest.missing import missing_of, unfinished_downloads
from mmlongbench.manifest.model import SAMPLE, DatasetSpec, Manifest
from mmlongbench.manifest.plugins import GROUPS, is_installed, sample_function
from mmlongbench.manifest.task_files import keep_task_file, task_file
from mmlongbench.release.lock import also_counted_as, versions
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row
from tokenization import VisionRule
from tokenization.template import FILES

ERRATA, LICENCES = "errata", "licence.assets"
"""The `SourceFile.source` of the file of corrections, and of tables of licences."""


def check_manifest(manifest: Manifest) -> list[Bound]:
    """Bind the datasets of a manifest to their plug-ins. Refuse plug-ins, placements or reserves that cannot work,
    before anything is written.
    """
    datasets = []
    for spec in manifest.datasets:
        refuse_secrets(spec)
        bound = bind(spec)
        check_plugins(bound)
        if needs_ocr(bound):  # on this machine
            ocr_engine()
        elif bound.spec.pages.ocr is True:
            ocr_version()
        datasets.append(bound)
    return datasets


# The plan of a whole build, and the folder that may hold another build


def plan_build(
    datasets: Sequence[Bound],
    build_dir: BuildDir,
    executor: Executor,
    *,
    is_restart: bool = False,
    shared: Path | None = None,
) -> tuple[list[DatasetPlan], tuple[str, ...]]:
    """Find and fingerprint the sources of datasets that `check_manifest` has bound, and save the plan (see
    `plan_datasets`, `save_or_refuse`). Return the plans, and notes for the user. Results of an unfinished build are
    discarded only after the new build is planned, so that a manifest that cannot be built discards nothing.
    """
    if not is_restart:
        load_interrupted_plan(build_dir)  # refuses a plan of another format before anything is changed
    plans = plan_datasets(datasets, build_dir, executor.progress, shared)
    return plans, save_or_refuse(plans, build_dir, executor, is_restart=is_restart)


def save_or_refuse(
    plans: list[DatasetPlan], build_dir: BuildDir, executor: Executor, *, is_restart: bool = False
) -> tuple[str, ...]:
    """Save the plans. If the folder has results of other plans, discard cheap ones, and return a note that says what
    differs; refuse a folder with expensive ones (`has_expensive_results`), so that two builds are never mixed.
    `is_restart` discards all results; samples, corpora and caches that the new build uses stay.
    """
    before = None if is_restart else load_interrupted_plan(build_dir)
    changes: list[str] = []
    if before:
        files: list[SourceFile] = []
        with suppress(BuildError), closing(SourceFiles(build_dir)) as saved:  # else only the manifests are compared
            files = saved.all()
        described = Described(before.public, before.versions, by_source(files, before.plans.values()))
        changes = differences(described, of_plans(plans, versions()))
        if changes and has_expensive_results(build_dir, before.plans):
            raise BuildError(
                f"--out {build_dir.out}: already holds an unfinished build that differs ({joined(changes)}); use "
                "another folder, or --restart to discard the unfinished build"
            )
    elif not is_restart and has_expensive_results(build_dir, {plan.spec.name: plan for plan in plans}):
        state = "is damaged" if build_dir.plan.is_file() else "is gone"
        raise BuildError(
            f"--out {build_dir.out}: holds an unfinished build whose plan {state} ({build_dir.plan}), so that its "
            "results cannot be continued; put the plan back, use another folder, or --restart to discard them"
        )
    if is_restart or changes or not before:
        build_dir.discard_all()
    if is_restart or changes or (not before and build_dir.plan.is_file()):  # the other build may have made files
        discard_made(build_dir.out)
    if is_restart or changes:
        executor.discard_elsewhere(build_dir)
    save_plans(plans, build_dir)  # even an equal plan, since the sources may have been moved
    unnamed = {*build_dir.corpora.glob("*")} - {plan.corpus.folder.resolve() for plan in plans if plan.corpus}
    for corpus in unnamed if is_restart else ():  # without being asked, what takes long to make again is kept
        shutil.rmtree(corpus, ignore_errors=True)
    said = f"the unfinished build in this folder was started again, because it differed ({joined(changes)})"
    return (said,) if changes else ()


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
    # two datasets must not write different pages under the same paths
    shown: dict[tuple[str, str], tuple[str, tuple[str, int, int]]] = {}
    for plan in plans:
        folder = plan.bound.reader_type.image_folder
        for file in plan.documents.values():
            look = (file.sha256, plan.spec.pages.dpi, plan.spec.pages.quality)
            name, before = shown.setdefault((folder, file.name), (plan.spec.name, look))
            if before != look:
                differ = "pages.dpi or pages.quality" if before[0] == look[0] else "the document"
                raise ManifestError(
                    f"datasets {name!r} and {plan.spec.name!r}: both show {folder}/{file.name}, and {differ} differs; "
                    "build them into two releases"
                )
    return plans


# The plan of a dataset


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
    if isinstance(spec.source, str):
        sample = _draw(spec, reader, build_dir.root / "sample" / spec.name, drawn)
        opened = {name: OpenedSource(path) for name, path in sample.items()}
    else:
        opened = _find_sources(spec, spec.source, reader, opener)
    given = {name: source.path for name, source in opened.items()}
    kept_bytes = sum({source.path: source.bytes for source in opened.values()}.values())
    for name, path in {**{f"source.{name}": path for name, path in given.items()}, "corpus": spec.corpus}.items():
        if path and path.is_dir() and build_dir.out.resolve().is_relative_to(path.resolve()):
            raise BuildError(
                f"--out {build_dir.out}: lies inside {name} of dataset {spec.name!r} ({path}), so that its files would "
                "be read as sources; give a folder outside it"
            )
    articles = spec.corpus or given.pop(CORPUS, None)

    def read_twice() -> Iterator[Path]:
        """Yield the files that planning reads more than once; they must not change in between."""
        for source in given.values():
            yield from files_of(source)
        yield from _corpus_tables(articles) if articles else ()
        yield from (spec.errata,) if spec.errata else ()

    with unchanged_while_planned(spec.name, read_twice):
        _check_errata(spec, reader)
        sources = extract_sources(spec, reader, given, build_dir, progress)
        corpus = _plan_corpus(articles, spec, build_dir, corpora, progress) if articles else None
        try:
            documents = _documents(spec, reader, sources)
            with calling("reader", spec.reader, "notes()"):
                notes = tuple(map(str, reader.notes(sources, bound.builder.options)))
            fingerprints, usable, refused, files = fingerprint(spec, sources, documents, progress)
            others = tuple(_other_files(bound, corpus, progress))
        except OSError as error:
            said, name = error.strerror or str(error), Path(str(error.filename or "")).name
            place, todo = f"dataset {spec.name!r}", "make it readable, or take it out of the sources"
            raise SourceError(
                Fault("unreadable-source", "a file that can be read", said, name, place, todo=todo)
            ) from error
        for file in usable.values():
            dpi = file.pages.dpi if isinstance(file.pages, PageImages) else None
            if dpi not in (None, spec.pages.dpi):  # a model could recognise its pages by their resolution
                raise ManifestError(
                    f"dataset {spec.name!r}: the pages of document {file.id} are images of {dpi} DPI, pages.dpi is "
                    f"{spec.pages.dpi}; set pages.dpi to {dpi}, or give the PDFs"
                )
        page_model = ""
        if spec.page_retrieval and spec.page_retrieval.named_model:
            page_model = _model_sha256(spec.page_retrieval.named_model, spec.page_retrieval.revision)
        stated_rights(bound, sources)  # a contradiction is found before the long work
    extracted = (path for name, path in sources.items() if name not in given)
    return DatasetPlan(
        spec=spec,
        sources=sources,
        fingerprints={name: fingerprints[name] for name in given},
        documents=usable,
        refused=refused,
        counter=locked_counter(bound.counter),
        count_as={name: locked_counter(counter) for name, counter in bound.count_as.items()},
        corpus=corpus,
        errata=next((file.hashed.sha256 for file in others if file.source == ERRATA), None),
        code=bound.code,
        files=(*files, *others),
        ocr=ocr_engine() if needs_ocr(bound) else None,
        notes=(*notes, *unfinished_downloads(spec), *_counter_notes(bound)),
        page_model=page_model,
        licence_tables={file.path.name: file.hashed.sha256 for file in others if file.source == LICENCES},
        opened_bytes=kept_bytes + sum(file.stat().st_size for path in extracted for file in files_of(path)),
    )


def _counter_notes(bound: Bound) -> Iterator[str]:
    counter = bound.counter
    for each in (counter, *bound.count_as.values()):
        if each.template and (split := each.split_markers):
            yield (
                f"the chat template {portable(each.template.name)} writes {', '.join(split)}: no special tokens of the "
                f"tokenizer {portable(each.text.name)}, so each counts as several; give the template's own tokenizer"
            )
    if further := also_counted_as({name: locked_counter(each) for name, each in bound.count_as.items()}):
        yield f"counted too, in `tokens.as`, as {further}"
    if isinstance(counter.image, VisionRule) and not counter.is_exact:
        name = counter.image.name
        own = f"texts are counted by {counter.text.name}, not by its own tokenizer"
        why = own if counter.image.exact else f"what {name} counts is not known exactly"
        yield f"tokens are estimates for {name}: {why}; raise `reserve` to be safe"
    if counter.max_images is not None:
        yield f"a prompt has at most {counter.max_images:,} images: a request can have no more"


def with_kept_code(spec: DatasetSpec, build_dir: BuildDir) -> DatasetSpec:
    """Return a dataset whose task files are copies in the folder of the build, which all its processes load."""
    kept = {key: keep_task_file(getattr(spec, key), build_dir.root / "code") for key in ("builder", "reader")}
    return spec.model_copy(update=kept)


def _draw(spec: DatasetSpec, reader: Reader[Row], folder: Path, drawn: dict[str, dict[str, Path]]) -> dict[str, Path]:
    """Draw the sample of a reader into a folder, and return the path of each of its sources by name. `drawn` has the
    paths of each sample by the reader and the options that it depends on, so that datasets share it.
    """
    if not is_installed("sample", spec.reader):
        given = ", ".join(f"{name}: PATH" for name in reader.sources)
        raise ManifestError(
            f"dataset {spec.name!r}: source: {SAMPLE}: no sample is installed for reader {spec.shown_reader!r}; name "
            f"its sources, source: {{{given}}}, or install a function that draws one as the entry point "
            f"{spec.shown_reader!r} of the group {GROUPS['sample']!r}"
        )
    draw = sample_function(spec.reader)
    options = {"options": spec.options} if "options" in inspect.signature(draw).parameters else {}
    key = f"{spec.reader} {options}"
    if key in drawn:
        return drawn[key]
    folder.mkdir(parents=True, exist_ok=True)
    with calling("sample", spec.reader, "draw()"):
        sample: object = draw(folder, **options)
    names, fault = (*reader.sources, *reader.optional_sources, CORPUS), ""
    if not isinstance(sample, Mapping):
        fault = f"returned a {type(sample).__name__}, expected the paths of the sources by name"
    elif unknown := [name for name in sample if name not in names]:
        fault = f"returned a source {unknown[0]!r}, but the sources of the reader are: {', '.join(names)}"
    elif missing := [name for name in reader.sources if name not in sample]:
        fault = f"returned no source {missing[0]!r}, which the reader needs"
    else:
        for name, path in sample.items():
            if not isinstance(path, Path):
                fault = fault or f"source {name!r} is a {type(path).__name__}, expected a Path"
            elif not path.exists():
                fault = fault or f"source {name!r}: no such file or folder: {path}"
        drawn[key] = dict(sample)
    if fault:
        raise broken("sample", spec.reader, "draw()", fault)
    return drawn[key]


def _find_sources(
    spec: DatasetSpec, named: Mapping[str, Sequence[Location]], reader: Reader[Row], opener: SourceOpener
) -> dict[str, OpenedSource]:
    """Return each source that a manifest names as a file or a folder of this machine, by the name that the reader gives
    it. `opener` unpacks archives and downloads what is elsewhere; the content of the sources is not read otherwise.
    """
    dataset, optional = f"dataset {spec.name!r}", reader.optional_sources
    for name in named:
        if name not in (*reader.sources, *optional):
            names = (*reader.sources, *(f"{source} (optional)" for source in optional))
            hint = nearest(name, (*reader.sources, *optional))
            more = "" if task_file(spec.reader) else f"; `mmlongbench list {spec.reader}` describes them"
            raise ManifestError(
                f"{dataset}: reader {spec.shown_reader!r} has no source {name!r}; its sources are "
                f"{', '.join(names)}{hint}{more}"
            )
    if lacking := [name for name in reader.sources if name not in named]:
        raise ManifestError(f"{dataset}: source.{lacking[0]} is missing; give it with --set source.{lacking[0]}=PATH")
    if missing := missing_of(spec):
        raise ManifestError(f"{dataset}: {missing}")
    sources: dict[str, OpenedSource] = {}
    for name in (*reader.sources, *(name for name in optional if name in named)):
        opened = opener.open(named[name], reader.hub_files, f"source.{name}")
        if not opened.path.exists():
            raise ManifestError(f"{dataset}: source.{name}: no such file or folder: {opened.path}")
        if not (opened.path.is_file() or opened.path.is_dir()):  # reading a pipe might never end
            raise ManifestError(
                f"{dataset}: source.{name}: expected a file or a folder, found a pipe or a device: {opened.path}"
            )
        sources[name] = opened
    return sources


def _check_errata(spec: DatasetSpec, reader: Reader[Row]) -> None:
    if spec.errata is None:
        return
    if not spec.errata.is_file():
        raise ManifestError(f"dataset {spec.name!r}: errata: no such file: {spec.errata}")
    for id, erratum in load_errata(spec.errata).items():
        if field := next((field for field in erratum.set if field in reader.fixed_fields), None):
            raise ManifestError(
                f"dataset {spec.name!r}: errata: {id}: {field!r} cannot be corrected, because "
                "ids, pages or pictures are read from it too; correct the source instead"
            )


def extract_sources(
    spec: DatasetSpec, reader: Reader[Row], sources: Mapping[str, Path], build_dir: BuildDir, progress: Progress
) -> dict[str, Path]:
    """Return the sources of a dataset together with what the reader extracts from them, by name.

    What an earlier plan extracted is used again if a description of the sources and of the software, which is saved
    beside it, is still true. A killed process leaves no description, so its files are written again.
    """
    if type(reader).extract is Reader.extract:
        return dict(sources)
    folder = build_dir.extracted(spec.name)
    saved = folder.with_name(f"{folder.name}.json")
    files = {name: [[str(file), *stamp_of(file)] for file in files_of(path)] for name, path in sources.items()}
    text = json.dumps([versions(), spec.reader, files], ensure_ascii=False)
    description = text.encode("utf-8", "surrogateescape")
    if not saved.is_file() or saved.read_bytes() != description:
        saved.unlink(missing_ok=True)
        try:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            with progress.bar(f"{spec.name}: files in its sources written out", 1) as advance:
                with calling("reader", spec.reader, "extract()"):
                    reader.extract(sources, folder)
                advance()
        except OSError as error:
            raise BuildError(
                f"dataset {spec.name!r}: {folder}: files of its sources cannot be written there: "
                f"{error.strerror or error}; make room, and run the same command to continue"
            ) from error
        write_whole(saved, [description])
    extracted = {path.name: path for path in sorted(folder.iterdir())} if folder.is_dir() else {}
    if twice := next((name for name in extracted if name in sources), None):
        fault = f"wrote {twice!r}, which is the name of another source; use another name"
        raise broken("reader", spec.reader, "extract()", fault)
    return {**sources, **extracted}


def _documents(spec: DatasetSpec, reader: Reader[Row], sources: Mapping[str, Path]) -> Mapping[str, Pages | Fault]:
    with calling("reader", spec.reader, "documents()"):
        documents: object = reader.documents(sources)
    if not isinstance(documents, Mapping):
        fault = f"returned a {type(documents).__name__}, expected a mapping of ids to documents"
        raise broken("reader", spec.reader, "documents()", fault)
    for id, pages in documents.items():
        if not isinstance(id, str):
            raise broken("reader", spec.reader, "documents()", f"the id of a document is {id!r}, expected a text")
        if not isinstance(pages, Pages | Fault):
            fault = f"a {type(pages).__name__}, expected the path of a PDF, PageImages or a Fault"
            raise broken("reader", spec.reader, "documents()", f"document {id!r} is {fault}")
    return documents


def _plan_corpus(path: Path, spec: DatasetSpec, build_dir: BuildDir, corpora: Path, progress: Progress) -> CorpusPlan:
    """Return the plan of the corpus of a dataset. If `path` is no finished corpus, build one from it below `corpora`,
    as `corpus build` does, in a folder that is named after the content of the articles; datasets with the same
    articles share it.
    """
    from mmlongbench.corpus.build import make_corpus
    from mmlongbench.corpus.corpus import INFO, Corpus
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index
    from mmlongbench.corpus.sources import find_source

    if not path.exists():
        raise ManifestError(f"dataset {spec.name!r}: corpus: no such file or folder: {path}")
    model = spec.retrieval.reranker
    reranker = _model_sha256(model.model, model.revision) if model else ""
    folder = path
    if not (path / INFO).is_file():
        source = find_source(str(path))
        folder = corpora / hashlib.sha256(f"{source.info.format} {source.info.sha256}".encode()).hexdigest()[:16]
        make_corpus(source, folder, progress=progress)
    corpus = Corpus.open(folder)
    cache = folder if os.access(folder, os.W_OK) else build_dir.root / "cache" / spec.name
    if spec.retrieval.engine == "tantivy":
        find_index(corpus, cache / FOLDER, progress)
    return CorpusPlan(folder, corpus.fingerprint, cache, reranker)


def _model_sha256(name: str, revision: str | None) -> str:
    from mmlongbench.corpus.retrieval.dense import find_model, hash_files, need_libraries

    need_libraries()
    return hash_files(find_model(name, revision))


def _other_files(bound: Bound, corpus: CorpusPlan | None, progress: Progress) -> Iterator[SourceFile]:
    spec, paths = bound.spec, dict[str, list[Path]]()
    if spec.errata:
        paths[ERRATA] = [spec.errata]
    for counter in (spec.counter, *spec.count_as):
        for key, name in (("counter.text", counter.text_name), ("counter.template", counter.template or "")):
            path = Path(name)
            read = [path]
            if name and key == "counter.template":  # special tokens may stand in another file beside it
                read = [path / file for file in FILES] if path.is_dir() else [path, path.with_name(FILES[-1])]
            if read := [each for each in read if each.is_file()]:
                paths[key] = [*dict.fromkeys([*paths.get(key, []), *read])]
    if tables := licence_tables(bound):
        paths[LICENCES] = tables
    if corpus:
        from mmlongbench.corpus.corpus import INDEX

        index = (path for path in sorted((corpus.folder / INDEX).rglob("*")) if path.is_file())
        paths["corpus"] = [*_corpus_tables(corpus.folder), *index]
    if corpus and (model := spec.retrieval.reranker):
        from mmlongbench.corpus.retrieval.dense import find_model, model_files

        paths["retrieval.reranker"] = model_files(find_model(model.model, model.revision))
    for source, files in paths.items():
        when = when_compared(files)
        with progress.bar(f"{spec.name}: fingerprints of {source}", len(files)) as advance:
            for path, hashed in hash_files(files, advance):
                if isinstance(hashed, OSError):
                    raise hashed
                yield SourceFile(path, spec.name, source, hashed, when[path])


def _corpus_tables(folder: Path) -> list[Path]:
    from mmlongbench.corpus.corpus import INFO, PASSAGES

    return [folder / INFO, folder / PASSAGES]
