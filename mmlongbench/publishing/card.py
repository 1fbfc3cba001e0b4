"""Writes the card of a publication (`README.md`): the configurations for the Hub, what a reader must know, and a few
examples as pictures.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.documents.pixels import thumbnail, unreadable
from mmlongbench.io.files import write_whole
from mmlongbench.io.printable import md
from mmlongbench.lengths import K, format_length
from mmlongbench.publishing.facts import LOCAL, Facts, Practice, listed
from mmlongbench.publishing.rights import Cleared
from mmlongbench.publishing.tables import COLUMNS, IMAGE_COLUMNS
from mmlongbench.release.layout import IMAGES, PUBLISHED_IMAGES, STAGE_NAMES
from mmlongbench.release.release import Example, Release

CARD = "README.md"
PICTURES = "pictures"
"""The folder with the pictures of examples."""
EXAMPLES = 3
TILES = 4
"""The maximum number of images of an example that its picture shows."""
SIDE = 240
"""The width and height of a tile, in pixels."""
GAP = 8
MAX_PIXELS = 100_000_000
"""Larger images are not decoded for a picture."""
MAX_CHARACTERS = 600
"""The maximum length of a question or an answer."""
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_HUB_LICENCE = re.compile(r"(cc0|cc-by(-nc)?(-nd|-sa)?)-\d\.\d|mit|apache-2\.0|bsd-[23]-clause|odc-by|gpl-3\.0")
"""The licences for which the Hub has an identifier of the same spelling; there are more."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An example in a card."""

    dataset: str
    split: str
    id: str
    picture: str
    """The path of its picture below the folder of the publication."""
    images: str
    """How many images it has, in words."""
    question: str
    answer: str


