"""The plan: the manifest as resolved, and the fingerprint of every source file it names."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.building.work import Work
from mmlongbench.documents.names import folder_names
from mmlongbench.errors import ManifestError, nearest
from mmlongbench.files import sha256_of, write_whole
from mmlongbench.manifest import SAMPLE, DatasetSpec, Manifest, PageSpec
from mmlongbench.plugins import reader_type
from mmlongbench.progress import Progress
from mmlongbench.release.lock import versions
from mmlongbench.task import Reader


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """A document among the sources."""

    id: str
    name: str
    """Its folder in the release."""
    path: Path
    sha256: str


@dataclass(frozen=True, slots=True)
class CorpusPlan:
    """The passages of a dataset."""

    folder: Path
    sha256: str
    """The fingerprint of all passages."""


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """One dataset with its sources found and fingerprinted."""

    spec: DatasetSpec
    sources: dict[str, Path]
    fingerprints: dict[str, dict[str, Any]]
    """By source: files, bytes, sha256."""
    documents: dict[str, DocumentFile]
    """By folder name."""
    tokenizer: dict[str, str]
    """Its name and sha256."""
    corpus: CorpusPlan | None = None

    def public(self) -> dict[str, Any]:
        """What decides the release's bytes, without paths: the manifest as resolved, and the fingerprints."""
        manifest = self.spec.model_dump(mode="json")
        manifest["source"] = SAMPLE if self.spec.source == SAMPLE else self.fingerprints
        manifest["counter"]["tokenizer"] = self.tokenizer
        manifest["corpus"] = self.corpus.sha256 if self.corpus else None
        if reranker := manifest["retrieval"]["reranker"]:
            reranker["model"] = _portable(reranker["model"])
        return {**manifest, "source_sha256": {name: found["sha256"] for name, found in self.fingerprints.items()}}


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
    articles = spec.corpus or sources.pop("corpus", None)
    corpus = _corpus(articles, spec, work, progress) if articles else None
    files = {name: _files(path) for name, path in sources.items()}
    hashes: dict[Path, str] = {}
    with progress.bar(f"{spec.name}: fingerprints", sum(map(len, files.values()))) as advance:
        for path in (path for found in files.values() for path in found):
            hashes[path] = sha256_of(path)
            advance()
    documents = reader.documents(sources)
    names = folder_names(documents)
    listed = {
        names[id]: DocumentFile(id, names[id], path, hashes.get(path) or (sha256_of(path) if path.is_file() else ""))
        for id, path in sorted(documents.items())
    }
    prints = {name: _fingerprint(sources[name], found, hashes) for name, found in files.items()}
    tokenizer = spec.counter.open().text
    counted = {"name": _portable(tokenizer.name), "sha256": tokenizer.sha256}
    return DatasetPlan(spec, sources, prints, listed, counted, corpus)


def _portable(name: str) -> str:
    """A name without the folder where it is a path here."""
    return Path(name).name if Path(name).exists() else name


def _corpus(path: Path, spec: DatasetSpec, work: Work, progress: Progress) -> CorpusPlan:
    """The corpus of a dataset: one that was built, or one built now from what `corpus build` reads; indexed."""
    from mmlongbench.passages.corpus import Corpus
    from mmlongbench.passages.info import INFO
    from mmlongbench.passages.making import make_corpus
    from mmlongbench.retrieval.bm25 import FOLDER, find_index

    if not path.exists():
        raise ManifestError(f"dataset {spec.name!r}: corpus: no such file or folder: {path}")
    folder = path
    if not (path / INFO).is_file():
        folder = work.root / "corpus" / spec.name
        make_corpus(str(path), folder, progress=progress)
    corpus = Corpus.open(folder)
    if spec.retrieval.engine == "tantivy":
        find_index(corpus, folder / FOLDER, progress)
    return CorpusPlan(folder, corpus.fingerprint)


def _sources(spec: DatasetSpec, reader: Reader, folder: Path) -> dict[str, Path]:
    """The paths of a dataset's sources, by the reader's names for them."""
    if isinstance(spec.source, str):
        folder.mkdir(parents=True, exist_ok=True)
        return reader.draw_sample(folder)
    for name in spec.source:
        if name not in reader.sources:
            hint = nearest(name, reader.sources)
            raise ManifestError(f"dataset {spec.name!r}: reader {spec.reader!r} has no source {name!r}{hint}")
    for name in reader.sources:
        path = spec.source.get(name)
        if path is None:
            raise ManifestError(f"dataset {spec.name!r}: source.{name} is missing; --set source.{name}=PATH gives it")
        if not path.exists():
            raise ManifestError(f"dataset {spec.name!r}: source.{name}: no such file or folder: {path}")
    return dict(spec.source)


def _files(path: Path) -> list[Path]:
    """The file itself, or all visible files below a folder, sorted."""
    if path.is_file():
        return [path]
    below = (found for found in path.rglob("*") if found.is_file())
    return sorted(f for f in below if not any(part.startswith(".") for part in f.relative_to(path).parts))


def _fingerprint(path: Path, files: list[Path], hashes: Mapping[Path, str]) -> dict[str, Any]:
    """A file's SHA-256, or for a folder the one of its sorted (relative path, SHA-256) lines."""
    size = sum(found.stat().st_size for found in files)
    if path.is_file():
        return {"files": 1, "bytes": size, "sha256": hashes[path]}
    lines = "".join(f"{hashes[found]}  {found.relative_to(path).as_posix()}\n" for found in files)
    sha256 = hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()
    return {"files": len(files), "bytes": size, "sha256": sha256}


def begun(work: Work) -> Any:  # noqa: ANN401  (JSON)
    """The plan that an interrupted build has saved, or None."""
    if not work.plan.is_file():
        return None
    return json.loads(work.plan.read_bytes().decode("utf-8", "surrogateescape"))


def save_plans(plans: list[DatasetPlan], work: Work) -> None:
    """Write the plan where workers, and the build that goes on after an interruption, find it."""
    data = [
        {
            "spec": plan.spec.model_dump(mode="json"),
            "sources": {name: str(path) for name, path in plan.sources.items()},
            "fingerprints": plan.fingerprints,
            "documents": [[d.id, d.name, str(d.path), d.sha256] for d in plan.documents.values()],
            "tokenizer": plan.tokenizer,
            "corpus": [str(plan.corpus.folder), plan.corpus.sha256] if plan.corpus else None,
            "public": plan.public(),
        }
        for plan in plans
    ]
    saved = {"versions": versions(), "datasets": data}
    write_whole(work.plan, [json.dumps(saved, ensure_ascii=False).encode("utf-8", "surrogateescape")])


def load_plan(work: Work, dataset: str) -> DatasetPlan:
    """The plan of one dataset, as it was saved."""
    for data in begun(work)["datasets"]:
        spec = DatasetSpec.model_validate(data["spec"])
        if spec.name == dataset:
            documents = {name: DocumentFile(id, name, Path(path), sha) for id, name, path, sha in data["documents"]}
            sources = {name: Path(path) for name, path in data["sources"].items()}
            corpus = CorpusPlan(Path(data["corpus"][0]), data["corpus"][1]) if data["corpus"] else None
            return DatasetPlan(spec, sources, data["fingerprints"], documents, data["tokenizer"], corpus)
    raise KeyError(dataset)
