"""Writes `croissant.json`: Croissant 1.1 with the fields of responsible AI, and provenance from sources over stages to
files.

The file is checked here for what the format requires, because `mlcroissant validate` does not notice all of it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from mmlongbench.io.files import write_whole
from mmlongbench.publishing.facts import Facts, limitations
from mmlongbench.publishing.licence_files import licence_urls
from mmlongbench.publishing.rights import SourceRights
from mmlongbench.publishing.tables import COLUMNS, IMAGE_COLUMNS, LISTS, NUMBERS, TEXTS, Table
from mmlongbench.release.layout import PUBLISHED_IMAGES, STAGE_NAMES

CROISSANT = "croissant.json"
REQUIRED = ("name", "description", "license", "url", "creator", "datePublished", "distribution")
"""The keys that Croissant 1.1 requires of a dataset."""
RAI = (
    *("rai:dataLimitations", "rai:dataBiases", "rai:personalSensitiveInformation", "rai:dataUseCases"),
    *("rai:dataSocialImpact", "rai:hasSyntheticData", "prov:wasDerivedFrom", "prov:wasGeneratedBy"),
)
"""The fields of responsible AI that conferences require."""
Json: TypeAlias = dict[str, Any]
_PARQUET = "application/x-parquet"
_TERMS = (
    *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty", "fileObject", "fileSet"),
    *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
    *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
    *("arrayShape", "containedIn", "isArray"),
)
"""The names of Croissant that are used without a prefix."""


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file of the publication."""

    path: str
    """The path below the folder."""
    bytes: int
    """The size in bytes."""
    sha256: str
    """The SHA-256 in hexadecimal."""
    media_type: str
    """The media type, as Croissant spells it."""


def write_croissant(out: Path, facts: Facts, files: Sequence[NamedFile]) -> tuple[str, ...]:
    """Write the metadata, and return the required keys that have no value because nobody has said it."""
    said = croissant(facts, files)
    text = json.dumps(said, ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace")
    write_whole(out / CROISSANT, [text, b"\n"])
    return tuple(key for key in (*REQUIRED, *RAI) if key not in said)


def croissant(facts: Facts, files: Sequence[NamedFile]) -> Json:
    """Return the metadata of a publication."""
    about = facts.about
    images = [_images(facts)] if facts.tables.images else []
    said: Json = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": facts.title,
        "description": about.description or f"Examples of controlled lengths: {', '.join(facts.datasets)}.",
        "license": list(_licences(facts.rights.sources)),
        "url": facts.url,
        "creator": [{"@type": "sc:Organization", "name": name} for name in about.authors],
        "datePublished": about.date,
        "version": about.version,
        "keywords": list(about.keywords),
        "inLanguage": list(about.languages),
        "citeAs": about.citation or facts.title,
        "isLiveDataset": False,
        "rai:dataCollection": "Examples are packed from the sources below; the card says what was rejected and why.",
        "rai:dataLimitations": list(limitations(facts)),
        "rai:dataBiases": list(about.biases),
        "rai:personalSensitiveInformation": list(about.sensitive),
        "rai:dataUseCases": list(about.use_cases),
        "rai:dataSocialImpact": about.social_impact,
        "rai:hasSyntheticData": about.synthetic,
        "prov:wasDerivedFrom": [_source(each) for each in facts.rights.sources],
        "prov:wasGeneratedBy": list(_stages(facts)),
        "distribution": [*_files(facts, files), *_file_sets(facts)],
        "recordSet": [*images, *(_records(facts, table) for table in facts.tables.examples)],
    }
    return {key: value for key, value in said.items() if value not in ("", [], None)}


def _context() -> Json:
    """Return the context: the names of Croissant and its vocabularies."""
    typed = {"data": "@json", "examples": "@json", "dataType": "@vocab"}
    return {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "prov": "http://www.w3.org/ns/prov#",
        "dct": "http://purl.org/dc/terms/",
        "conformsTo": "dct:conformsTo",
        "name": {"@container": "@language"},
        "description": {"@container": "@language"},
        **{name: {"@id": f"cr:{name}", "@type": kind} for name, kind in typed.items()},
        **{name: f"cr:{name}" for name in _TERMS},
    }


def _licences(sources: Iterable[SourceRights]) -> Iterator[str]:
    """Yield the pages of all licences, or their names, each once."""
    every = (
        said
        for each in sources
        for said in licence_urls(each.licence, each.licence_kind, each.licence_url) or (each.licence or "not known",)
    )
    yield from dict.fromkeys(every)


