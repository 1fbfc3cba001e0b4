"""The plan: the resolved manifest and the fingerprint of every source file that it names."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mmlongbench.building.asset_licences import licence_tables, stated_rights
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.fingerprints import DocumentFile, SourceFingerprint, files_of, fingerprint, source_file_list
from mmlongbench.building.locating import CORPUS, check_errata, extract_sources, find_sources, refuse_own_output
from mmlongbench.building.ocr_texts import needs_ocr
from mmlongbench.building.source_files import SourceFile, unchanged_while_planned
from mmlongbench.documents.ocr import OcrEngine, ocr_engine, ocr_version
from mmlongbench.documents.page_facts import crop_makers
from mmlongbench.documents.pages import PageImages, Pages
from mmlongbench.errors import Fault, ManifestError, SourceError
from mmlongbench.io.opening import SourceOpener
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.binding import bind_builder, broken, calling
from mmlongbench.manifest.code import PluginCode, code_of
from mmlongbench.manifest.missing import unfinished_downloads
from mmlongbench.manifest.model import SAMPLE, DatasetSpec, Manifest
from mmlongbench.manifest.plugins import reader_type
from mmlongbench.manifest.task_files import keep_task_file, portable_name
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row

ERRATA = "errata"
"""The `SourceFile.source` of the file of corrections."""
LICENCES = "licence.assets"
"""The `SourceFile.source` of tables of licences."""


@dataclass(frozen=True, slots=True)
class CorpusPlan:
    """The corpus of a dataset."""

    folder: Path
    sha256: str
    """The fingerprint of all passages."""
    cache: Path
    """The folder of the corpus's index, vectors, rankings and token counts. It is the corpus's own folder or, if that
    cannot be written, a folder of the build."""
    reranker: str = ""
    """SHA-256 of the files of the reranker's model; empty without a reranker."""


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """One dataset with its sources found and fingerprinted."""

    spec: DatasetSpec
    sources: dict[str, Path]
    """The path of each source, by name; what the reader extracted from the sources (`Reader.extract`) is among them."""
    fingerprints: dict[str, SourceFingerprint]
    """The number of files, the bytes and the SHA-256 of each source that the manifest gives, by its name."""
    documents: dict[str, DocumentFile]
    """The documents that are used, by the names of their folders in the release."""
    refused: dict[str, Fault]
    """Why each of the other documents is not used, by id: it is excluded, too large, ambiguous or unreadable."""
    tokenizer: dict[str, str]
    """The `name` and the `sha256` of the tokenizer."""
    corpus: CorpusPlan | None = None
    errata: str | None = None
    """SHA-256 of the file of corrections; None without corrections."""
    code: dict[str, PluginCode] = field(default_factory=dict)
    """The code of the plug-ins, by kind."""
    files: tuple[SourceFile, ...] = ()
    """The fingerprinted files; a saved plan keeps them in a separate file (`save_source_files`)."""
    ocr: OcrEngine | None = None
    """The engine that reads all pages; None if none does."""
    notes: tuple[str, ...] = ()
    """What a user must know about the sources, one sentence each (`Reader.notes`)."""
    page_model: str = ""
    """SHA-256 of the files of the model that ranks pages; empty if none does."""
    licence_tables: dict[str, str] = field(default_factory=dict)
    """The SHA-256 of each table of licences (`LicenceTerms.assets`), by the name of its file."""
    opened_bytes: int = 0
    """How many bytes of archives were unpacked, of URLs downloaded, and of files extracted by the reader, for this
    dataset. They are kept until the release is finished."""

    @property
    def source_hashes(self) -> dict[str, str]:
        """The SHA-256 of each source, by its name."""
        return {name: found["sha256"] for name, found in self.fingerprints.items()}

    def public(self, ocr: str = "") -> dict[str, Any]:
        """Return everything that decides the release's bytes, without paths: the resolved manifest and the
        fingerprints. `ocr` is the version of the OCR; by default, the installed program is asked.
        """
        manifest = self.spec.model_dump(mode="json")
        manifest |= {key: portable_name(manifest[key]) for key in ("builder", "reader")}
        manifest["code"] = {kind: code.model_dump() for kind, code in sorted(self.code.items())}
        manifest["source"] = SAMPLE if self.spec.source == SAMPLE else self.fingerprints
        manifest["counter"]["tokenizer"] = self.tokenizer
        manifest["corpus"] = self.corpus.sha256 if self.corpus else None
        manifest["errata"] = self.errata
        del manifest["limits"]["seconds_a_page"]  # the lock names the documents that took too long
        if self.spec.page_retrieval is None:
            del manifest["page_retrieval"]
        else:
            manifest["page_retrieval"] |= {"model": _portable(manifest["page_retrieval"]["model"])}
            manifest["page_retrieval"]["model_sha256"] = self.page_model
        del manifest["downloads"]  # the fingerprints say what was read
        manifest["licence"] = self._licence()
        if not self.spec.canary:
            del manifest["canary"]
        if reranker := manifest["retrieval"]["reranker"]:
            reranker["model"] = _portable(reranker["model"])
        if self.ocr:
            manifest["pages"]["ocr"] = asdict(self.ocr)
        elif self.spec.pages.ocr is True:
            manifest["pages"]["ocr"] = ocr or ocr_version()
        if bind_builder(self.spec).spec.page_crops:
            manifest["pages"]["crops"] = crop_makers()
        return {
            **manifest,
            "source_sha256": self.source_hashes,
            "reranker_sha256": self.corpus.reranker if self.corpus else "",
        }

    def _licence(self) -> object:
        """Return the licences as the lock has them: tables of licences by name and SHA-256, without empty keys."""
        if isinstance(self.spec.licence, str):
            return self.spec.licence
        found = self.spec.licence.model_dump(mode="json", exclude_defaults=True)
        for terms in (found, *found.get("sources", {}).values()):
            if path := terms.get("assets"):
                terms |= {"assets": Path(path).name, "assets_sha256": self.licence_tables.get(Path(path).name, "")}
        return found


