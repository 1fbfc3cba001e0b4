"""The descriptions of builders, readers, metrics, samples and manifests, as values that JSON can hold."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from mmlongbench.manifest.model_fields import FieldText


class _Text(BaseModel):
    model_config = ConfigDict(frozen=True)


class SourceText(_Text):
    """A source of a reader."""

    name: str
    """The name under `source` of a dataset."""
    is_optional: bool
    """Whether a manifest may leave it out."""
    form: str
    """What the file or folder must look like; empty if the reader does not say."""


class RecordFieldText(_Text):
    """A field of a record."""

    name: str
    """The name."""
    text: str
    """What it means."""
    is_added: bool
    """Whether the engine adds the field, not the builder."""


class FileText(_Text):
    """A kind of file that a build writes for each length."""

    kind: Literal["records", "bundle", "items"]
    """`records`: one record a line, or as the format of the task has it. `bundle`: the same records in the format that
    the public code reads. `items`: a row of Parquet for each unit of each example."""
    pattern: str
    """The path below `mmlb_data/`; for `items`, below `items/`."""


class PluginText(_Text):
    """What every plug-in has."""

    name: str
    """The name of its entry point, or of its class."""
    distribution: str = ""
    """The installed distribution that it belongs to; empty if it belongs to none."""
    version: str = ""
    """The version of this distribution."""
    code: str
    """Its module and class or function, such as `builders.docvqa.builder:DocVQA`."""
    about: str
    """What it does: the first paragraph of its docstring."""


class BuilderText(PluginText):
    """A builder."""

    kind: Literal["builder"] = "builder"
    options: tuple[FieldText, ...]
    """What a manifest may set under `options`."""
    row_type: str
    """The class of rows that it takes."""
    row_fields: tuple[FieldText, ...]
    """The fields of such a row."""
    record_fields: tuple[RecordFieldText, ...]
    """The fields of its records, those that the engine adds last."""
    files: tuple[FileText, ...]
    """The files that a build writes."""
    placements: tuple[str, ...]
    """How needles are placed, by default first and then with the options of installed manifests; empty if the task
    has none."""
    variants: tuple[str, ...]
    """The names of other forms of its prompts."""
    readers: tuple[str, ...]
    """The installed readers whose rows it takes."""
    metrics: tuple[str, ...]
    """The metrics that score its records by default."""
    further_metrics: tuple[str, ...]
    """Other metrics that can score its records, under these or other options."""
    manifests: tuple[str, ...]
    """The installed manifests that use it."""


class ReaderText(PluginText):
    """A reader."""

    kind: Literal["reader"] = "reader"
    sources: tuple[SourceText, ...]
    """Its sources."""
    has_sample: bool
    """Whether `source: sample` draws small sources."""
    row_type: str
    """The class of the rows that it gives."""
    row_fields: tuple[FieldText, ...]
    """The fields of such a row."""
    image_folder: str
    """The folder of its images below `mmlb_image/`."""
    builders: tuple[str, ...]
    """The installed builders that take its rows."""
    manifests: tuple[str, ...]
    """The installed manifests that use it."""


class MetricText(PluginText):
    """A metric."""

    kind: Literal["metric"] = "metric"
    profiles: Mapping[str, str]
    """The profiles that it offers, the default first, each with the code or paper that its rules come from."""
    builders: tuple[str, ...]
    """The installed builders that name it."""
    manifests: tuple[str, ...]
    """The installed manifests whose datasets it scores by default."""


class SampleText(PluginText):
    """A sample: small sources that a manifest uses with `source: sample`."""

    kind: Literal["sample"] = "sample"
    reader: str
    """The reader that reads it."""
    sources: tuple[SourceText, ...]
    """The sources of this reader."""


class TargetText(PluginText):
    """A target of `export`."""

    kind: Literal["target"] = "target"


class DatasetText(_Text):
    """A dataset of a manifest."""

    name: str
    """The name."""
    builder: str
    """The builder."""
    reader: str
    """The reader."""
    source: Mapping[str, str | None] | Literal["sample"]
    """The path of each source, relative to the manifest where it lies beside it; null for a source that must be set or
    may be left out. `sample` if small sources are drawn."""
    optional_sources: tuple[str, ...] = ()
    """The sources that may be left out."""
    corpus: str | None = None
    """The corpus, if the manifest names one."""
    lengths: tuple[int, ...]
    """The lengths in tokens."""
    metric: str = ""
    """The metric that scores its records by default; empty if the builder is not installed."""
    options: Mapping[str, JsonValue]
    """The options that the manifest sets."""


class ManifestText(_Text):
    """A manifest."""

    kind: Literal["manifest"] = "manifest"
    name: str
    """The name of an installed manifest, or the path of a file."""
    path: str
    """The path of the file."""
    about: str
    """The first comment of the file."""
    datasets: tuple[DatasetText, ...]
    """Its datasets."""
