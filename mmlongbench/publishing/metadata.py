"""Writes what machines and lawyers read of a publication: `croissant.json`, `LICENSES/` and `CITATION.cff`.

`croissant.json` is Croissant 1.1 with the fields of responsible AI, and provenance from sources over stages to files.
It is checked here for what the format requires, because `mlcroissant validate` does not notice all of it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from mmlongbench.draws import digest
from mmlongbench.io.files import write_whole
from mmlongbench.manifest.licences import Licence, spdx_ids
from mmlongbench.publishing.facts import Facts
from mmlongbench.publishing.rights import Rights, SourceRights
from mmlongbench.publishing.tables import COLUMNS, IMAGE_COLUMNS, LISTS, NUMBERS, TEXTS
from mmlongbench.release.layout import PUBLISHED_IMAGES, STAGE_NAMES

CROISSANT = "croissant.json"
LICENCES = "LICENSES"
CITATION = "CITATION.cff"
REQUIRED = ("name", "description", "license", "url", "creator", "datePublished", "distribution")
"""The keys that Croissant 1.1 requires of a dataset."""
RAI = (
    *("rai:dataLimitations", "rai:dataBiases", "rai:personalSensitiveInformation", "rai:dataUseCases"),
    *("rai:dataSocialImpact", "rai:hasSyntheticData", "prov:wasDerivedFrom", "prov:wasGeneratedBy"),
)
"""The fields of responsible AI that conferences require."""
Json: TypeAlias = dict[str, Any]
_PARQUET = "application/x-parquet"
_MAX_NAME = 80


class NamedFile(NamedTuple):
    """A file of the publication."""

    path: str
    """The path below the folder."""
    bytes: int
    sha256: str
    media_type: str
    """The media type, as Croissant spells it."""


def write_croissant(out: Path, facts: Facts, named_files: Sequence[NamedFile]) -> tuple[str, ...]:
    """Write the metadata, and return the required keys that have no value because nobody has said it."""
    about, sources, tables = facts.about, facts.rights.sources, facts.tables
    distribution, record_sets = list(_files(facts, named_files)), list[Json]()
    if tables.image_files:
        distribution.append(_file_set("image-tables", "The tables of images.", f"{PUBLISHED_IMAGES}/*.parquet"))
        record_sets.append(_images(facts.image_config))
    for table in tables.examples:
        place: Json = {"fileObject": {"@id": table.paths[0]}}
        what = f"examples of {table.dataset} at {table.length:,} tokens"
        if table.paths[1:]:
            place = {"fileSet": {"@id": f"tables/{table.dataset}/{table.split}"}}
            distribution.append(_file_set(place["fileSet"]["@id"], f"The {what}.", table.paths))
        name = f"{table.dataset}/{table.split}"
        texts = (*TEXTS, *(("canary",) if facts.lock.canary else ()))
        fields = [
            *(_field(name, each, "sc:Text", place) for each in texts),
            *(_field(name, each, "sc:Text", place, isArray=True, arrayShape="-1") for each in LISTS),
            *(_field(name, each, "sc:Integer", place) for each in NUMBERS),
            _field(name, "depth", "sc:Float", place),
        ]
        said = f"{table.rows:,} {what}; `images` are keys of the images."
        record_sets.append({"@type": "cr:RecordSet", "@id": name, "name": name, "description": said, "field": fields})
    licences = (
        licence_urls(source.licence, source.licence_kind, source.licence_url) or (source.licence or "not known",)
        for source in sources
    )
    metadata: Json = {
        **json.loads((files("mmlongbench.publishing") / "templates/croissant.json").read_text("utf-8")),
        "name": facts.title,
        "description": about.description or f"Examples of controlled lengths: {', '.join(facts.datasets)}.",
        "license": list(dict.fromkeys(name for names in licences for name in names)),
        "url": facts.url,
        "creator": [{"@type": "sc:Organization", "name": name} for name in about.authors],
        "datePublished": about.date,
        "version": about.version,
        "keywords": list(about.keywords),
        "inLanguage": list(about.languages),
        "citeAs": about.citation or facts.title,
        "isLiveDataset": False,
        "rai:dataCollection": "Examples are packed from the sources below; the card says what was rejected and why.",
        "rai:dataLimitations": list(facts.limitations()),
        "rai:dataBiases": list(about.biases),
        "rai:personalSensitiveInformation": list(about.sensitive),
        "rai:dataUseCases": list(about.use_cases),
        "rai:dataSocialImpact": about.social_impact,
        "rai:hasSyntheticData": about.synthetic,
        "prov:wasDerivedFrom": [_source(source) for source in sources],
        "prov:wasGeneratedBy": list(_stages(facts)),
        "distribution": distribution,
        "recordSet": record_sets,
    }
    metadata = {key: value for key, value in metadata.items() if value not in ("", [], None)}
    text = json.dumps(metadata, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
    write_whole(out / CROISSANT, [text, b"\n"])
    return tuple(key for key in (*REQUIRED, *RAI) if key not in metadata)


def _source(source: SourceRights) -> Json:
    origins = ", ".join(source.origins) or "an origin that is not known"
    return {
        "@id": _source_id(source),
        "@type": "prov:Entity",
        "prov:label": source.name,
        **({"license": source.licence} if source.licence else {}),
        "description": f"{source.images:,} images and {source.texts:,} texts; from {origins}",
    }


def _source_id(source: SourceRights) -> str:
    """Return the identifier of a source: its page if it is a dataset of the Hub or a URL, with its name as fragment."""
    origin = next(iter(source.origins), "")
    name = quote(source.name, safe="/")
    if origin.startswith("hub:"):
        repository, _, revision = origin.removeprefix("hub:").partition("@")
        return f"https://huggingface.co/datasets/{repository}{f'/tree/{revision}' if revision else ''}#{name}"
    return f"{origin}#{name}" if "://" in origin else f"source/{name}/{quote(source.licence or 'unknown')}"


def _stages(facts: Facts) -> Iterator[Json]:
    """Yield the stages of the build, in order, and the publication; each uses what the one before made."""
    version = facts.lock.versions.get("mmlongbench", "")
    agent: Json = {"@type": "prov:SoftwareAgent", "@id": "software", "prov:label": f"mmlongbench {version}".strip()}
    before = ""
    for name in (*STAGE_NAMES, "publish"):
        stage: Json = {"@type": "prov:Activity", "@id": f"stage/{name}", "prov:label": f"mmlongbench, stage {name}"}
        stage["prov:wasAssociatedWith"] = {"@id": "software"} if before else agent
        if before:
            stage["prov:wasInformedBy"] = {"@id": f"stage/{before}"}
        yield stage
        before = name


def _files(facts: Facts, named_files: Sequence[NamedFile]) -> Iterator[Json]:
    """Yield the files; tables have the sources that they are made of."""
    sources: dict[str, list[Json]] = {}
    for source in facts.rights.sources:
        sources.setdefault(source.dataset, []).append({"@id": _source_id(source)})
    tables = {path: table.dataset for table in facts.tables.examples for path in table.paths}
    for file in named_files:
        yield {
            "@type": "cr:FileObject",
            "@id": file.path,
            "name": file.path,
            "contentUrl": file.path,
            "contentSize": f"{file.bytes} B",
            "encodingFormat": file.media_type,
            "sha256": file.sha256,
            **({"prov:wasDerivedFrom": sources.get(tables[file.path], [])} if file.path in tables else {}),
            **({"prov:wasGeneratedBy": {"@id": "stage/publish"}} if file.media_type == _PARQUET else {}),
        }


def _file_set(id: str, description: str, includes: str | Sequence[str]) -> Json:
    """Return tables that have several files."""
    named: Json = {"@type": "cr:FileSet", "@id": id, "name": id, "description": description}
    return named | {"encodingFormat": _PARQUET, "includes": includes}


def _images(name: str) -> Json:
    """Return the record set of images."""
    place: Json = {"fileSet": {"@id": "image-tables"}}
    fields = [
        _field(name, "sha256", "sc:Text", place),
        _field(name, "path", "sc:Text", place),
        _field(name, "image", "sc:ImageObject", place, transform={"jsonPath": "bytes"}),
    ]
    key = {"@id": f"{name}/sha256"}
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "key": key, "field": fields}


def _field(
    record_set: str, column: str, kind: str, place: Json, transform: Mapping[str, str] | None = None, **more: object
) -> Json:
    """Return a field, which is a column of a table."""
    return {
        "@type": "cr:Field",
        "@id": f"{record_set}/{column}",
        "name": column,
        "description": (COLUMNS | IMAGE_COLUMNS)[column],
        "dataType": kind,
        **more,
        "source": {**place, "extract": {"column": column}, **({"transform": transform} if transform else {})},
    }


def licence_urls(licence: str, kind: str, url: str = "") -> tuple[str, ...]:
    """Return the pages of a licence: those of SPDX for its identifiers, or the one that the manifest gives.

    >>> licence_urls("CC-BY-4.0", "spdx")
    ('https://spdx.org/licenses/CC-BY-4.0.html',)
    """
    if kind == "spdx":
        ids = (id for id in spdx_ids(licence) if not id.startswith("LicenseRef-"))
        return tuple(f"https://spdx.org/licenses/{id}.html" for id in ids)
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
    paths = {}
    for name, sources in sorted(parts.items()):
        paths[name] = f"{LICENCES}/{file_name(name)}"
        urls = (licence_urls(name, source.licence_kind, source.licence_url) for source in sources)
        lines = [f"Licence: {name or 'not known'}"]
        lines += [f"Text: {url}" for url in dict.fromkeys(url for pages in urls for url in pages)]
        lines += [f"Stated at: {url}" for url in dict.fromkeys(source.licence_url for source in sources) if url]
        asked = dict.fromkeys(condition for source in sources for condition in source.conditions)
        lines.append(f"Asks for: {', '.join(asked) or 'nothing'} (a summary to plan by, and no legal advice)")
        lines.append("Applies to:")
        for source in sources:
            origins = f", from {', '.join(source.origins)}" if source.origins else ""
            why = f" ({source.reason})" if source.reason else ""
            lines.append(f"- {source.name}: {source.images:,} images, {source.texts:,} texts{origins}{why}")
        texts_of_name = texts.get(name, {})
        for text, datasets in texts_of_name.items():
            if len(texts_of_name) > 1:
                lines.append(f"\nIn {', '.join(datasets)}:")
            lines.append(f"\n{text.strip()}")
        write_whole(out / paths[name], ["".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")])
    return paths


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


def write_citation(out: Path, facts: Facts) -> None:
    """Write `CITATION.cff`; its authors are entities, because names are not taken apart."""
    import yaml

    about, sources = facts.about, facts.rights.sources
    licences = sorted({source.licence for source in sources})
    is_spdx = all(source.licence_kind == "spdx" for source in sources)
    has_ids = all(re.fullmatch(r"[A-Za-z0-9.+-]+", name) for name in licences)  # no expressions
    citation: dict[str, object] = {
        "cff-version": "1.2.0",
        "message": "If you use this dataset, please cite it, and the sources that its card names.",
        "type": "dataset",
        "title": facts.title,
        "version": about.version,
        "authors": [{"name": name} for name in about.authors] or [{"name": "not stated"}],
        "date-released": about.date,
        "url": facts.url,
        "abstract": about.description,
        "identifiers": [
            {"type": "other", "value": facts.lock_id, "description": "start of the SHA-256 of build.lock.json"}
        ],
        "license": (licences if licences[1:] else licences[0]) if licences and is_spdx and has_ids else "",
        "keywords": list(about.keywords),
    }
    citation = {key: value for key, value in citation.items() if value != ""}
    text = yaml.safe_dump(citation, sort_keys=False, allow_unicode=True, width=1_000)
    write_whole(out / CITATION, [text.encode("utf-8", "backslashreplace")])
