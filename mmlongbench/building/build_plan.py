"""The plan: the resolved manifest and the fingerprint of every source file that it names."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.fingerprints import DocumentFile, SourceFingerprint, files_of, fingerprint, source_file_list
from mmlongbench.building.locating import CORPUS, check_errata, find_sources, refuse_own_output
from mmlongbench.building.source_files import SourceFile, save_source_files, unchanged_while_planned
from mmlongbench.documents.page_images import PageImages
from mmlongbench.documents.page_store import Pages
from mmlongbench.documents.pdf import ocr_version
from mmlongbench.errors import BuildError, Fault, ManifestError, SourceError
from mmlongbench.io.atomic import write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.calling import broken, calling
from mmlongbench.manifest.code import PluginCode, code_of
from mmlongbench.manifest.model import SAMPLE, DatasetSpec, Manifest, PageSpec
from mmlongbench.manifest.registry import reader_type
from mmlongbench.manifest.resolve import bind_builder
from mmlongbench.manifest.task_files import keep_task_file, portable_name
from mmlongbench.release.lock import versions
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row

ERRATA = "errata"
"""The `SourceFile.source` of the file of corrections."""


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
    fingerprints: dict[str, SourceFingerprint]
    """The number of files, the bytes and the SHA-256 of each source, by its name."""
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
    notes: tuple[str, ...] = ()
    """What a user must know about the sources, one sentence each (`Reader.notes`)."""

    @property
    def source_hashes(self) -> dict[str, str]:
        """The SHA-256 of each source, by its name."""
        return {name: found["sha256"] for name, found in self.fingerprints.items()}

    def public(self) -> dict[str, Any]:
        """Return everything that decides the release's bytes, without paths: the resolved manifest and the
        fingerprints.
        """
        manifest = self.spec.model_dump(mode="json")
        manifest |= {key: portable_name(manifest[key]) for key in ("builder", "reader")}
        manifest["code"] = {kind: code.model_dump() for kind, code in sorted(self.code.items())}
        manifest["source"] = SAMPLE if self.spec.source == SAMPLE else self.fingerprints
        manifest["counter"]["tokenizer"] = self.tokenizer
        manifest["corpus"] = self.corpus.sha256 if self.corpus else None
        manifest["errata"] = self.errata
        del manifest["limits"]["seconds_a_page"]  # a time limit never changes a byte
        if reranker := manifest["retrieval"]["reranker"]:
            reranker["model"] = _portable(reranker["model"])
        if self.spec.pages.ocr:
            manifest["pages"]["ocr"] = ocr_version()
        return {
            **manifest,
            "source_sha256": self.source_hashes,
            "reranker_sha256": self.corpus.reranker if self.corpus else "",
        }


def plan_datasets(manifest: Manifest, build_dir: BuildDir, progress: Progress) -> list[DatasetPlan]:
    """Find and fingerprint the sources of every dataset; draw the samples that are needed, once for each reader."""
    drawn: dict[str, dict[str, Path]] = {}
    plans = [_plan_dataset(spec, build_dir, drawn, progress) for spec in manifest.datasets]
    _refuse_shared_images(plans)
    return plans


def _refuse_shared_images(plans: list[DatasetPlan]) -> None:
    """Refuse datasets that would write different pages under the same paths."""
    shown: dict[tuple[str, str], tuple[str, tuple[str, PageSpec]]] = {}
    for plan in plans:
        folder = reader_type(plan.spec.reader).image_folder
        for file in plan.documents.values():
            made = (file.sha256, plan.spec.pages)
            name, before = shown.setdefault((folder, file.name), (plan.spec.name, made))
            if before != made:
                differ = "pages.dpi or pages.quality" if before[0] == made[0] else "the document"
                raise ManifestError(
                    f"datasets {name!r} and {plan.spec.name!r}: both show {folder}/{file.name}, and {differ} differs; "
                    "build them into two releases"
                )


def _plan_dataset(
    spec: DatasetSpec, build_dir: BuildDir, drawn: dict[str, dict[str, Path]], progress: Progress
) -> DatasetPlan:
    spec = _with_kept_code(spec, build_dir)
    reader = reader_type(spec.reader)()
    sources = find_sources(spec, reader, build_dir.root / "sample" / spec.name, drawn)
    refuse_own_output(spec, sources, build_dir)
    articles = spec.corpus or sources.pop(CORPUS, None)
    with unchanged_while_planned(spec.name, lambda: _read_to_plan(spec, sources, articles)):
        return _read_plan(spec, reader, sources, articles, build_dir, progress)


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
    progress: Progress,
) -> DatasetPlan:
    check_errata(spec, reader)
    corpus = _corpus(articles, spec, build_dir, progress) if articles else None
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
        found.by_source,
        found.documents,
        found.refused,
        {"name": _portable(tokenizer.name), "sha256": tokenizer.sha256},
        corpus,
        next((file.hashed.sha256 for file in others if file.source == ERRATA), None),
        code_of(spec, bind_builder(spec).spec.metric),
        (*found.files, *others),
        notes,
    )


def _other_files(spec: DatasetSpec, corpus: CorpusPlan | None, progress: Progress) -> Iterator[SourceFile]:
    """Yield the files that the bytes of the release depend on, apart from the sources."""
    from mmlongbench.corpus.info import INDEX

    found: dict[str, Iterable[Path]] = {}
    if spec.errata:
        found[ERRATA] = [spec.errata]
    if (tokenizer := Path(spec.counter.tokenizer)).is_file():
        found["counter.tokenizer"] = [tokenizer]
    if corpus:
        found["corpus"] = [
            *_corpus_tables(corpus.folder),
            *(path for path in sorted((corpus.folder / INDEX).rglob("*")) if path.is_file()),
        ]
    if corpus and (model := spec.retrieval.reranker):
        from mmlongbench.corpus.retrieval.models import find_model, model_files

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


def _corpus(path: Path, spec: DatasetSpec, build_dir: BuildDir, progress: Progress) -> CorpusPlan:
    """Return the plan of the corpus of a dataset. If `path` is no finished corpus, build one from it, as `corpus build`
    does.
    """
    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.info import INFO
    from mmlongbench.corpus.making import make_corpus
    from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index
    from mmlongbench.corpus.retrieval.models import find_model, hash_files, need_libraries

    if not path.exists():
        raise ManifestError(f"dataset {spec.name!r}: corpus: no such file or folder: {path}")
    if spec.retrieval.reranker:
        need_libraries()  # fail before the long work
    folder = path
    if not (path / INFO).is_file():
        folder = build_dir.root / "corpus" / spec.name
        make_corpus(str(path), folder, progress=progress)
    corpus = Corpus.open(folder)
    cache = folder if os.access(folder, os.W_OK) else build_dir.root / "cache" / spec.name
    if spec.retrieval.engine == "tantivy":
        find_index(corpus, cache / FOLDER, progress)
    model = spec.retrieval.reranker
    return CorpusPlan(
        folder, corpus.fingerprint, cache, hash_files(find_model(model.model, model.revision)) if model else ""
    )


FORMAT: Literal[4] = 4
"""The format version of the plan file."""


@dataclass(frozen=True, slots=True)
class SavedDataset:
    """The plan of one dataset, as it is saved."""

    plan: DatasetPlan
    public: dict[str, Any]
    """Everything that decides the release's bytes, as `DatasetPlan.public` returned it."""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """The plan of an unfinished build, as it is saved."""

    versions: dict[str, str]
    root: str
    """The path of the working folder when the plan was saved. If the folder has been moved, `load_interrupted_plan`
    changes all saved paths that begin with this path."""
    datasets: list[SavedDataset]
    format: Literal[4] = FORMAT
    """The format version of this file; a build with another version cannot be continued."""

    @property
    def plans(self) -> dict[str, DatasetPlan]:
        """Return the plan of each dataset, by name."""
        return {each.plan.spec.name: each.plan for each in self.datasets}

    @property
    def public(self) -> list[dict[str, Any]]:
        """Return `SavedDataset.public` of each dataset, in order."""
        return [each.public for each in self.datasets]


