"""What licences ask of those who pass material on: for identifiers of SPDX, and for named terms.

This is a short summary to plan by, and no legal advice. An identifier that is not listed here asks to be read first.
"""

import re
from collections.abc import Iterable, Mapping

from mmlongbench.manifest.licences import Condition, Licence, spdx_alternatives

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
_NONE = frozenset[Condition]()
_CREDIT: frozenset[Condition] = frozenset({"attribution"})
_ALIKE: frozenset[Condition] = frozenset({"attribution", "share-alike"})
_ASK: frozenset[Condition] = frozenset({"ask-first"})
_FREE = ("0BSD", "CC0-1.0", "CC-PDDC", "CC-PDM-1.0", "MIT-0", "PDDL-1.0", "Unlicense", "WTFPL", "NIST-PD", "CC0")
_PERMISSIVE = (
    *("Apache-1.1", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "CDLA-Permissive-1.0"),
    *("CDLA-Permissive-2.0", "ISC", "MIT", "ODC-By-1.0", "OGL-UK-3.0", "OGL-Canada-2.0", "Python-2.0", "Zlib"),
    *("etalab-2.0", "DL-DE-BY-2.0", "OFL-1.1"),
)
_COPYLEFT = ("CDLA-Sharing-1.0", "EUPL-1.2", "GFDL", "GPL", "LGPL", "AGPL", "MPL", "ODbL", "FAL", "CC-BY-SA")
_CREATIVE_COMMONS = re.compile(r"CC-BY(?P<terms>(?:-(?:NC|ND|SA))*)-\d")
_PARTS: Mapping[str, Condition] = {"NC": "non-commercial", "ND": "no-derivatives", "SA": "share-alike"}


def conditions_of_id(identifier: str) -> frozenset[Condition]:
    """Return what a licence of SPDX asks for.

    >>> sorted(conditions_of_id("CC-BY-NC-SA-4.0")), sorted(conditions_of_id("MIT")), sorted(conditions_of_id("Foo"))
    (['attribution', 'non-commercial', 'share-alike'], ['attribution'], ['ask-first'])
    """
    if found := _CREATIVE_COMMONS.match(identifier):
        return _CREDIT | {_PARTS[part] for part in found["terms"].split("-") if part}
    if identifier in _FREE:
        return _NONE
    if identifier in _PERMISSIVE or identifier.startswith("BSD-"):
        return _CREDIT
    return _ALIKE if identifier.startswith(_COPYLEFT) else _ASK


def conditions_of(licence: Licence) -> frozenset[Condition]:
    """Return what a licence asks for. Of the alternatives of an SPDX expression (`OR`), it is the one that asks for the
    least; named terms without conditions, and material without a licence, ask to be read or asked for first.
    """
    if licence.kind == "spdx":
        each = [_NONE.union(*map(conditions_of_id, ids)) for ids in spdx_alternatives(licence.name)]
        return min(each, key=lambda found: ([condition in found for condition in ORDER], sorted(found)))
    if licence.kind == "term" and licence.conditions:
        return frozenset(licence.conditions)
    return _ASK


def strictness(licence: Licence) -> tuple[tuple[bool, ...], str]:
    """Return a value that is larger for a stricter licence: first come those that forbid to publish, then material
    without a licence, then the order of the conditions.
    """
    asked = conditions_of(licence)
    forbidden = [condition in asked for condition in ORDER if condition in FORBIDDING]
    return (*forbidden, licence.kind == "unknown", *(condition in asked for condition in ORDER)), licence.name


def strictest(licences: Iterable[Licence]) -> Licence:
    """Return the strictest of some licences.

    >>> strictest([Licence("spdx", "MIT"), Licence(), Licence("spdx", "CC-BY-ND-4.0")]).name
    'CC-BY-ND-4.0'
    """
    return max(licences, key=strictness)


def may_pass_on(conditions: frozenset[Condition]) -> bool:
    """Return whether a licence with these conditions allows to pass the material on without asking."""
    return not conditions & {"no-redistribution", "ask-first"}
