"""Licences as a manifest states them: SPDX expressions, named terms with their text, or the reason why none is known.

A licence belongs to a whole dataset, to one of its sources, or to one asset (a row of a table of licences). What a
licence allows is not decided here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Discriminator, Field, Tag, field_validator, model_validator

from mmlongbench.errors import ManifestError, nearest
from mmlongbench.io.files import read_regular
from mmlongbench.manifest.strict_model import StrictModel

if TYPE_CHECKING:
    from license_expression import Licensing

MAX_TEXT = 1024 * 1024  # the maximum size of the text of a licence, in bytes
UNKNOWN_WORDS = frozenset({"", "none", "unknown", "not stated", "unlicensed", "n/a", "?"})
"""Texts that state no licence."""
Condition: TypeAlias = Literal[
    "attribution", "share-alike", "non-commercial", "no-derivatives", "no-redistribution", "ask-first"
]
"""What a licence asks of those who pass the material on."""
ORDER: tuple[Condition, ...] = (
    "no-redistribution",
    "ask-first",
    "no-derivatives",
    "non-commercial",
    "share-alike",
    "attribution",
)
"""All conditions, the strictest first."""
FORBIDDING: frozenset[Condition] = frozenset({"no-redistribution", "no-derivatives"})
"""What a licence asks for if its files are never published. Pages that are rendered, shrunk or put beside others may be
derivatives."""
# What licences of SPDX ask for, beside those of Creative Commons: nothing, attribution, or attribution and share-alike.
_FREE = ("0BSD", "CC0-1.0", "CC-PDDC", "CC-PDM-1.0", "MIT-0", "PDDL-1.0", "Unlicense", "WTFPL", "NIST-PD", "CC0")
_PERMISSIVE = (
    *("Apache-1.1", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CDLA-Permissive-1.0"),
    *("CDLA-Permissive-2.0", "ISC", "MIT", "ODC-By-1.0", "OGL-UK-3.0", "OGL-Canada-2.0", "Python-2.0", "Zlib"),
    *("etalab-2.0", "DL-DE-BY-2.0", "OFL-1.1"),
)
_COPYLEFT = ("CDLA-Sharing-1.0", "EUPL-1.2", "GFDL", "GPL", "LGPL", "AGPL", "MPL", "ODbL", "FAL", "CC-BY-SA")
_CREATIVE_COMMONS = re.compile(r"CC-BY(?P<terms>(?:-(?:NC|ND|SA))*)-\d")
_PARTS: Mapping[str, Condition] = {"NC": "non-commercial", "ND": "no-derivatives", "SA": "share-alike"}


@dataclass(frozen=True, slots=True)
class Licence:
    """A licence that was stated for some material; all fields are empty if none is known."""

    kind: Literal["spdx", "term", "unknown"] = "unknown"
    """`spdx`: `name` is an SPDX expression. `term`: it names terms that have no SPDX identifier."""
    name: str = ""
    """The expression, or the name of the terms; empty if no licence is known."""
    text: str = ""
    """The text of the terms, if the manifest gives it."""
    url: str = ""
    """Where the licence, or the lack of one, is stated."""
    conditions: tuple[Condition, ...] = ()
    """What named terms ask for, as the manifest says; empty for an SPDX expression."""
    reason: str = ""
    """Why no licence is known, if the manifest says it."""


UNKNOWN = Licence()  # the licence of material about which nothing is stated


class AssetColumns(StrictModel):
    """The columns of the question table that say which licence an asset has."""

    asset: str
    """The column with the name of the picture or the document."""
    licence: str
    """The column with its licence."""
    author: str = ""
    """The column with its author; empty if there is none."""
    url: str = ""
    """The column with the address where it was published; empty if there is none."""


def _listed(value: object) -> object:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


class LicenceTerms(StrictModel):
    """One licence: `spdx`, or `name` with the terms, or `unknown` with the reason."""

    spdx: str = ""
    """An SPDX expression, such as `CC-BY-4.0` or `MIT OR Apache-2.0`."""
    name: str = ""
    """The name of terms that have no SPDX identifier."""
    unknown: str = ""
    """Why no licence is known, such as `not stated on the card`."""
    text: str = ""
    """The text of the named terms."""
    file: str = ""
    """A file with the text of the named terms, relative to the manifest; the lock has the text instead."""
    url: str = ""
    """The page on which the licence is stated."""
    conditions: Annotated[tuple[Condition, ...], BeforeValidator(_listed)] = ()
    """What the named terms ask for: `attribution`, `share-alike`, `non-commercial`, `no-derivatives`,
    `no-redistribution`, `ask-first`."""
    assets: str = ""
    """A CSV file with the columns `asset, licence, author, url`: the licences of single pictures or documents, relative
    to the sources."""
    assets_sha256: str = ""
    """The SHA-256 of that file; only the lock has it."""
    columns: AssetColumns | None = None
    """The columns of the question table that have the licences of single pictures or documents."""

    @field_validator("spdx")
    @classmethod
    def _valid(cls, value: str) -> str:
        return spdx_expression(value) if value else value

    @model_validator(mode="after")
    def _one(self) -> "LicenceTerms":
        given = [key for key in ("spdx", "name", "unknown") if getattr(self, key)]
        if len(given) > 1:
            raise ValueError(f"expected one of spdx, name and unknown, found {' and '.join(given)}")
        if not self.name and (self.text or self.file or self.conditions):
            raise ValueError("text, file and conditions describe named terms: give their name")
        if self.file:
            raise ValueError("file: expected a manifest that is read from a file, or text in its place")
        return self

    @property
    def licence(self) -> Licence:
        """The licence that is stated; an unknown one if none is."""
        if self.spdx:
            return Licence("spdx", self.spdx, url=self.url)
        if self.name:
            return Licence("term", self.name, self.text, self.url, self.conditions)
        return Licence(url=self.url, reason=self.unknown)


class LicenceSpec(LicenceTerms):
    """The licences of a dataset: one for all of its sources, and others for single sources."""

    sources: dict[
        str,
        Annotated[LicenceTerms, BeforeValidator(lambda value: terms_of(value) if isinstance(value, str) else value)],
    ] = Field(default={})
    """The licences of single sources, by the name of the source; `corpus` is the corpus."""

    @model_validator(mode="after")
    def _one_of_each_name(self) -> "LicenceSpec":
        known: dict[str, Licence] = {}
        for licence in (self.licence, *(terms.licence for terms in self.sources.values())):
            if licence.kind != "term" or not (licence.text or licence.conditions):
                continue  # a name alone says nothing else about the terms
            before = known.setdefault(licence.name, licence)
            if (licence.text, set(licence.conditions)) != (before.text, set(before.conditions)):
                raise ValueError(f"{licence.name!r:.200} has two texts or conditions: give the terms two names")
        return self

    def of(self, source: str) -> LicenceTerms:
        """Return the licence of a source: its own, or that of the dataset."""
        return self.sources.get(source, self)

    @property
    def shown(self) -> str:
        own = [self.licence.name] if self.licence.name else []
        others = {source: terms.licence.name for source, terms in self.sources.items()}
        return "; ".join([*own, *(f"{name} ({source})" for source, name in others.items() if name)])


_TEXT, _TERMS = "tagged-union[text]", "tagged-union[terms]"
"""The two forms of a licence, named like other alternatives, so that messages leave them out (`explain`)."""


LicenceText = Annotated[
    Annotated[str, Tag(_TEXT)] | Annotated[LicenceSpec, Tag(_TERMS)],
    Discriminator(lambda value: _TERMS if isinstance(value, Mapping | LicenceSpec) else _TEXT),
]
"""The licence of a dataset, as a text or as a mapping."""


def licence_spec(value: "str | LicenceSpec") -> LicenceSpec:
    """Return the licences that a manifest states as a text or as a mapping."""
    if isinstance(value, LicenceSpec):
        return value
    return LicenceSpec.model_validate(terms_of(value).model_dump())


def terms_of(text: str) -> LicenceTerms:
    """Return the licence that a text states: an SPDX expression, also one with blanks for dashes, or a named term.

    >>> terms_of("CC BY-NC 4.0").spdx, terms_of("the publisher's terms").name, terms_of("none").licence.kind
    ('CC-BY-NC-4.0', "the publisher's terms", 'unknown')
    """
    if text.strip().lower() in UNKNOWN_WORDS:
        return LicenceTerms()
    for tried in (text, re.sub(r"\s+", "-", text.strip())):
        try:
            return LicenceTerms(spdx=spdx_expression(tried))
        except ValueError:
            continue
    return LicenceTerms(name=" ".join(text.split()))


@cache
def _spdx() -> "Licensing":
    from license_expression import get_spdx_licensing

    return get_spdx_licensing()


def spdx_expression(text: str) -> str:
    """Return an SPDX expression in its usual spelling; raises ValueError if it is none, or a licence is unknown."""
    if len(text) > 1_000:
        raise ValueError(f"expected an SPDX expression, found a text of {len(text):,} characters")
    from license_expression import ExpressionError, ExpressionParseError

    try:
        parsed = _spdx().parse(text, validate=True, strict=True)
    except (ExpressionError, ExpressionParseError) as error:
        said = " ".join(str(error).split())[:200]
        hint = nearest(text.strip(), sorted(_spdx().known_symbols))
        raise ValueError(
            f"expected an SPDX expression such as CC-BY-4.0: {said}{hint}; for other terms give name and text"
        ) from error
    if parsed is None:
        raise ValueError("expected an SPDX expression such as CC-BY-4.0, found an empty text")
    return str(parsed.render())


def spdx_ids(expression: str) -> tuple[str, ...]:
    """Return the identifiers in an SPDX expression, each once."""
    return tuple(str(key) for key in _spdx().license_keys(expression))


def root_licence_files(dataset: dict[str, Any], manifest: Path, data: Path | None) -> None:
    """Replace the file of named terms by its text, and join the table of licences with the folder of the sources.

    Raises:
        ManifestError: a file cannot be read.

    """

    def rooted(terms: Mapping[str, Any]) -> dict[str, Any]:
        terms = dict(terms)
        if isinstance(terms.get("file"), str) and terms["file"] and "text" not in terms:
            path = manifest.parent / terms.pop("file")
            try:
                terms["text"] = read_regular(path, MAX_TEXT).decode()
            except (OSError, ValueError) as error:
                raise ManifestError(f"{manifest}: licence.file: {path} cannot be read: {error}") from error
        if isinstance(terms.get("assets"), str) and terms["assets"]:
            terms["assets"] = str((data or manifest.parent) / terms["assets"])
        if isinstance(terms.get("sources"), Mapping):
            inner = terms["sources"].items()
            terms["sources"] = {key: rooted(value) if isinstance(value, Mapping) else value for key, value in inner}
        return terms

    if isinstance(dataset.get("licence"), Mapping):
        dataset["licence"] = rooted(dataset["licence"])


def conditions_of_id(identifier: str) -> frozenset[Condition]:
    """Return what a licence of SPDX asks for.

    >>> sorted(conditions_of_id("CC-BY-NC-SA-4.0")), sorted(conditions_of_id("MIT")), sorted(conditions_of_id("Foo"))
    (['attribution', 'non-commercial', 'share-alike'], ['attribution'], ['ask-first'])
    """
    if found := _CREATIVE_COMMONS.match(identifier):
        return frozenset({"attribution", *(_PARTS[part] for part in found["terms"].split("-") if part)})
    if identifier in _FREE:
        return frozenset()
    if identifier in _PERMISSIVE or identifier.startswith("BSD-"):
        return frozenset({"attribution"})
    return frozenset({"attribution", "share-alike"} if identifier.startswith(_COPYLEFT) else {"ask-first"})


def _alternatives(parsed: Any) -> "list[frozenset[Condition]]":  # noqa: ANN401  (a tree of license-expression)
    kind = type(parsed).__name__
    if kind == "OR":
        return [asked for arm in parsed.args for asked in _alternatives(arm)]
    if kind == "AND":
        combined = [frozenset[Condition]()]
        for arm in parsed.args:
            combined = [asked | more for asked in combined for more in _alternatives(arm)]
        return combined
    return [conditions_of_id(str(parsed))]


def conditions_of(licence: Licence) -> frozenset[Condition]:
    """Return what a licence asks for. Of the alternatives of an SPDX expression (`OR`), it is the one that asks for the
    least; named terms without conditions, and material without a licence, ask to be read or asked for first.
    """
    if licence.kind == "spdx":
        alternatives = _alternatives(_spdx().parse(licence.name))
        return min(alternatives, key=lambda asked: ([condition in asked for condition in ORDER], sorted(asked)))
    if licence.kind == "term" and licence.conditions:
        return frozenset(licence.conditions)
    return frozenset({"ask-first"})


def strictness(licence: Licence) -> tuple[tuple[bool, ...], str]:
    """Return a value that is larger for a stricter licence: first come those that forbid to publish, then material
    without a licence, then the order of the conditions.
    """
    asked = conditions_of(licence)
    forbidden = [condition in asked for condition in ORDER if condition in FORBIDDING]
    return (*forbidden, licence.kind == "unknown", *(condition in asked for condition in ORDER)), licence.name


def may_pass_on(conditions: frozenset[Condition]) -> bool:
    """Return whether a licence with these conditions allows to pass the material on without asking."""
    return not conditions & {"no-redistribution", "ask-first"}
