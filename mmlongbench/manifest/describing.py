"""Describes one builder, reader, sample, metric or manifest as values, for `mmlongbench list NAME`. Nothing is printed
here.

The functions take classes, so they also describe a class that is no entry point.
"""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import ValidationError

from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.locations import LocalPath, Location
from mmlongbench.manifest.binding import bind_builder, calling
from mmlongbench.manifest.descriptions import (
    BuilderText,
    DatasetText,
    FileText,
    ManifestText,
    MetricText,
    PluginText,
    ReaderText,
    RecordFieldText,
    SampleText,
    SourceText,
    fields_of,
)
from mmlongbench.manifest.loading import installed_manifests, load_manifest
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.manifest.plugins import (
    Plugin,
    builder_type,
    installed,
    is_installed,
    metric_type,
    reader_type,
    sample_function,
)
from mmlongbench.packing.place import Depth, Permutation
from mmlongbench.task.builder import Builder
from mmlongbench.task.metric import PROFILES, Metric
from mmlongbench.task.reader import Reader, SampleFunction
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import TaskSpec

ALWAYS: Mapping[str, str] = {
    "length": "The tokens of the whole prompt: text and images together.",
    "tokens": "An object with text and image (the tokens of the prompt) and reserve (the tokens kept free).",
}
"""The fields of every record."""
AT_DEPTH: Mapping[str, str] = {
    "depth": "The depth that was asked for: 0 is before the first unit of the haystack, 1 after the last one.",
    "depth_achieved": "The depth that was reached: haystack tokens before the needle / all haystack tokens.",
    "needle_start": "The tokens of the prompt before the needle.",
}
"""The fields of a record whose needle is put at a depth."""
PERMUTED: Mapping[str, str] = {
    "permutation": "The number of the permutation, from 0.",
    "depth_achieved": "The depth that was reached by each needle: haystack tokens before it / all haystack tokens.",
    "needle_start": "The tokens of the prompt before each needle.",
    "depth_requested": "The depth that was drawn for each needle; 0 is before the first unit, 1 after the last one.",
}
"""The fields of a record whose needles are permuted."""


def added_fields(placement: type[Depth] | type[Permutation] | None) -> dict[str, str]:
    """Return what each field means that the engine adds to a record.

    Args:
        placement: the kind of the task's placements (`Placements.kind`); None for a task without needles.

    >>> [*added_fields(None)], [*added_fields(Depth)]
    (['length', 'tokens'], ['length', 'tokens', 'depth', 'depth_achieved', 'needle_start'])

    """
    placed = {} if placement is None else AT_DEPTH if placement is Depth else PERMUTED
    return {**ALWAYS, **placed}


_T = TypeVar("_T")
Manifests: TypeAlias = Mapping[str, Manifest]
"""The installed manifests by name."""


def describe_builder(kind: type[Builder[Any]], plugin: Plugin | None = None) -> BuilderText:
    """Return the description of a builder; without `plugin`, of a class that is no entry point.

    Raises:
        PluginCallError: the builder's `spec` fails.

    """
    manifests = _manifests()
    specs = list(_specs(kind, plugin, manifests))
    added = {name: text for spec in specs for name, text in _added(spec).items()}
    own = [RecordFieldText(name=name, text=text, is_added=False) for name, text in kind.record_fields.items()]
    metrics = tuple(spec.metric for spec in specs)
    others = (name for spec in specs for name in (spec.metric, *spec.further_metrics))
    return BuilderText(
        **_plugin_text(kind, plugin).model_dump(),
        options=fields_of(kind.options_type),
        row_type=kind.row_type.__name__,
        row_fields=fields_of(kind.row_type),
        record_fields=(*own, *(RecordFieldText(name=k, text=v, is_added=True) for k, v in added.items())),
        files=_once(file for spec in specs for file in _files(spec)),
        placements=_once(_placed(spec) for spec in specs),
        variants=tuple(kind.variants),
        readers=tuple(each.name for each in usable("reader") if _fits(reader_type(each.name), kind)),
        metrics=metrics[:1],
        further_metrics=tuple(name for name in _once(others) if name not in metrics[:1]),
        manifests=_once(name for name, spec in _datasets(manifests) if plugin and spec.builder == plugin.name),
    )