def plan_datasets(
    manifest: Manifest, build_dir: BuildDir, progress: Progress, shared: Path | None = None
) -> list[DatasetPlan]:
    """Find and fingerprint the sources of every dataset; draw the samples that are needed, once for each reader.

    Archives are unpacked, sources at a URL downloaded, and corpora built once for all datasets: in the working folder
    or, for plans of several builds, in the folder `shared`.
    """
    drawn: dict[str, dict[str, Path]] = {}
    shared = shared or build_dir.root
    opener = SourceOpener(shared / build_dir.opened.name, progress)
    corpora = shared / build_dir.corpora.name
    plans = [_plan_dataset(spec, build_dir, drawn, opener, corpora, progress) for spec in manifest.datasets]
    _refuse_shared_images(plans)
    return plans


def replanned(saved: DatasetPlan, public: Mapping[str, Any], spec: DatasetSpec, build_dir: BuildDir) -> dict[str, Any]:
    """Return what `DatasetPlan.public` is for a dataset of a manifest if its sources are those of a saved plan, whose
    `public` is given. No file is read except task files, and neither OCR nor the model of a reranker has to be
    installed, so that any share of a build can compare its manifest with the saved plan.
    """
    spec = _with_kept_code(spec, build_dir)
    tokenizer = spec.counter.tokenizer
    is_same = _is_same_file(tokenizer, saved.spec.counter.tokenizer)
    given = "given"  # says only that there is one
    plan = replace(
        saved,
        spec=spec,
        tokenizer=saved.tokenizer if is_same else {"name": _portable(tokenizer), "sha256": ""},
        corpus=saved.corpus if (spec.corpus is None) == (saved.spec.corpus is None) else None,
        errata=(saved.errata or given) if spec.errata else None,
        code=code_of(spec, bind_builder(spec).spec.metric),
        ocr=saved.ocr if needs_ocr(spec) else None,
    )
    found = plan.public(ocr=str(public["pages"]["ocr"]) if saved.spec.pages.ocr is True else "true")
    now, before = spec.retrieval.reranker, saved.spec.retrieval.reranker
    if now and before and _is_same_file(now.model, before.model):
        found["retrieval"]["reranker"]["model"] = public["retrieval"]["reranker"]["model"]
    return found


