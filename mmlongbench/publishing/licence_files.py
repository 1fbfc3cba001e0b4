"""Writes `LICENSES/`: a file for each licence of a release, with what is under it; and `CITATION.cff`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from mmlongbench.draws import digest
from mmlongbench.io.files import write_whole
from mmlongbench.manifest.licences import Licence, spdx_ids
from mmlongbench.publishing.facts import Facts
from mmlongbench.publishing.rights import Rights, SourceRights

FOLDER = "LICENSES"
CITATION = "CITATION.cff"
_PAGE = "https://spdx.org/licenses/{}.html"
_MAX_NAME = 80


def licence_urls(licence: str, kind: str, url: str = "") -> tuple[str, ...]:
    """Return the pages of a licence: those of SPDX for its identifiers, or the one that the manifest gives.

    >>> licence_urls("CC-BY-4.0", "spdx")
    ('https://spdx.org/licenses/CC-BY-4.0.html',)
    """
    if kind == "spdx":
        return tuple(_PAGE.format(each) for each in spdx_ids(licence) if not each.startswith("LicenseRef-"))
    return (url,) if url else ()


def write_licences(out: Path, rights: Rights, stated: Mapping[tuple[str, str], Licence]) -> Mapping[str, str]:
    """Write a file for each licence, and return the path of each by the name of the licence.

    Texts of named terms are those of the manifest; if datasets give the same name to several texts, the file has all of
    them. For identifiers of SPDX, the file has the address of the text.
    """
    texts: dict[str, dict[str, dict[str, None]]] = {}
    for (dataset, _), licence in sorted(stated.items()):
        if licence.text:
            texts.setdefault(licence.name, {}).setdefault(licence.text, {})[dataset] = None
    parts: dict[str, list[SourceRights]] = {}
    for source in rights.sources:
        parts.setdefault(source.licence, []).append(source)
    found = {}
    for name, sources in sorted(parts.items()):
        path = f"{FOLDER}/{file_name(name)}"
        said = "\n".join(_lines(name, sources, texts.get(name, {})))
        write_whole(out / path, [f"{said}\n".encode("utf-8", "backslashreplace")])
        found[name] = path
    return found


def file_name(licence: str) -> str:
    """Return the name of the file of a licence.

    >>> file_name("CC-BY-4.0"), file_name("")
    ('CC-BY-4.0.txt', 'unknown.txt')
    """
    plain = re.sub(r"[^\w.+-]+", "-", licence, flags=re.ASCII).strip("-.")
    if not licence:
        plain = "unknown"
    elif plain != licence or len(plain) > _MAX_NAME or plain.lower() == "unknown":
        # two names may differ in what was replaced only, and terms may be called like what has no licence
        plain = f"{plain[:_MAX_NAME]}-{digest('licence', licence).hex()[:8]}"
    return f"{plain}.txt"


def _lines(name: str, sources: list[SourceRights], texts: Mapping[str, Iterable[str]]) -> Iterator[str]:
    yield f"Licence: {name or 'not known'}"
    for url in dict.fromkeys(
        url for each in sources for url in licence_urls(name, each.licence_kind, each.licence_url)
    ):
        yield f"Text: {url}"
    for url in dict.fromkeys(each.licence_url for each in sources if each.licence_url):
        yield f"Stated at: {url}"
    asked = dict.fromkeys(condition for each in sources for condition in each.conditions)
    yield f"Asks for: {', '.join(asked) or 'nothing'} (a summary to plan by, and no legal advice)"
    yield "Applies to:"
    for each in sources:
        origins = f", from {', '.join(each.origins)}" if each.origins else ""
        why = f" ({each.reason})" if each.reason else ""
        yield f"- {each.name}: {each.images:,} images, {each.texts:,} texts{origins}{why}"
    for text, datasets in texts.items():
        if len(texts) > 1:
            yield f"\nIn {', '.join(datasets)}:"
        yield f"\n{text.strip()}"


def write_citation(out: Path, facts: Facts) -> None:
    """Write `CITATION.cff`; its authors are entities, because names are not taken apart."""
    import yaml

    about = facts.about
    known = sorted({each.licence for each in facts.rights.sources})
    is_spdx = all(each.licence_kind == "spdx" for each in facts.rights.sources)
    said: dict[str, object] = {
        "cff-version": "1.2.0",
        "message": "If you use this dataset, please cite it, and the sources that its card names.",
        "type": "dataset",
        "title": facts.title,
        "version": about.version,
        "authors": [{"name": name} for name in about.authors] or [{"name": "not stated"}],
    }
    optional = {"date-released": about.date, "url": facts.url, "abstract": about.description}
    said |= {key: value for key, value in optional.items() if value}
    said["identifiers"] = [
        {"type": "other", "value": facts.lock_id, "description": "start of the SHA-256 of build.lock.json"}
    ]
    if known and is_spdx and all(re.fullmatch(r"[A-Za-z0-9.+-]+", name) for name in known):  # no expressions
        said["license"] = known if len(known) > 1 else known[0]
    said["keywords"] = list(about.keywords)
    text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=1_000)
    write_whole(out / CITATION, [text.encode("utf-8", "backslashreplace")])