def describe_reader(kind: type[Reader[Any]], plugin: Plugin | None = None) -> ReaderText:
    """Return the description of a reader; without `plugin`, of a class that is no entry point."""
    manifests = _manifests()
    return ReaderText(
        **_plugin_text(kind, plugin).model_dump(),
        sources=sources_of(kind),
        has_sample=plugin is not None and is_installed("sample", plugin.name),
        row_type=kind.row_type.__name__,
        row_fields=fields_of(kind.row_type),
        image_folder=kind.image_folder,
        builders=tuple(each.name for each in usable("builder") if _fits(kind, builder_type(each.name))),
        manifests=_once(name for name, spec in _datasets(manifests) if plugin and spec.reader == plugin.name),
    )


def describe_metric(kind: type[Metric], plugin: Plugin | None = None) -> MetricText:
    """Return the description of a metric; without `plugin`, of a class that is no entry point."""
    manifests, name = _manifests(), plugin.name if plugin else kind.name
    builders = {each: list(_specs(builder_type(each.name), each, manifests)) for each in usable("builder")}
    return MetricText(
        **{**_plugin_text(kind, plugin).model_dump(), "name": name},
        profiles={profile: kind.profiles[profile] for profile in PROFILES if profile in kind.profiles},
        builders=tuple(
            each.name
            for each, specs in builders.items()
            if any(name in (spec.metric, *spec.further_metrics) for spec in specs)
        ),
        manifests=_once(each for each, spec in _datasets(manifests) if _metric_of(spec) == name),
    )


def describe_sample(draw: SampleFunction, plugin: Plugin) -> SampleText:
    """Return the description of a sample."""
    sources = sources_of(reader_type(plugin.name)) if is_installed("reader", plugin.name) else ()
    return SampleText(**_plugin_text(draw, plugin).model_dump(), reader=plugin.name, sources=sources)


def describe_plugin(plugin: Plugin) -> BuilderText | ReaderText | MetricText | SampleText:
    """Return the description of an installed plug-in.

    Raises:
        PluginError: it cannot be used; the error says why.

    """
    if plugin.kind == "builder":
        return describe_builder(builder_type(plugin.name), plugin)
    if plugin.kind == "reader":
        return describe_reader(reader_type(plugin.name), plugin)
    if plugin.kind == "metric":
        return describe_metric(metric_type(plugin.name), plugin)
    return describe_sample(sample_function(plugin.name), plugin)


def describe_manifest(name: str, path: Path) -> ManifestText:
    """Return the description of a manifest. A builder or reader that is not installed is named only.

    Raises:
        ManifestError: the manifest cannot be read.

    """
    datasets = tuple(_dataset(spec, path) for spec in load_manifest(path).datasets)
    first = path.read_text("utf-8").partition("\n")[0]
    about = first.removeprefix("#").strip() if first.startswith("#") else ""
    return ManifestText(name=name, path=str(path), about=about, datasets=datasets)


def first_paragraph(documented: object) -> str:
    """Return the first paragraph of a docstring as one line; empty without a docstring."""
    text = inspect.cleandoc(documented.__doc__ or "")
    return " ".join(text.partition("\n\n")[0].split())


def plugin_text(loaded: object, name: str = "", distribution: str = "") -> PluginText:
    """Return what every plug-in has: its name, by default that of its class; its code, and what it does."""
    documented = loaded.func if isinstance(loaded, partial) else loaded
    code = str(documented)
    if isinstance(documented, type | FunctionType):
        code = f"{documented.__module__}:{documented.__qualname__}"
    about = first_paragraph(documented)
    own = name or code.rpartition(":")[2]
    return PluginText(name=own, distribution=distribution, version=_version(distribution), code=code, about=about)


def _plugin_text(loaded: object, plugin: Plugin | None) -> PluginText:
    return plugin_text(loaded, plugin.name, plugin.origin) if plugin else plugin_text(loaded)


def _version(distribution: str) -> str:
    """Return the version of a distribution; empty if there is none."""
    try:
        return version(distribution) if distribution else ""
    except PackageNotFoundError:
        return ""


def _manifests() -> Manifests:
    """Return the installed manifests that can be read."""
    found: dict[str, Manifest] = {}
    for name, path in installed_manifests().items():
        with suppress(MMLongBenchError):
            found[name] = load_manifest(path)
    return found


