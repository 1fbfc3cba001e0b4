"""Writes the card of a publication (`README.md`): the configurations for the Hub, what a reader must know, and a few
examples as pictures.
"""

import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.documents.pixels import thumbnail, unreadable
from mmlongbench.io.files import write_whole
from mmlongbench.io.printable import md
from mmlongbench.lengths import K, format_length
from mmlongbench.publishing.facts import Facts, Practice, listed
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
    images: int
    question: str
    answer: str


def write_card(
    out: Path, facts: Facts, practices: Sequence[Practice], shown: Sequence[Shown], sizes: Mapping[str, int]
) -> None:
    """Write the card; `sizes` has the bytes of each file of a table, by path."""
    from huggingface_hub import DatasetCard, DatasetCardData
    from jinja2 import Environment, PackageLoader, StrictUndefined

    about, tables, rights = facts.about, facts.tables, facts.rights
    licences = {source.licence.lower() for source in rights.sources}
    licence = {"license": "other", "license_name": "several-see-card", "license_link": "LICENSES"}
    if len(licences) == 1 and _HUB_LICENCE.fullmatch(next(iter(licences))):
        licence = {"license": licences.pop()}
    head = DatasetCardData(
        pretty_name=facts.title,
        language=list(about.languages),
        task_categories=list(about.tasks),
        tags=list(about.keywords),
        size_categories=[next((name for limit, name in _SIZES if facts.examples < limit), "n>1M")],
        configs=list(_configs(facts)),
        **licence,  # type: ignore[arg-type]  # all of them are texts
    )
    templates = Environment(
        loader=PackageLoader("mmlongbench.publishing"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.filters |= {"md": md, "n": "{:,}".format}
    total = rights.images + rights.texts
    verdicts, ours = Counter(each.verdict for each in facts.shortcuts or ()), Counter(each.state for each in practices)
    body = templates.get_template("card.md").render(
        facts=facts,
        tables=tables,
        rights=rights,
        columns={name: content for name, content in COLUMNS.items() if facts.lock.canary or name != "canary"},
        image_columns=IMAGE_COLUMNS if tables.image_files else {},
        files=[(table, sum(sizes[path] for path in table.paths)) for table in tables.examples],
        examples=shown,
        stages=", ".join(STAGE_NAMES),
        built=list(_built_rows(facts)),
        rejects=list(_reject_rows(facts)),
        verdicts=", ".join(f"{verdicts[verdict]:,} {verdict}" for verdict in ("leak", "clean", "undecided")),
        share=lambda part: f"{100 * part / total:.1f} %" if total else "–",
        withheld=", ".join(md(f"{each.name} ({each.licence})") for each in facts.cleared.withheld_sources),
        limitations=list(facts.limitations()),
        practices=practices,
        met=ours["met"],
        practices_ours=ours["met"] + ours["not met"],
        not_ours=ours["not ours"],
        citation=about.citation.replace("```", "").strip(),
    )
    card = DatasetCard(f"---\n{head.to_yaml()}\n---\n\n{body}")
    write_whole(out / CARD, [str(card).encode("utf-8", "backslashreplace")])


def _configs(facts: Facts) -> Iterator[dict[str, object]]:
    """Yield which files are a configuration, for the Hub and for `datasets`."""
    for number, (dataset, tables) in enumerate(facts.datasets.items()):
        paths = [{"split": table.split, "path": table.paths if table.paths[1:] else table.paths[0]} for table in tables]
        yield {"config_name": dataset, **({} if number else {"default": True}), "data_files": paths}
    if facts.tables.image_files:
        images = [{"split": "images", "path": f"{PUBLISHED_IMAGES}/*.parquet"}]
        yield {"config_name": facts.image_config, "data_files": images}


def _built_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
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
    for name, tables in facts.datasets.items():
        if known := facts.lock.counts(name):
            asked = known.questions
            cells = [(table.split, counts.rejected) for table in tables if (counts := facts.counts(table))]
            short = ", ".join(f"{split} {count:,}" for split, count in cells if count) or "–"
            gone = Counter(asked.rejected) + Counter(asked.skipped)
            not_chosen = f"{asked.not_sampled + asked.not_selected:,}"
            yield name, f"{asked.read:,}", f"{asked.kept:,}", not_chosen, listed(gone) or "–", short


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
            words = (_question_of(example), _short(answer))
            shown.append(Shown(example.dataset, f"K{example.length // K}", example.id, path, len(images), *words))
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
