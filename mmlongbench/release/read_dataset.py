"""A dataset whose records can be read and counted, as a lock or an installed manifest describes it."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmlongbench.documents.confined import ask
from mmlongbench.documents.limits import EARLIER_COUNTS, Limits
from mmlongbench.errors import ManifestError, NotHereError, ReaderDiedError, ReleaseError, SourceError
from mmlongbench.manifest.binding import bind
from mmlongbench.manifest.loading import installed_manifests, load_manifest
from mmlongbench.manifest.model import SAMPLE, CounterSpec, DatasetSpec
from mmlongbench.manifest.strict_model import explain
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles, recorded_code
from mmlongbench.prompt import Prompt
from mmlongbench.release.layout import LOCK, TOKENIZERS
from mmlongbench.release.lock import LockedCounter, also_counted_as, counted_as
from mmlongbench.task.builder import Builder
from mmlongbench.task.file_formats import FileFormat, FilePattern
from mmlongbench.task.rows import Record, Row
from mmlongbench.task.spec import TaskSpec
from tokenization import ChatTemplate, CrossModalCounter, PatchRule, TokenizationError, VisionRule
from tokenization.text import LLAMA2, read_file
from tokenization.vision import rule_of_fields

_LIMITS = Limits(seconds_a_page=4, memory=1 << 30)
"""The limits of writing a prompt by a chat template, which takes some milliseconds."""
_MAX_ADDED = 1 << 20
"""The most characters that a template may add to twice the messages; those of models add some hundreds."""
_ADVICE = "give it with `audit --tokenizer`"
_TOO_COSTLY: set[str] = set()
"""The templates that were above the limits, which are not tried again."""


def _public_forms(task: TaskSpec) -> Iterator[tuple[FilePattern, FileFormat, bool]]:
    """Yield (names, format, whether it is `TaskSpec.bundle`) of the files that a task makes of its records."""
    if task.bundle:
        yield task.bundle.files, task.bundle.format, True
    yield task.files, task.format, False


@dataclass(frozen=True)
class ReadDataset:
    """A dataset whose records can be read and counted."""

    spec: DatasetSpec
    """The dataset as the lock describes it; for files of other origin, as an installed manifest does."""
    builder: Builder[Row]
    reserve: int | None
    """The tokens that are kept free; None if not known."""
    open_counter: Callable[[], CrossModalCounter]
    is_locked: bool = True
    """Whether a lock says what the records must contain; False for files of other origin."""
    variant: str = ""
    """The form of the prompts that is counted, such as `oracle`; empty: the released form."""
    locked: LockedCounter = field(default_factory=dict)
    """Its counter; empty for files of other origin."""
    open_count_as: Mapping[str, Callable[[], CrossModalCounter]] = field(default_factory=dict)
    also_counted_as: str = ""
    """The further counters of its records (`tokens.as`), in words."""

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.builder.dataset

    @cached_property
    def counter(self) -> CrossModalCounter:
        """The counter that the release was counted with; its tokenizer is loaded when it is first used. Raises
        NotHereError if it is not on this machine, ReleaseError if it is another one.
        """
        return self.open_counter()

    @cached_property
    def count_as(self) -> dict[str, CrossModalCounter]:
        """The further counters of its records (`tokens.as`), by name; raises the errors of `counter`."""
        return {name: open_counter() for name, open_counter in self.open_count_as.items()}

    @cached_property
    def rule(self) -> PatchRule | VisionRule:
        """The rule that counts its images, which needs no tokenizer."""
        return locked_rule(self.locked) if self.locked else self.spec.counter.rule()

    @property
    def counted_as(self) -> str:
        """The model by which it was counted, in words; empty if it was the benchmark's rule of images."""
        return counted_as(self.locked)

    @property
    def tokenizer(self) -> str:
        """The name of the tokenizer of its texts, without its folder."""
        return str(self.locked["tokenizer"]["name"]) if self.locked else self.counter.text.name

    def prompt(self, record: Record) -> Prompt:
        """Return the prompt of a record, or the chosen variant of it."""
        return self.builder.render_variant(record, self.variant) if self.variant else self.builder.prompt(record)

    def recognise(self, name: str) -> tuple[int, FileFormat, bool] | None:
        """Return (length, format, whether it is `TaskSpec.bundle`) of a file of the dataset, by its name below
        `mmlb_data/`; None if it is no file of the dataset.
        """
        for pattern, form, is_bundle in _public_forms(self.builder.spec):
            read = pattern.recognise(name)
            if read and read[0] == self.name:
                return read[1], form, is_bundle
        return None