_SAVED = TypeAdapter(SavedPlan)


def load_interrupted_plan(build_dir: BuildDir) -> SavedPlan | None:
    """Return the plan that an interrupted build has saved; None if there is none or it is damaged.

    The folder of the build may have been moved since the plan was saved.

    Raises:
        BuildError: the plan has the format of an earlier or later version.

    """
    try:
        saved: object = json.loads(build_dir.plan.read_bytes().decode("utf-8", "surrogateescape"))
        if _is_of_another_version(saved):
            raise BuildError(
                f"--out {build_dir.out}: holds an unfinished build of another version of mmlongbench; finish it with "
                "that version, give another folder, or remove this one"
            )
        if not isinstance(saved, dict):
            return None
        return _SAVED.validate_python(_moved(saved, saved["root"], str(build_dir.root)))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # cut off, or not a plan
        return None


def _is_of_another_version(saved: object) -> bool:
    """Return whether a JSON value is a complete plan of another format; the first format had no version number."""
    return (
        isinstance(saved, dict) and {"root", "versions", "datasets"} <= saved.keys() and saved.get("format") != FORMAT
    )


def _moved(saved: object, before: str, now: str) -> object:
    """Return a copy of saved values in which the paths below the working folder `before` are paths below `now`. These
    are, for example, the paths of samples and corpora.
    """
    if before == now:
        return saved
    if isinstance(saved, str):
        return now + saved.removeprefix(before) if saved.startswith(f"{before}/") else saved
    if isinstance(saved, list):
        return [_moved(each, before, now) for each in saved]
    return {key: _moved(each, before, now) for key, each in saved.items()} if isinstance(saved, dict) else saved


