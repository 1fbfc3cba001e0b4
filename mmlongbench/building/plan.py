"""The plan: the manifest as resolved, and the fingerprint of every source file it names."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.building.work import Work
from mmlongbench.documents.names import folder_names
from mmlongbench.documents.page_images import PageImages
from mmlongbench.documents.page_store import Pages
from mmlongbench.documents.pdf import ocr_version
from mmlongbench.errata import load_errata
from mmlongbench.errors import Fault, ManifestError, SourceError, nearest
from mmlongbench.files import sha256_of, write_whole
from mmlongbench.hub import downloaded
from mmlongbench.manifest import HUB, SAMPLE, DatasetSpec, Manifest, PageSpec
from mmlongbench.plugins import reader_type
from mmlongbench.progress import Progress
from mmlongbench.release.lock import versions
from mmlongbench.sources import visible_files
from mmlongbench.task import Reader

UNREADABLE = "unreadable"
"""The fingerprint of a document that cannot be read."""


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A document among the sources."""

    id: str
    name: str
    """Its folder in the release."""
    pages: Pages
    """Its PDF, or the image files of its pages."""
    sha256: str

    def image_name(self, number: int) -> str:
        """The name of a page's image in the release, the pages numbered from 0."""
        names = self.pages.names if isinstance(self.pages, PageImages) else ()
        return names[number] if names else f"{self.name}_page{number}.jpg"


@dataclass(frozen=True, slots=True)
class CorpusPlan:
    """The passages of a dataset."""

    folder: Path
    sha256: str
    """The fingerprint of all passages."""
    cache: Path
    """Where its index, vectors, rankings and prices are kept: beside it, or in the build where it is read-only."""
    reranker: str = ""
    """SHA-256 of the files of the model that reorders, if there is one."""


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """One dataset with its sources found and fingerprinted."""

    spec: DatasetSpec
    sources: dict[str, Path]
    fingerprints: dict[str, dict[str, Any]]
    """By source: files, bytes, sha256."""
    documents: dict[str, DocumentFile]
    """By folder name."""
    refused: dict[str, Fault]
    """What is wrong with documents that cannot be read or told apart, by id."""
    tokenizer: dict[str, str]
    """Its name and sha256."""
    corpus: CorpusPlan | None = None

    def public(self) -> dict[str, Any]:
        """What decides the release's bytes, without paths: the manifest as resolved, and the fingerprints."""
        manifest = self.spec.model_dump(mode="json")
        manifest["source"] = SAMPLE if self.spec.source == SAMPLE else self.fingerprints
        manifest["counter"]["tokenizer"] = self.tokenizer
        manifest["corpus"] = self.corpus.sha256 if self.corpus else None
        manifest["errata"] = sha256_of(self.spec.errata) if self.spec.errata else None
        if reranker := manifest["retrieval"]["reranker"]:
            reranker["model"] = _portable(reranker["model"])
        if self.spec.pages.ocr:
            manifest["pages"]["ocr"] = ocr_version()
        sources = {name: found["sha256"] for name, found in self.fingerprints.items()}
        return {**manifest, "source_sha256": sources, "reranker_sha256": self.corpus.reranker if self.corpus else ""}


def plan_datasets(manifest: Manifest, work: Work, progress: Progress) -> list[DatasetPlan]:
    """Find and fingerprint the sources of every dataset; draw the samples that are asked for."""
    plans = [_plan_dataset(spec, work, progress) for spec in manifest.datasets]
    _refuse_shared_images(plans)
    return plans


def _refuse_shared_images(plans: list[DatasetPlan]) -> None:
    """Two datasets of one reader may show the same pages, but not different ones under the same paths."""
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


def _plan_dataset(spec: DatasetSpec, work: Work, progress: Progress) -> DatasetPlan:
    reader = reader_type(spec.reader)()
    sources = _sources(spec, reader, work.root / "sample" / spec.name)
    _check_errata(spec, reader)
    articles = spec.corpus or sources.pop("corpus", None)
    corpus = _corpus(articles, spec, work, progress) if articles else None
    with _source_errors(spec):
        documents = reader.documents(sources)
        files = {name: _files(path) for name, path in sources.items()}
        hashes = _hashes(spec, files, documents, progress)
        prints = {name: _fingerprint(sources[name], found, hashes) for name, found in files.items()}
    listed, refused = _documents(documents, hashes)
    _refuse_mixed(spec, listed)
    tokenizer = spec.counter.open().text
    counted = {"name": _portable(tokenizer.name), "sha256": tokenizer.sha256}
    return DatasetPlan(spec, sources, prints, listed, refused, counted, corpus)


@contextmanager
def _source_errors(spec: DatasetSpec) -> Iterator[None]:
    """Name a file of the sources that cannot be read."""
    try:
        yield
    except OSError as error:
        found, name = error.strerror or str(error), Path(str(error.filename or "")).name
        todo = "make it readable, or take it out of the sources"
        fault = Fault("unreadable-source", "a file that can be read", found, name, f"dataset {spec.name!r}", todo=todo)
        raise SourceError(fault) from error


