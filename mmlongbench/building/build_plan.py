"""The plan of a build: the resolved manifest and the fingerprint of every source file that it names.

While a build is not finished, its plan is a file in the working folder: a later build that continues it, and every
worker, reads it.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.source_files import DocumentFile, SourceFile, SourceFingerprint, save_source_files
from mmlongbench.documents.ocr import OcrEngine, ocr_version
from mmlongbench.documents.page_facts import crop_makers
from mmlongbench.errors import BuildError, Fault
from mmlongbench.io.files import write_whole
from mmlongbench.manifest.binding import Bound, bind
from mmlongbench.manifest.model import SAMPLE, DatasetSpec
from mmlongbench.manifest.plugins import PluginCode
from mmlongbench.manifest.task_files import portable_name
from mmlongbench.release.lock import LockedCounter, canary_text, versions
from tokenization import CrossModalCounter, PatchRule
from tokenization.vision import rule_fields

CORPUS = "corpus"
"""The name under which a sample may return articles, in addition to the sources of its reader. In a manifest, the
articles are not under `source`, but under the key `corpus` of the dataset."""


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


@dataclass(frozen=True)
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
    counter: LockedCounter
    count_as: dict[str, LockedCounter] = field(default_factory=dict)
    corpus: CorpusPlan | None = None
    errata: str | None = None
    """SHA-256 of the file of corrections; None without corrections."""
    code: dict[str, PluginCode] = field(default_factory=dict)
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

    @cached_property
    def bound(self) -> Bound:
        """The dataset with its plug-ins, which a process that has read a saved plan finds once."""
        return bind(self.spec)

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
        manifest["counter"] = self.counter
        del manifest["count_as"]
        if self.count_as:
            manifest["count_as"] = self.count_as
        manifest["corpus"] = self.corpus.sha256 if self.corpus else None
        manifest["errata"] = self.errata
        del manifest["limits"]["seconds_a_page"]  # the lock names the documents that took too long
        if self.spec.page_retrieval is None:
            del manifest["page_retrieval"]
        else:
            manifest["page_retrieval"] |= {"model": portable(manifest["page_retrieval"]["model"])}
            manifest["page_retrieval"]["model_sha256"] = self.page_model
        del manifest["downloads"]  # the fingerprints say what was read
        if not isinstance(self.spec.licence, str):  # tables of licences by name and SHA-256, without empty keys
            licence = self.spec.licence.model_dump(mode="json", exclude_defaults=True)
            for terms in (licence, *licence.get("sources", {}).values()):
                if path := terms.get("assets"):
                    table = Path(path).name
                    terms |= {"assets": table, "assets_sha256": self.licence_tables.get(table, "")}
            manifest["licence"] = licence
        if not self.spec.canary:
            del manifest["canary"]
        if reranker := manifest["retrieval"]["reranker"]:
            reranker["model"] = portable(reranker["model"])
        if self.ocr:
            manifest["pages"]["ocr"] = asdict(self.ocr)
        elif self.spec.pages.ocr is True:
            manifest["pages"]["ocr"] = ocr or ocr_version()
        if self.bound.task.page_crops:
            manifest["pages"]["crops"] = crop_makers()
        return {
            **manifest,
            "source_sha256": self.source_hashes,
            "reranker_sha256": self.corpus.reranker if self.corpus else "",
        }


def canary_of(plans: Iterable[DatasetPlan]) -> str:
    """Return the canary of a release; empty if no dataset asks for one.

    It is derived from the first dataset that asks for one, as the lock has it, without what an extension may change.
    """
    first = next((plan for plan in plans if plan.spec.canary), None)
    return canary_text(first.public()) if first else ""


def locked_counter(counter: CrossModalCounter) -> LockedCounter:
    """Return a counter as the lock has it: the name and the SHA-256 of its files, and its rule with all numbers, so
    that a later version counts as this one does.
    """
    rule, text = counter.image, {"name": portable(counter.text.name), "sha256": counter.text.sha256}
    image = asdict(rule) if isinstance(rule, PatchRule) else rule_fields(rule)
    locked: dict[str, object] = {"tokenizer": text, "image": image}
    if template := counter.template:
        locked["template"] = {"name": portable(template.name), "sha256": template.sha256}
    return locked if counter.is_exact else {**locked, "exact": False}


def portable(name: str) -> str:
    """Return the last part of a name that is a path on this machine; return any other name unchanged."""
    return Path(name).name if Path(name).exists() else name


FORMAT: Literal[6] = 6


@dataclass(frozen=True, slots=True)
class SavedDataset:
    """The plan of one dataset, as it is saved."""

    plan: DatasetPlan
    public: dict[str, Any]


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """The plan of an unfinished build, as it is saved."""

    versions: dict[str, str]
    root: str
    """The path of the working folder when the plan was saved. If the folder has been moved, `load_interrupted_plan`
    changes all saved paths that begin with this path."""
    datasets: list[SavedDataset]
    format: Literal[6] = FORMAT

    @property
    def plans(self) -> dict[str, DatasetPlan]:
        """Return the plan of each dataset, by name."""
        return {saved.plan.spec.name: saved.plan for saved in self.datasets}

    @property
    def public(self) -> list[dict[str, Any]]:
        """Return `SavedDataset.public` of each dataset, in order."""
        return [saved.public for saved in self.datasets]


_SAVED = TypeAdapter(SavedPlan)


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
    datasets = []
    for dataset in saved.datasets:
        spec = dataset.plan.spec
        limits = replace(spec.limits, seconds_a_page=seconds.get(spec.name, spec.limits.seconds_a_page))
        plan = replace(dataset.plan, spec=spec.model_copy(update={"limits": limits}))
        datasets.append(replace(dataset, plan=plan))
    if datasets != saved.datasets:
        _write(replace(saved, root=str(build_dir.root), datasets=datasets), build_dir)


def _write(saved: SavedPlan, build_dir: BuildDir) -> None:
    data = _SAVED.dump_python(saved)  # JSON mode would lose names of documents that are not valid Unicode
    text = json.dumps(data, ensure_ascii=False, default=os.fspath)  # everything but paths is JSON already
    write_whole(build_dir.plan, [text.encode("utf-8", "surrogateescape")])


def load_interrupted_plan(build_dir: BuildDir) -> SavedPlan | None:
    """Return the plan that an interrupted build has saved; None if there is none or it is damaged, a `BuildError` if
    another version of the format was saved. The folder of the build may have been moved since then.
    """
    try:
        saved: object = json.loads(build_dir.plan.read_bytes().decode("utf-8", "surrogateescape"))
        if not isinstance(saved, dict):
            return None
        is_complete = {"root", "versions", "datasets"} <= saved.keys()
        if is_complete and saved.get("format") != FORMAT:  # plans in the first format have no version number
            raise BuildError(
                f"--out {build_dir.out}: holds an unfinished build of another version of mmlongbench; finish it with "
                "that version, give another folder, or remove this one"
            )
        return _SAVED.validate_python(_moved(saved, saved["root"], str(build_dir.root)))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # cut off, or not a plan
        return None


def load_plan(build_dir: BuildDir) -> SavedPlan:
    """Return the saved plan; raises BuildError if there is none, or it cannot be read."""
    if (saved := load_interrupted_plan(build_dir)) is None:
        raise BuildError(
            f"--out {build_dir.out}: nothing readable is prepared there ({build_dir.plan} is missing or damaged); run "
            "--stage prepare first, or the whole build"
        )
    return saved


def _moved(saved: object, before: str, now: str) -> object:
    """Return a copy of saved values for a working folder that was moved from `before` to `now`: each path below
    `before`, such as that of a sample or a corpus, becomes a path below `now`.
    """
    if before == now:
        return saved
    if isinstance(saved, str):
        return now + saved.removeprefix(before) if saved.startswith(f"{before}/") else saved
    if isinstance(saved, list):
        return [_moved(value, before, now) for value in saved]
    return {key: _moved(value, before, now) for key, value in saved.items()} if isinstance(saved, dict) else saved