def _datasets(manifests: Manifests) -> Iterator[tuple[str, DatasetSpec]]:
    """Yield (name of the manifest, dataset) of every dataset."""
    return ((name, spec) for name, manifest in sorted(manifests.items()) for spec in manifest.datasets)


def usable(kind: str) -> Iterator[Plugin]:
    """Yield the installed plug-ins of a kind that can be loaded."""
    return (plugin for plugin in installed(kind) if not plugin.problem)


def _fits(reader: type[Reader[Row]], builder: type[Builder[Row]]) -> bool:
    """Return whether a builder takes the rows of a reader."""
    return issubclass(reader.row_type, builder.row_type)


def _specs(kind: type[Builder[Row]], plugin: Plugin | None, manifests: Manifests) -> Iterator[TaskSpec]:
    """Yield what a builder declares with its default options, if it has defaults for all; then with the options of the
    installed manifests that use it.
    """
    name = plugin.name if plugin else kind.__name__
    with suppress(ValidationError):
        options = kind.options_type()
        with calling("builder", name, "spec", about="default options"):
            yield kind(name, options).spec
    for _, spec in _datasets(manifests):
        if plugin and spec.builder == plugin.name:
            with suppress(MMLongBenchError):
                yield bind_builder(spec).spec


def _metric_of(spec: DatasetSpec) -> str:
    """Return the metric of a dataset; empty if its builder is not installed or cannot be used."""
    with suppress(MMLongBenchError):
        return bind_builder(spec).spec.metric if is_installed("builder", spec.builder) else ""
    return ""


def _added(spec: TaskSpec) -> dict[str, str]:
    return added_fields(spec.placements.kind if spec.placements else None)


def _files(spec: TaskSpec) -> Iterator[FileText]:
    yield FileText(kind="records", pattern=spec.files.template)
    if spec.bundle:
        yield FileText(kind="bundle", pattern=spec.bundle.files.template)
    yield FileText(kind="items", pattern=f"{spec.files.template.rpartition('.')[0]}.parquet")


def _placed(spec: TaskSpec) -> str:
    """Return how a task places needles, in words; empty if it places none."""
    if spec.placements is None:
        return ""
    values = spec.placements.values
    if spec.placements.kind is Depth:
        return f"{len(values)} depths ({', '.join(f'{value:g}' for value in values)})"
    return f"{len(values)} permutations"


def sources_of(kind: type[Reader[Row]]) -> tuple[SourceText, ...]:
    """Return the sources of a reader, first those that a manifest must give."""
    names = {**dict.fromkeys(kind.sources, False), **dict.fromkeys(kind.optional_sources, True)}
    return tuple(
        SourceText(name=name, is_optional=is_optional, form=kind.source_forms.get(name, ""))
        for name, is_optional in names.items()
    )


def _dataset(spec: DatasetSpec, path: Path) -> DatasetText:
    reader = reader_type(spec.reader) if is_installed("reader", spec.reader) else None
    return DatasetText(
        name=spec.name,
        builder=spec.shown_builder,
        reader=spec.shown_reader,
        source=_given(spec, reader, path),
        optional_sources=tuple(reader.optional_sources) if reader else (),
        corpus=None if spec.corpus is None else _beside(spec.corpus, path),
        lengths=spec.lengths,
        metric=_metric_of(spec),
        options=spec.options,
    )


def _given(
    spec: DatasetSpec, reader: type[Reader[Row]] | None, path: Path
) -> Mapping[str, str | None] | Literal["sample"]:
    """Return the sources of a dataset as `DatasetText.source` has them."""
    if isinstance(spec.source, str):
        return "sample"
    given: dict[str, str | None] = {
        name: ", ".join(_shown(each, path) for each in found) for name, found in spec.source.items()
    }
    names = [source.name for source in sources_of(reader)] if reader else []
    return {**dict.fromkeys(names), **given}


def _shown(location: Location, manifest: Path) -> str:
    return _beside(location.path, manifest) if isinstance(location, LocalPath) else str(location)


def _beside(source: Path, manifest: Path) -> str:
    """Return the path of a source, relative to the folder of the manifest if it is below this folder."""
    return str(source.relative_to(manifest.parent) if source.is_relative_to(manifest.parent) else source)


def _once(values: Iterable[_T]) -> tuple[_T, ...]:
    """Return the values, each once, without empty ones."""
    return tuple(value for value in dict.fromkeys(values) if value)