def _hashes(
    spec: DatasetSpec, files: Mapping[str, list[Path]], documents: Mapping[str, Pages | Fault], progress: Progress
) -> dict[Path, str]:
    """The SHA-256 of every source file; a document that cannot be read has none, any other is an error."""
    paths = {file for document in documents.values() if not isinstance(document, Fault) for file in _parts(document)}
    below = [path for found in files.values() for path in found]
    hashes = {}
    with progress.bar(f"{spec.name}: fingerprints", len(below)) as advance:
        for path in dict.fromkeys([*below, *sorted(found for found in paths if found.is_file())]):
            try:
                hashes[path] = sha256_of(path)
            except OSError:
                if path not in paths:
                    raise
                hashes[path] = UNREADABLE
            advance()
    return hashes


def _documents(
    documents: Mapping[str, Pages | Fault], hashes: Mapping[Path, str]
) -> tuple[dict[str, DocumentFile], dict[str, Fault]]:
    """The documents by folder name, and those that are refused before they are opened, by id."""
    names = folder_names(documents)
    listed, refused = {}, {}
    for id, found in sorted(documents.items()):
        if isinstance(found, Fault):
            refused[id] = found
            continue
        parts = [hashes.get(file, "") for file in _parts(found)]
        if UNREADABLE in parts:
            name = _parts(found)[parts.index(UNREADABLE)].name
            refused[id] = Fault("unreadable-document", "a file that can be read", "one that cannot be", name)
        else:
            sha256 = parts[0] if isinstance(found, Path) else hashlib.sha256(" ".join(parts).encode()).hexdigest()
            listed[names[id]] = DocumentFile(id, names[id], found, sha256)
    return listed, refused


def _parts(document: Pages) -> tuple[Path, ...]:
    return (document,) if isinstance(document, Path) else document.files


def _refuse_mixed(spec: DatasetSpec, documents: Mapping[str, DocumentFile]) -> None:
    """Pages that were rendered at another DPI than the others would be told from them by their resolution."""
    for id, pages in ((each.id, each.pages) for each in documents.values()):
        if isinstance(pages, PageImages) and pages.dpi not in (None, spec.pages.dpi):
            raise ManifestError(
                f"dataset {spec.name!r}: the pages of document {id} are images of {pages.dpi} DPI, pages.dpi is "
                f"{spec.pages.dpi}; set pages.dpi to {pages.dpi}, or give the PDFs"
            )


def _portable(name: str) -> str:
    """A name without the folder where it is a path here."""
    return Path(name).name if Path(name).exists() else name


def _corpus(path: Path, spec: DatasetSpec, work: Work, progress: Progress) -> CorpusPlan:
    """The corpus of a dataset: one that was built, or one built now from what `corpus build` reads; indexed."""
    from mmlongbench.passages.corpus import Corpus
    from mmlongbench.passages.info import INFO
    from mmlongbench.passages.making import make_corpus
    from mmlongbench.retrieval.bm25 import FOLDER, find_index
    from mmlongbench.retrieval.models import find_model, hash_files

    if not path.exists():
        raise ManifestError(f"dataset {spec.name!r}: corpus: no such file or folder: {path}")
    folder = path
    if not (path / INFO).is_file():
        folder = work.root / "corpus" / spec.name
        make_corpus(str(path), folder, progress=progress)
    corpus = Corpus.open(folder)
    cache = folder if os.access(folder, os.W_OK) else work.root / "cache" / spec.name
    if spec.retrieval.engine == "tantivy":
        find_index(corpus, cache / FOLDER, progress)
    model = spec.retrieval.reranker
    return CorpusPlan(
        folder, corpus.fingerprint, cache, hash_files(find_model(model.model, model.revision)) if model else ""
    )


def _sources(spec: DatasetSpec, reader: Reader, folder: Path) -> dict[str, Path]:
    """The paths of a dataset's sources, by the reader's names for them."""
    if isinstance(spec.source, str):
        folder.mkdir(parents=True, exist_ok=True)
        return reader.draw_sample(folder)
    optional: tuple[str, ...] = getattr(reader, "optional_sources", ())
    for name in spec.source:
        if name not in (*reader.sources, *optional):
            hint = nearest(name, (*reader.sources, *optional))
            raise ManifestError(f"dataset {spec.name!r}: reader {spec.reader!r} has no source {name!r}{hint}")
    found: dict[str, Path] = {}
    for name in (*reader.sources, *(name for name in optional if name in spec.source)):
        path = spec.source.get(name)
        if path is not None and str(path).startswith(HUB):
            found[name] = downloaded(str(path).removeprefix(HUB), getattr(reader, "hub_files", ()), name)
            continue
        if path is None:
            raise ManifestError(f"dataset {spec.name!r}: source.{name} is missing; --set source.{name}=PATH gives it")
        if not path.exists():
            raise ManifestError(f"dataset {spec.name!r}: source.{name}: no such file or folder: {path}")
        if not (path.is_file() or path.is_dir()):  # a pipe would never end
            asked = f"dataset {spec.name!r}: source.{name}"
            raise ManifestError(f"{asked}: expected a file or a folder, found a pipe or a device: {path}")
        found[name] = path
    return found