def save_plans(plans: list[DatasetPlan], build_dir: BuildDir) -> None:
    """Write the plan to the file where workers, and a later build that continues this one, find it."""
    save_source_files(build_dir, (file for plan in plans for file in plan.files))
    datasets = [SavedDataset(replace(plan, files=()), plan.public()) for plan in plans]
    _write(SavedPlan(versions(), str(build_dir.root), datasets), build_dir)


def save_page_seconds(build_dir: BuildDir, seconds: Mapping[str, float]) -> None:
    """Change the time limits of pages in a saved plan; `seconds` has the new limit of each dataset, by name. No byte of
    a release depends on these limits.
    """
    saved = load_interrupted_plan(build_dir)
    if saved is None:
        return
    datasets = [replace(each, plan=_within(each.plan, seconds)) for each in saved.datasets]
    if datasets != saved.datasets:
        _write(replace(saved, root=str(build_dir.root), datasets=datasets), build_dir)


def _within(plan: DatasetPlan, seconds: Mapping[str, float]) -> DatasetPlan:
    """Return a plan with the time limit that `seconds` has for its dataset; without one, the limit stays as it is."""
    limit = seconds.get(plan.spec.name, plan.spec.limits.seconds_a_page)
    limits = replace(plan.spec.limits, seconds_a_page=limit)
    return replace(plan, spec=plan.spec.model_copy(update={"limits": limits}))


def _write(saved: SavedPlan, build_dir: BuildDir) -> None:
    data = _SAVED.dump_python(saved)  # JSON mode would lose names of documents that are not valid Unicode
    text = json.dumps(data, ensure_ascii=False, default=os.fspath)  # everything but paths is JSON already
    write_whole(build_dir.plan, [text.encode("utf-8", "surrogateescape")])


def load_plans(build_dir: BuildDir) -> dict[str, DatasetPlan]:
    """Return the saved plans of all datasets, by name.

    Raises:
        BuildError: there is no plan, or it cannot be read.

    """
    found = load_interrupted_plan(build_dir)
    if found is None:
        raise BuildError(f"{build_dir.plan}: is missing or damaged; run the build, or its stage `prepare`, again")
    return found.plans