def _is_same_file(name: str, before: str) -> bool:
    """Return whether two names are equal, or are paths that may lead to the same file on two machines."""
    path, other = Path(name), Path(before)
    return path == other or (path.is_absolute() and other.is_absolute() and path.name == other.name)


def _refuse_shared_images(plans: list[DatasetPlan]) -> None:
    """Refuse datasets that would write different pages under the same paths."""
    shown: dict[tuple[str, str], tuple[str, tuple[str, int, int]]] = {}
    for plan in plans:
        folder = reader_type(plan.spec.reader).image_folder
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
    spec: DatasetSpec,
    build_dir: BuildDir,
    drawn: dict[str, dict[str, Path]],
    opener: SourceOpener,
    corpora: Path,
    progress: Progress,
) -> DatasetPlan:
    spec = _with_kept_code(spec, build_dir)
    reader = reader_type(spec.reader)()
    opened = find_sources(spec, reader, build_dir.root / "sample" / spec.name, drawn, opener)
    sources = {name: found.path for name, found in opened.items()}
    kept = sum({found.path: found.bytes for found in opened.values()}.values())
    refuse_own_output(spec, sources, build_dir)
    articles = spec.corpus or sources.pop(CORPUS, None)
    with unchanged_while_planned(spec.name, lambda: _read_to_plan(spec, sources, articles)):
        plan = _read_plan(spec, reader, sources, articles, build_dir, corpora, progress)
        stated_rights(plan)  # a contradiction is found before the long work
    written = (path for name, path in plan.sources.items() if name not in sources)
    kept += sum(file.stat().st_size for path in written for file in files_of(path))
    return replace(plan, opened_bytes=kept)


def _with_kept_code(spec: DatasetSpec, build_dir: BuildDir) -> DatasetSpec:
    """Return a dataset whose task files are copies in the folder of the build, which all its processes load."""
    kept = {key: keep_task_file(getattr(spec, key), build_dir.code) for key in ("builder", "reader")}
    return spec.model_copy(update=kept)


def _read_to_plan(spec: DatasetSpec, sources: Mapping[str, Path], articles: Path | None) -> Iterator[Path]:
    """Yield the files that planning reads more than once; they must not change in between."""
    for source in sources.values():
        yield from files_of(source)
    if articles:
        yield from _corpus_tables(articles)
    if spec.errata:
        yield spec.errata


def _read_plan(
    spec: DatasetSpec,
    reader: Reader[Row],
    sources: dict[str, Path],
    articles: Path | None,
    build_dir: BuildDir,
    corpora: Path,
    progress: Progress,
) -> DatasetPlan:
    check_errata(spec, reader)
    given, sources = sources, extract_sources(spec, reader, sources, build_dir, progress)
    corpus = _corpus(articles, spec, build_dir, corpora, progress) if articles else None
    with _source_errors(spec):
        with calling("reader", spec.reader, "documents()"):
            documents = reader.documents(sources)
        if fault := _documents_fault(documents):
            raise broken("reader", spec.reader, "documents()", fault)
        with calling("reader", spec.reader, "notes()"):
            notes = tuple(map(str, reader.notes(sources, bind_builder(spec).options)))
        found = fingerprint(spec, sources, documents, progress)
        others = tuple(_other_files(spec, corpus, progress))
    _refuse_mixed(spec, found.documents)
    tokenizer = spec.counter.open().text
    return DatasetPlan(
        spec,
        sources,
        {name: found.by_source[name] for name in given},
        found.documents,
        found.refused,
        {"name": _portable(tokenizer.name), "sha256": tokenizer.sha256},
        corpus,
        next((file.hashed.sha256 for file in others if file.source == ERRATA), None),
        code_of(spec, bind_builder(spec).spec.metric),
        (*found.files, *others),
        ocr_engine() if needs_ocr(spec) else None,
        (*notes, *unfinished_downloads(spec)),
        _page_model(spec),
        {file.path.name: file.hashed.sha256 for file in others if file.source == LICENCES},
    )