def _check_errata(spec: DatasetSpec, reader: Reader) -> None:
    if spec.errata is None:
        return
    if not spec.errata.is_file():
        raise ManifestError(f"dataset {spec.name!r}: errata: no such file: {spec.errata}")
    if not hasattr(reader, "raw_rows"):
        raise ManifestError(f"dataset {spec.name!r}: errata: the reader {spec.reader!r} cannot correct rows")
    fixed = getattr(reader, "fixed_fields", ())
    for id, erratum in load_errata(spec.errata).items():
        if field := next((field for field in erratum.set if field in fixed), None):
            raise ManifestError(
                f"dataset {spec.name!r}: errata: {id}: {field!r} says which pages a document has; "
                "mend the document instead"
            )


def _files(path: Path) -> list[Path]:
    """The file itself, or all visible files below a folder, sorted."""
    return [path] if path.is_file() else visible_files(path)


def _fingerprint(path: Path, files: list[Path], hashes: Mapping[Path, str]) -> dict[str, Any]:
    """A file's SHA-256, or for a folder the one of its sorted (relative path, SHA-256) lines."""
    size = sum(found.stat().st_size for found in files)
    if path.is_file():
        return {"files": 1, "bytes": size, "sha256": hashes[path]}
    lines = "".join(f"{hashes[found]}  {found.relative_to(path).as_posix()}\n" for found in files)
    sha256 = hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    return {"files": len(files), "bytes": size, "sha256": sha256}


def begun(work: Work) -> Any:  # noqa: ANN401  (JSON)
    """The plan that an interrupted build has saved, or None; the build may have been moved since."""
    if not work.plan.is_file():
        return None
    saved = json.loads(work.plan.read_bytes().decode("utf-8", "surrogateescape"))
    return _moved(saved, saved["root"], str(work.root))


def _moved(saved: Any, before: str, now: str) -> Any:  # noqa: ANN401  (JSON)
    """The same with the paths of a working folder as they are now: drawn samples and corpora stand in it."""
    if before == now:
        return saved
    if isinstance(saved, str):
        return now + saved.removeprefix(before) if saved.startswith(f"{before}/") else saved
    if isinstance(saved, list):
        return [_moved(each, before, now) for each in saved]
    return {key: _moved(each, before, now) for key, each in saved.items()} if isinstance(saved, dict) else saved


def save_plans(plans: list[DatasetPlan], work: Work) -> None:
    """Write the plan where workers, and the build that goes on after an interruption, find it."""
    data = [
        {
            "spec": plan.spec.model_dump(mode="json"),
            "sources": {name: str(path) for name, path in plan.sources.items()},
            "fingerprints": plan.fingerprints,
            "documents": [[d.id, d.name, _saved_pages(d.pages), d.sha256] for d in plan.documents.values()],
            "refused": {id: fault.fields() for id, fault in plan.refused.items()},
            "tokenizer": plan.tokenizer,
            "corpus": _saved_corpus(plan.corpus) if plan.corpus else None,
            "public": plan.public(),
        }
        for plan in plans
    ]
    saved = {"versions": versions(), "root": str(work.root), "datasets": data}
    write_whole(work.plan, [json.dumps(saved, ensure_ascii=False).encode("utf-8", "surrogateescape")])


def _saved_pages(pages: Pages) -> Any:  # noqa: ANN401  (JSON)
    if isinstance(pages, Path):
        return str(pages)
    return {"files": [str(file) for file in pages.files], "names": pages.names, "dpi": pages.dpi}


def _loaded_pages(saved: Any) -> Pages:  # noqa: ANN401  (JSON)
    if isinstance(saved, str):
        return Path(saved)
    return PageImages(tuple(map(Path, saved["files"])), tuple(saved["names"]), saved["dpi"])


def _saved_corpus(corpus: CorpusPlan) -> list[str]:
    return [str(corpus.folder), corpus.sha256, str(corpus.cache), corpus.reranker]


def _corpus_plan(folder: str, sha256: str, cache: str, reranker: str) -> CorpusPlan:
    return CorpusPlan(Path(folder), sha256, Path(cache), reranker)


def load_plan(work: Work, dataset: str) -> DatasetPlan:
    """The plan of one dataset, as it was saved."""
    for data in begun(work)["datasets"]:
        spec = DatasetSpec.model_validate(data["spec"])
        if spec.name == dataset:
            documents = {
                name: DocumentFile(id, name, _loaded_pages(saved), sha) for id, name, saved, sha in data["documents"]
            }
            refused = {id: Fault(**fault) for id, fault in data["refused"].items()}
            sources = {name: Path(path) for name, path in data["sources"].items()}
            corpus = _corpus_plan(*data["corpus"]) if data["corpus"] else None
            return DatasetPlan(spec, sources, data["fingerprints"], documents, refused, data["tokenizer"], corpus)
    raise KeyError(dataset)
