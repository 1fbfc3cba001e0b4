"""Errata: corrections of a source's rows, by the id of the row. Each correction says where it comes from; the source
stays unchanged.

mmlongdoc_12:
    source: https://example.org/issues/7
    set: {evidence_pages: "[5]"}
    was: {evidence_pages: "[4]"}   # optional: what the source must say for the correction to be made
mmlongdoc_31:
    source: the document was replaced
    drop: true
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, model_validator

from mmlongbench.errors import Fault, ManifestError, SourceError
from mmlongbench.io.files import read_whole
from mmlongbench.io.yaml_text import load_yaml

_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,17})?")
_BREAK = re.compile("[\r\x85\u2028\u2029]")
"""Matches a character other than a line feed that ends a line in YAML."""
REPAIR = "corrected-by-errata"
"""The name under which corrected rows are counted among the repairs (`QuestionCounts.repaired`)."""


class Erratum(BaseModel):
    """The correction of one row."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: str = Field(min_length=1)
    """Where the correction comes from."""
    set: dict[str, JsonValue] = {}
    """The correct values, by the names of the fields in the source."""
    was: dict[str, JsonValue] = {}
    """The values that the correction replaces, by field. If the row has other values in the source, the row is
    rejected. If `was` is empty, nothing is compared."""
    drop: bool = False
    """Whether the row is left out."""

    @model_validator(mode="after")
    def _does_something(self) -> "Erratum":
        if bool(self.set) == self.drop:
            raise ValueError("expected either `set` or `drop: true`")
        return self


Errata = Mapping[str, Erratum]


class _Loader(yaml.SafeLoader):
    """A YAML loader that reads everything except true and false as text, exactly as written.

    Other loaders change values such as 14:04, 007, 0.50 and No.
    """


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(?:true|false)$"), list("tf"))


class _Dumper(yaml.SafeDumper):
    """A YAML dumper of values that `_Loader` reads as they were."""

    def text_node(self, text: str) -> yaml.ScalarNode:
        # Breaks that YAML would read as others are escaped.
        return self.represent_scalar("tag:yaml.org,2002:str", text, '"' if _BREAK.search(text) else None)

    def float_node(self, value: float) -> yaml.ScalarNode:
        # Errata read a number with an exponent as a text.
        plain = f"{Decimal(repr(value)):f}"
        if "e" in repr(value) and _NUMBER.fullmatch(plain):
            return self.represent_scalar("tag:yaml.org,2002:float", plain)
        return self.represent_float(value)


_Dumper.add_representer(str, _Dumper.text_node)
_Dumper.add_representer(float, _Dumper.float_node)


def load_errata(path: Path) -> Errata:
    """Return the errata of a file.

    Raises:
        ManifestError: the file cannot be read or is not valid; the error names the id and the key.

    """
    try:
        data = load_yaml(read_whole(path, "errata in YAML"), _Loader, twice=False)
        return TypeAdapter(dict[str, Erratum]).validate_python(data or {})
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))[:200]
        raise ManifestError(f"errata {path.name}: {where}: {problem['msg'].removeprefix('Value error, ')}") from error
    except (SourceError, ValueError) as error:
        raise ManifestError(f"errata {path.name}: {' '.join(str(error).split())[:200]}") from error


def errata_text(errata: Mapping[str, Mapping[str, object]], head: str) -> str:
    """Return errata as YAML, in their order, below a comment (`head`)."""
    return head + "".join(
        yaml.dump({id: dict(erratum)}, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=110)
        for id, erratum in errata.items()
    )


def corrected(fields: Mapping[str, object], erratum: Erratum) -> dict[str, object] | Fault:
    """Return the fields of a row with the values of an erratum, or why the erratum does not fit the row."""
    if unknown := [field for field in (*erratum.set, *erratum.was) if field not in fields]:
        return Fault("erratum-of-no-field", f"one of {', '.join(fields)}", unknown[0], todo="mend the erratum")
    for field, value in erratum.was.items():
        if fields.get(field) != _like(value, fields.get(field)):
            expected, found = repr(value)[:120], repr(fields.get(field))[:120]
            return Fault("erratum-of-another-version", expected, found, field=field, todo="check the erratum")
    return {**fields, **{field: _like(value, fields.get(field)) for field, value in erratum.set.items()}}


def _like(value: object, other: object) -> object:
    """Return a value, converted to the type of the value that it corrects.

    If the source has a text, the value becomes a text. Items of a list are converted to the types of the items at the
    same places, and values of an object to the types of the values under the same keys. In all other cases, a text that
    is a number or `null` is converted to what it stands for.
    """
    if isinstance(other, str):
        plain = [_plain(item) for item in value] if isinstance(value, list) else value
        return str(plain).lower() if isinstance(plain, bool) else str(plain)
    if isinstance(value, dict):
        known = other if isinstance(other, dict) else {}
        return {key: _like(item, known.get(key)) for key, item in value.items()}
    if isinstance(value, list):
        items = other if isinstance(other, list) else []
        further = items[0] if len({type(item) for item in items}) == 1 else None  # for items that the correction adds
        return [_like(item, items[at] if at < len(items) else further) for at, item in enumerate(value)]
    return None if value == "null" else _plain(value)


def _plain(value: object) -> object:
    """Return the number that a text stands for; any other value is returned unchanged."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value) if "." in value else int(value)
    return value