def _page_model(spec: DatasetSpec) -> str:
    """Return the SHA-256 of the model that ranks pages, before the long work; empty if none does."""
    from mmlongbench.corpus.retrieval.dense import find_model, hash_files, need_libraries

    given = spec.page_retrieval
    if given is None or not given.named_model:
        return ""
    need_libraries()
    return hash_files(find_model(given.named_model, given.revision))


def _other_files(spec: DatasetSpec, corpus: CorpusPlan | None, progress: Progress) -> Iterator[SourceFile]:
    """Yield the files that the bytes of the release depend on, apart from the sources."""
    from mmlongbench.corpus.info import INDEX

    found: dict[str, Iterable[Path]] = {}
    if spec.errata:
        found[ERRATA] = [spec.errata]
    if (tokenizer := Path(spec.counter.tokenizer)).is_file():
        found["counter.tokenizer"] = [tokenizer]
    if tables := licence_tables(spec):
        found[LICENCES] = tables
    if corpus:
        found["corpus"] = [
            *_corpus_tables(corpus.folder),
            *(path for path in sorted((corpus.folder / INDEX).rglob("*")) if path.is_file()),
        ]
    if corpus and (model := spec.retrieval.reranker):
        from mmlongbench.corpus.retrieval.dense import find_model, model_files

        found["retrieval.reranker"] = model_files(find_model(model.model, model.revision))
    for source, paths in found.items():
        yield from source_file_list(spec.name, source, paths, progress)


def _corpus_tables(folder: Path) -> list[Path]:
    """Return the files with a corpus's description and its passages."""
    from mmlongbench.corpus.info import INFO, PASSAGES

    return [folder / INFO, folder / PASSAGES]


@contextmanager
def _source_errors(spec: DatasetSpec) -> Iterator[None]:
    """Turn an OSError about a source file into a SourceError that names the file and the dataset."""
    try:
        yield
    except OSError as error:
        found, name = error.strerror or str(error), Path(str(error.filename or "")).name
        todo = "make it readable, or take it out of the sources"
        fault = Fault("unreadable-source", "a file that can be read", found, name, f"dataset {spec.name!r}", todo=todo)
        raise SourceError(fault) from error


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


def _refuse_mixed(spec: DatasetSpec, documents: Mapping[str, DocumentFile]) -> None:
    """Refuse page images of a DPI other than `pages.dpi`, because a model could recognise them by their resolution."""
    for id, pages in ((each.id, each.pages) for each in documents.values()):
        if isinstance(pages, PageImages) and pages.dpi not in (None, spec.pages.dpi):
            raise ManifestError(
                f"dataset {spec.name!r}: the pages of document {id} are images of {pages.dpi} DPI, pages.dpi is "
                f"{spec.pages.dpi}; set pages.dpi to {pages.dpi}, or give the PDFs"
            )


def _portable(name: str) -> str:
    """Return the last part of a name that is a path on this machine; return any other name unchanged."""
    return Path(name).name if Path(name).exists() else name


def _corpus(path: Path, spec: DatasetSpec, build_dir: BuildDir, corpora: Path, progress: Progress) -> CorpusPlan:
    """Return the plan of the corpus of a dataset. If `path` is no finished corpus, build one from it below `corpora`,
    as `corpus build` does; datasets with the same articles share it.
    """
    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.info import INFO
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index
    from mmlongbench.corpus.retrieval.dense import find_model, hash_files, need_libraries
    from mmlongbench.corpus.sources import make_corpus

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
    return CorpusPlan(
        folder, corpus.fingerprint, cache, hash_files(find_model(model.model, model.revision)) if model else ""
    )