def locked_dataset(
    data: Mapping[str, Any], tokenizer: str | None, tasks: TaskFiles = NO_TASK_FILES, release: Path | None = None
) -> ReadDataset:
    """Return a dataset in the form of the lock with its builder. If no tokenizer is given, it is counted with the one
    that the release keeps.
    """
    try:
        locked, further = dict(data["counter"]), dict(data.get("count_as") or {})
        left_out = ("errata", "code", "count_as")
        resolved = {key: value for key, value in data.items() if not key.endswith("_sha256") and key not in left_out}
        counted = _counter_fields(locked) | ({"text": tokenizer} if tokenizer else {})
        count_as = [_counter_fields(each) for each in further.values()]
        pages = {key: value for key, value in data["pages"].items() if key not in ("ocr", "crops")}
        limits = {key: value for key, value in data.get("limits", {}).items() if key not in EARLIER_COUNTS}
        counts = {"counter": counted, "count_as": count_as}
        spec = DatasetSpec.model_validate({**resolved, **counts, "source": "sample", "pages": pages, "limits": limits})
    except ValidationError as error:
        raise ReleaseError(f"{explain(error, f'{LOCK}: manifest: cannot be read', DatasetSpec, [])}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ReleaseError(f"{LOCK}: manifest: cannot be read: {' '.join(str(error).split())}") from error
    named = {kind: tasks.named(kind, getattr(spec, kind), recorded_code(data, kind)) for kind in ("builder", "reader")}
    spec = spec.model_copy(update=named)
    bound = bind(spec)
    open_counter = partial(_locked_counter, spec.counter, locked, tokenizer, release, _ADVICE)
    opening = {
        name: partial(_locked_counter, each, further[name], None, release)
        for name, each in zip(further, spec.count_as, strict=True)
    }
    said = also_counted_as(further)
    return ReadDataset(
        spec, bound.builder, bound.reserve, open_counter, locked=locked, open_count_as=opening, also_counted_as=said
    )


def _counter_fields(locked: LockedCounter) -> dict[str, object]:
    recorded = {key: str(locked["tokenizer"][key]) for key in ("name", "sha256")}
    model, template = locked["image"].get("model"), locked.get("template") or {}
    counted = {"text": recorded["name"], "image": model or locked["image"]}
    return counted | ({"template": str(template["name"])} if template else {})


def _locked_counter(
    spec: CounterSpec, locked: LockedCounter, tokenizer: str | None, release: Path | None, advice: str = ""
) -> CrossModalCounter:
    """Open the counter of a dataset of a lock, `locked`, with the tokenizer and the template that the release keeps.
    `advice` says how else a tokenizer can be given, if it can.
    """
    recorded, template = locked["tokenizer"], locked.get("template") or {}

    def kept(part: Mapping[str, str], ending: str) -> Path | None:  # a name might be that of anything
        path = Path(TOKENIZERS, f"{part['sha256']}.{ending}")
        if release and re.fullmatch("[0-9a-f]{64}", part["sha256"]) and (release / path).is_file():
            return release / path
        if part["name"] == LLAMA2 and ending == "json":
            return None
        way = f", or {advice}" if advice and ending == "json" else ""
        raise NotHereError(f"{path}, the file of {part['name']!r}, is missing: put it back{way}")

    text = tokenizer or str(kept(recorded, "json") or LLAMA2)
    try:
        counter = spec.model_copy(update={"text": text, "template": None}).open(locked_rule(locked))
        if template:
            content = read_file("chat template", template["name"], kept(template, "jinja") or Path())
            counter = replace(counter, template=_KeptTemplate(template["name"], content.decode("utf-8", "replace")))
    except (ManifestError, TokenizationError) as error:
        raise NotHereError(str(error)) from error
    if counter.template and counter.template.sha256 != template["sha256"]:
        raise ReleaseError(
            f"chat template {template['name']!r} is not the one that the release was counted with; "
            f"put {TOKENIZERS}/{template['sha256']}.jinja back"
        )
    if counter.text.sha256 == recorded["sha256"]:
        return counter
    if tokenizer and recorded["name"] == LLAMA2:  # the given tokenizer belongs to another dataset
        return _locked_counter(spec, locked, None, release, advice)
    raise ReleaseError(
        f"tokenizer {counter.text.name!r} has sha256 {counter.text.sha256[:12]}…, the release was counted with "
        f"{recorded['name']!r}, {recorded['sha256'][:12]}…; give it with --tokenizer"
    )


class _KeptTemplate(ChatTemplate):
    """The template of a release, perhaps of others: it is rendered in a process with limits of time and memory."""

    def write(self, messages: list[dict[str, object]]) -> str:
        try:
            if self.text in _TOO_COSTLY:
                raise ReaderDiedError
            # all answers are taken, so that the process is kept for the next prompt
            ((text, reason),) = ask(_written, Path(self.name), _LIMITS, text=self.text, messages=messages)
        except (SourceError, ReaderDiedError) as error:
            _TOO_COSTLY.add(self.text)
            raise ReleaseError(
                f"chat template {self.name!r} takes too much time or memory: use no such release"
            ) from error
        if reason:
            raise TokenizationError(reason)
        return str(text)


def _written(path: Path, text: str, messages: list[dict[str, object]], limits: Limits) -> Iterator[tuple[str, str]]:
    del limits
    try:
        written = ChatTemplate(path.name, text).write(messages)
        if len(written) > 2 * len(json.dumps(messages, ensure_ascii=False)) + _MAX_ADDED:
            raise MemoryError
        yield written, ""
    except TokenizationError as error:
        yield "", str(error)


def locked_rule(locked: LockedCounter) -> PatchRule | VisionRule:
    """Return the rule that counts the images of a dataset, whose counter in the lock is given; `NotHereError` if the
    rule is that of a package that is not installed.
    """
    try:
        return rule_of_fields(locked["image"]) if "model" in locked["image"] else PatchRule(**locked["image"])
    except TokenizationError as error:
        raise NotHereError(f"{LOCK}: counter.image: {error}") from error


def _foreign_dataset(spec: DatasetSpec) -> ReadDataset:
    bound = bind(spec)
    return ReadDataset(spec, bound.builder, bound.task.reserve, spec.counter.open, is_locked=False)


def installed_datasets(variant: str) -> list[ReadDataset]:
    """Return the datasets of the installed manifests without the quickstarts; of several with one name, the first."""
    specs: dict[str, DatasetSpec] = {}
    for name, manifest in installed_manifests().items():
        if not name.startswith("quickstart"):
            for spec in load_manifest(manifest).datasets:
                specs.setdefault(spec.name, spec)
    return with_variant(map(_foreign_dataset, specs.values()), variant)


def dataset_of_builder(builder: str, path: Path, variant: str) -> tuple[ReadDataset, int, FileFormat, bool]:
    """Return (dataset, length, format, whether it is `TaskSpec.bundle`) of a public file with an unknown name, in any
    folder, as a file of the builder that the user names.
    """
    about = {"builder": builder, "reader": "", "source": SAMPLE}
    task = bind(DatasetSpec.model_validate({"name": "any", **about})).task
    plain = (FilePattern("{name}_K{k}.jsonl"), task.format, False)
    for pattern, form, is_bundle in (*_public_forms(task), plain):
        if read := FilePattern(pattern.template.rpartition("/")[2]).recognise(path.name):
            name = re.sub(r"^[^A-Za-z0-9]+", "", read[0]) or "any"
            dataset = _foreign_dataset(DatasetSpec.model_validate({"name": name, **about}))
            return with_variant([dataset], variant)[0], read[1], form, is_bundle
    raise ReleaseError(f"{path}: --builder needs a name with a length, such as {path.stem}_K8.jsonl")


def with_variant(datasets: Iterable[ReadDataset], variant: str) -> list[ReadDataset]:
    """Return all datasets; those that offer the variant are set to give prompts in this form."""
    listed = list(datasets)
    offered = {name for dataset in listed for name in dataset.builder.variants}
    if variant and variant not in offered:
        there = f"offered: {', '.join(sorted(offered))}" if offered else "none is offered"
        raise ReleaseError(f"--variant {variant}: no builder of this release offers it; {there}")
    return [replace(each, variant=variant) if variant in each.builder.variants else each for each in listed]