def _source(source: SourceRights) -> Json:
    """Return a source: where it was published, under which licence, and what is of it."""
    found: Json = {"@id": source_id(source), "@type": "prov:Entity", "prov:label": source.name}
    if source.licence:
        found["license"] = source.licence
    found["description"] = f"{source.images:,} images and {source.texts:,} texts; from {_origins(source)}"
    return found


def _origins(source: SourceRights) -> str:
    return ", ".join(source.origins) or "an origin that is not known"


def source_id(source: SourceRights) -> str:
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
    agent = {"@type": "prov:SoftwareAgent", "@id": "software", "prov:label": f"mmlongbench {version}".strip()}
    before = ""
    for name in (*STAGE_NAMES, "publish"):
        found: Json = {"@type": "prov:Activity", "@id": f"stage/{name}", "prov:label": f"mmlongbench, stage {name}"}
        found["prov:wasAssociatedWith"] = agent if not before else {"@id": "software"}
        if before:
            found["prov:wasInformedBy"] = {"@id": f"stage/{before}"}
        yield found
        before = name


def _files(facts: Facts, files: Sequence[NamedFile]) -> Iterator[Json]:
    """Yield the files; tables have the sources that they are made of."""
    sources: dict[str, list[Json]] = {}
    for each in facts.rights.sources:
        sources.setdefault(each.dataset, []).append({"@id": source_id(each)})
    tables = {path: table.dataset for table in facts.tables.examples for path in table.paths}
    for file in files:
        found: Json = {
            "@type": "cr:FileObject",
            "@id": file.path,
            "name": file.path,
            "contentUrl": file.path,
            "contentSize": f"{file.bytes} B",
            "encodingFormat": file.media_type,
            "sha256": file.sha256,
        }
        if file.path in tables:
            found["prov:wasDerivedFrom"] = sources.get(tables[file.path], [])
        if file.media_type == _PARQUET:
            found["prov:wasGeneratedBy"] = {"@id": "stage/publish"}
        yield found


def _file_sets(facts: Facts) -> Iterator[Json]:
    """Yield the tables that have several files."""
    sets = {"image-tables": ("The tables of images.", [f"{PUBLISHED_IMAGES}/*.parquet"])} if facts.tables.images else {}
    for table in facts.tables.examples:
        if table.paths[1:]:
            sets[_set_id(table)] = f"The examples of {table.dataset} at {table.length:,} tokens.", table.paths
    for id, (said, paths) in sets.items():
        found: Json = {"@type": "cr:FileSet", "@id": id, "name": id, "description": said, "encodingFormat": _PARQUET}
        yield found | {"includes": paths if paths[1:] else paths[0]}


def _set_id(table: Table) -> str:
    return f"tables/{table.dataset}/{table.split}"


def _images(facts: Facts) -> Json:
    """Return the record set of images."""
    name, source = facts.image_config, {"fileSet": {"@id": "image-tables"}}
    fields = [
        _field(name, "sha256", "sc:Text", source),
        _field(name, "path", "sc:Text", source),
        _field(name, "image", "sc:ImageObject", source, transform={"jsonPath": "bytes"}),
    ]
    key = {"@id": f"{name}/sha256"}
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "key": key, "field": fields}


def _records(facts: Facts, table: Table) -> Json:
    """Return the record set of a table of examples."""
    name, source = f"{table.dataset}/{table.split}", {"fileObject": {"@id": table.paths[0]}}
    if table.paths[1:]:
        source = {"fileSet": {"@id": _set_id(table)}}
    texts = (*TEXTS, *(("canary",) if table.canary else ()))
    fields = [
        *(_field(name, each, "sc:Text", source) for each in texts),
        *(_field(name, each, "sc:Text", source, isArray=True, arrayShape="-1") for each in LISTS),
        *(_field(name, each, "sc:Integer", source) for each in NUMBERS),
        _field(name, "depth", "sc:Float", source),
    ]
    said = f"{table.rows:,} examples of {table.dataset} at {table.length:,} tokens; `images` are keys of the images."
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": said, "field": fields}


def _field(
    record_set: str, column: str, kind: str, source: Json, transform: Mapping[str, str] | None = None, **more: object
) -> Json:
    """Return a field, which is a column of a table."""
    found: Json = {"@type": "cr:Field", "@id": f"{record_set}/{column}", "name": column}
    found |= {"description": (COLUMNS | IMAGE_COLUMNS)[column], "dataType": kind, **more}
    found["source"] = {**source, "extract": {"column": column}, **({"transform": transform} if transform else {})}
    return found