def write_card(
    out: Path, facts: Facts, practices: Sequence[Practice], shown: Sequence[Shown], sizes: dict[str, int]
) -> None:
    """Write the card.

    Args:
        out: the folder of the publication.
        facts: what the card says.
        practices: which practices for benchmarks the publication meets.
        shown: the examples with pictures.
        sizes: the bytes of each file of a table, by path.

    """
    from huggingface_hub import DatasetCard, DatasetCardData
    from jinja2 import Environment, PackageLoader, StrictUndefined

    about, tables, ours = facts.about, facts.tables, [each for each in practices if each.state != "not ours"]
    head = DatasetCardData(
        pretty_name=facts.title,
        language=list(about.languages),
        task_categories=list(about.tasks),
        tags=list(about.keywords),
        size_categories=[next((name for limit, name in _SIZES if facts.examples < limit), "n>1M")],
        configs=list(_configs(facts)),
        **_licence(facts),  # type: ignore[arg-type]  # all of them are texts
    )
    templates = Environment(
        loader=PackageLoader("mmlongbench.publishing"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters["md"] = md
    body = templates.get_template("card.md").render(
        title=md(facts.title),
        description=md(about.description) or "Examples of controlled lengths, packed to the token.",
        canary=facts.canary,
        place=facts.name,
        is_local=facts.name == LOCAL,
        first=tables.examples[0],
        image_config=facts.image_config,
        columns=_table(_column_rows(facts)),
        files=_table(_file_rows(facts, sizes)),
        images=f"{len(tables.shown):,}",
        image_bytes=f"{tables.image_bytes:,}",
        image_files=f"{tables.image_files:,}",
        examples=shown,
        version=facts.lock.versions.get("mmlongbench", ""),
        stages=", ".join(STAGE_NAMES),
        built=_table(_built_rows(facts)),
        rejects=_table(_reject_rows(facts)),
        shortcuts=_shortcuts(facts),
        rights_said=_rights_said(facts),
        rights=_table(_right_rows(facts)),
        advice=facts.rights.advice,
        limitations=tuple(facts.limitations()),
        practices=_table(_practice_rows(practices)),
        met=sum(each.state == "met" for each in ours),
        practices_ours=len(ours),
        not_ours=len(practices) - len(ours),
        citation=about.citation.replace("```", "").strip(),
        contact=about.contact,
    )  # fmt: skip
    card = DatasetCard(f"---\n{head.to_yaml()}\n---\n\n{body}")
    write_whole(out / CARD, [str(card).encode("utf-8", "backslashreplace")])


def _licence(facts: Facts) -> dict[str, str]:
    """Return the licence as the Hub wants it: an identifier if all parts have the same one."""
    names = {source.licence.lower() for source in facts.rights.sources}
    if len(names) == 1 and _HUB_LICENCE.fullmatch(name := next(iter(names))):
        return {"license": name}
    return {"license": "other", "license_name": "several-see-card", "license_link": "LICENSES"}


def _configs(facts: Facts) -> Iterator[dict[str, object]]:
    """Yield which files are a configuration, for the Hub and for `datasets`."""
    for number, (dataset, tables) in enumerate(facts.datasets.items()):
        paths = [{"split": table.split, "path": table.paths if table.paths[1:] else table.paths[0]} for table in tables]
        yield {"config_name": dataset, **({} if number else {"default": True}), "data_files": paths}
    if facts.tables.image_files:
        images = [{"split": "images", "path": f"{PUBLISHED_IMAGES}/*.parquet"}]
        yield {"config_name": facts.image_config, "data_files": images}


def _file_rows(facts: Facts, sizes: dict[str, int]) -> Iterator[tuple[str, ...]]:
    yield "configuration", "split", "examples", "images shown", "fill (mean)", "fill (least)", "bytes"
    for table in facts.tables.examples:
        figures = (f"{table.rows:,}", f"{table.images:,}", f"{table.mean_fill:.3f}", f"{min(table.fills):.3f}")
        yield table.dataset, table.split, *figures, f"{sum(sizes[path] for path in table.paths):,}"


def _column_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "configuration", "column", "content"
    has_canary = any(table.canary for table in facts.tables.examples)
    for name, content in COLUMNS.items():
        if has_canary or name != "canary":
            yield "of a dataset", f"`{name}`", content
    if facts.tables.image_files:
        yield from ((f"`{facts.image_config}`", f"`{name}`", content) for name, content in IMAGE_COLUMNS.items())


def _built_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "dataset", "builder", "reader", "lengths", "reserve", "fits all lengths from", "sample", "seed"
    for data in facts.lock.manifest:
        if (name := str(data.get("name"))) in facts.datasets:
            lengths = ", ".join(format_length(table.length) for table in facts.datasets[name])
            sample, admission = data.get("sample"), data.get("admission_length")
            size = sample.get("n") if isinstance(sample, dict) else None
            from_length = format_length(admission) if isinstance(admission, int) else "–"
            yield (
                *(name, str(data.get("builder")), str(data.get("reader")), lengths),
                *(str(data.get("reserve") or "of the task"), from_length, str(size or "all"), str(data.get("seed"))),
            )


def _reject_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "dataset", "rows read", "kept", "not chosen", "left out, by reason", "questions without an example, by length"
    for name, tables in facts.datasets.items():
        if known := facts.lock.counts(name):
            asked = known.questions
            cells = [(table.split, counts.rejected) for table in tables if (counts := facts.counts(table))]
            short = ", ".join(f"{split} {count:,}" for split, count in cells if count) or "–"
            gone = Counter(asked.rejected) + Counter(asked.skipped)
            not_chosen = f"{asked.not_sampled + asked.not_selected:,}"
            yield name, f"{asked.read:,}", f"{asked.kept:,}", not_chosen, listed(gone) or "–", short


def _shortcuts(facts: Facts) -> str:
    if facts.shortcuts is None:
        return "Not audited. `mmlongbench shortcuts` tries to tell answers without looking."
    counts = Counter(finding.verdict for finding in facts.shortcuts)
    verdicts = ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in ("leak", "clean", "undecided"))
    rows = [("dataset", "shortcut", "measure", "found", "by chance", "above chance, 95 %")]
    for leak in facts.leaks:
        figures = (f"{leak.found:.1%}", f"{leak.chance:.1%}", f"{leak.low:+.1%} to {leak.high:+.1%}")
        rows.append((leak.dataset, leak.kind, leak.measure, *figures))
    table = _table(rows) if facts.leaks else ""
    return f"Probes that tried to tell answers without looking: {verdicts}.\n\n{table}".strip()


def _rights_said(facts: Facts) -> str:
    """Return what the strictest parts ask for, and what is withheld, in sentences."""
    rights = facts.rights
    total = rights.images + rights.texts
    known = (f"{100 * part / total:.1f} %" if total else "–" for part in (rights.with_licence, rights.with_origin))
    demands = ", ".join(demand.condition for demand in rights.demands) or "nothing"
    said = "{} of {:,} images and texts have a licence, {} an origin. The combination asks for: {}."
    text = said.format(next(known), total, next(known), demands)
    if facts.cleared.withheld_sources:
        names = ", ".join(md(f"{source.name} ({source.licence})") for source in facts.cleared.withheld_sources)
        text += (
            f" Not published, because their licences forbid it, with every example that shows them: {names}. "
            "The manifest and the lock build them again from a download of your own."
        )
    return text


def _right_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "source", "licence", "asks for", "images", "texts", "published at"
    for source in facts.rights.sources:
        licence = source.licence or (f"unknown: {source.reason}" if source.reason else "unknown")
        counts = (f"{source.images:,}", f"{source.texts:,}")
        yield source.name, licence, ", ".join(source.conditions) or "–", *counts, ", ".join(source.origins) or "unknown"


def _practice_rows(practices: Sequence[Practice]) -> Iterator[tuple[str, ...]]:
    yield "stage", "practice", "here", "told", "by"
    for each in practices:
        yield each.stage, each.name, each.state, "yes" if each.is_told else "–", each.by


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table in Markdown; the first one has the heads, and columns of numbers are on the right."""
    heads, *others = [[md(cell) for cell in row] for row in rows]
    columns = list(zip(*others, strict=True)) or [()] * len(heads)
    rule = ["---:" if _is_numbers(column) else "---" for column in columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rule, *others))


def _is_numbers(cells: Sequence[str]) -> bool:
    """Return whether a column has numbers, such as `1,024`, `0.953`, `52.0%` or `8K`, and at most dashes besides."""
    values = [cell for cell in cells if cell != "–"]
    return bool(values) and all(re.fullmatch(r"[+-]?\d[\d,.]*[%KM]?", value) for value in values)


def write_pictures(release: Release, out: Path, cleared: Cleared) -> tuple[Shown, ...]:
    """Write pictures of the first examples with images at the shortest length of several datasets, those of different
    builders first. If fewer datasets have images than examples are shown, their next questions follow.
    """
    shown: list[Shown] = []
    for example in _illustrated(release, cleared):
        if len(shown) == EXAMPLES:
            break
        images = example.prompt.images
        if data := _contact_sheet([release.path / IMAGES / path for path in dict.fromkeys(images)]):
            path = f"{PICTURES}/{len(shown) + 1}.jpg"
            write_whole(out / path, [data])
            answer = example.answer if isinstance(example.answer, str) else json.dumps(example.answer)
            counted = f"{len(images):,} image{'' if len(images) == 1 else 's'}"
            words = (_question_of(example), _short(answer))
            shown.append(Shown(example.dataset, f"K{example.length // K}", example.id, path, counted, *words))
    return tuple(shown)


def _illustrated(release: Release, cleared: Cleared) -> Iterator[Example]:
    """Yield the first question with images of each dataset, then the second of each, and so on; each question once."""

    def of_dataset(dataset: str) -> Iterator[Example]:
        known = set[str]()
        for length in release.lengths(dataset)[:1]:
            for example in release.examples(dataset, length):
                is_new = example.prompt.images and example.id not in known
                if is_new and cleared.is_published(dataset, example.file, example.id):
                    known.add(example.id)
                    yield example

    builders = {str(data.get("name")): str(data.get("builder")) for data in release.lock.manifest}
    first: dict[str, str] = {}
    for name in release.datasets:
        first.setdefault(builders[name], name)
    others = (name for name in release.datasets if name not in first.values())
    left = [of_dataset(name) for name in (*first.values(), *others)]
    while left:
        for examples in tuple(left):
            if (example := next(examples, None)) is None:
                left.remove(examples)
            else:
                yield example


def _contact_sheet(paths: Sequence[Path]) -> bytes:
    """Return the first images side by side as a JPEG; empty if none can be read."""
    from PIL import Image

    tiles = []
    for path in paths[:TILES]:
        with suppress(*unreadable()):
            tiles.append(Image.open(io.BytesIO(thumbnail(path.read_bytes(), SIDE, MAX_PIXELS))))
    if not tiles:
        return b""
    height = max(tile.height for tile in tiles)
    sheet = Image.new("RGB", (sum(tile.width for tile in tiles) + GAP * (len(tiles) - 1), height), "white")
    left = 0
    for tile in tiles:
        sheet.paste(tile, (left, 0))
        left += tile.width + GAP
    data = io.BytesIO()
    sheet.save(data, "JPEG", quality=80)
    return data.getvalue()


def _question_of(example: Example) -> str:
    """Return the question of an example: the text after its context, or the end of its prompt."""
    outline = example.prompt.outline
    parts = outline.after if outline else example.prompt.turns[-1].parts[-1:]
    text = " ".join("".join(part if isinstance(part, str) else " [image] " for part in parts).split())
    return _short(text.removeprefix("Question:").removesuffix("Answer:"), from_end=True)


def _short(text: str, *, from_end: bool = False) -> str:
    plain = " ".join(text.split())
    if len(plain) <= MAX_CHARACTERS:
        return plain
    return f"… {plain[-MAX_CHARACTERS:]}" if from_end else f"{plain[:MAX_CHARACTERS]} …"
