"""Writes the card of a publication (`README.md`): the configurations for the Hub, and what a reader must know."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.io.files import write_whole
from mmlongbench.io.printable import md
from mmlongbench.lengths import K, format_length
from mmlongbench.publishing.card_pictures import Shown
from mmlongbench.publishing.facts import LOCAL, Facts, limitations, listed, mean
from mmlongbench.publishing.practices import PRACTICES
from mmlongbench.publishing.tables import IMAGE_COLUMNS, described_columns
from mmlongbench.release.layout import PUBLISHED_IMAGES, STAGE_NAMES

if TYPE_CHECKING:
    from jinja2 import Environment

CARD = "README.md"
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_HUB_LICENCE = re.compile(r"(cc0|cc-by(-nc)?(-nd|-sa)?)-\d\.\d|mit|apache-2\.0|bsd-[23]-clause|odc-by|gpl-3\.0")
"""The licences for which the Hub has an identifier of the same spelling; there are more."""


def write_card(out: Path, facts: Facts, shown: Sequence[Shown], sizes: dict[str, int]) -> None:
    """Write the card.

    Args:
        out: the folder of the publication.
        facts: what the card says.
        shown: the examples with pictures.
        sizes: the bytes of each file of a table, by path.

    """
    pieces = (front_matter(facts), card(facts, shown, sizes))
    write_whole(out / CARD, (piece.encode("utf-8", "backslashreplace") for piece in pieces))


def front_matter(facts: Facts) -> str:
    """Return the head of the card, which tells the Hub and `datasets` which files are a configuration."""
    import yaml

    about = facts.about
    said: dict[str, object] = {
        **_licence(facts),
        "pretty_name": facts.title,
        "language": list(about.languages),
        "task_categories": list(about.tasks),
        "tags": list(about.keywords),
        "size_categories": [next((name for limit, name in _SIZES if facts.examples < limit), "n>1M")],
        "configs": list(_configs(facts)),
    }
    return f"---\n{yaml.safe_dump(said, sort_keys=False, allow_unicode=True)}---\n\n"


def _licence(facts: Facts) -> dict[str, str]:
    """Return the licence as the Hub wants it: an identifier if all parts have the same one."""
    names = {source.licence.lower() for source in facts.rights.sources}
    if len(names) == 1 and _HUB_LICENCE.fullmatch(name := next(iter(names))):
        return {"license": name}
    return {"license": "other", "license_name": "several-see-card", "license_link": "LICENSES"}


def _configs(facts: Facts) -> Iterator[dict[str, object]]:
    for number, (dataset, tables) in enumerate(facts.datasets.items()):
        files = [{"split": table.split, "path": table.paths if table.paths[1:] else table.paths[0]} for table in tables]
        yield {"config_name": dataset, **({"default": True} if not number else {}), "data_files": files}
    if facts.tables.images:
        images = [{"split": "images", "path": f"{PUBLISHED_IMAGES}/*.parquet"}]
        yield {"config_name": facts.image_config, "data_files": images}


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("mmlongbench.publishing"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["md"] = md
    return made


def card(facts: Facts, shown: Sequence[Shown], sizes: dict[str, int]) -> str:
    """Return the card without its head."""
    about, first = facts.about, facts.tables.examples[0]
    ours = [each for each in PRACTICES if each.state_of(facts) != "not ours"]
    return _environment().get_template("card.md").render(
        title=md(facts.title),
        description=md(about.description) or "Examples of controlled lengths, packed to the token.",
        canary=facts.canary,
        place=facts.name,
        is_local=facts.name == LOCAL,
        first=first,
        image_config=facts.image_config,
        columns=_table(_column_rows(facts)),
        files=_table(_file_rows(facts, sizes)),
        images=f"{len(facts.tables.shown):,}",
        image_bytes=f"{sum(file.bytes for file in facts.tables.images):,}",
        image_files=f"{len(facts.tables.images):,}",
        examples=[{**_fields(each), "split": f"K{each.length // K}"} for each in shown],
        versions=facts.lock.versions.get("mmlongbench", ""),
        stages=", ".join(STAGE_NAMES),
        built=_table(_built_rows(facts)),
        rejects=_table(_reject_rows(facts)),
        shortcuts=_shortcuts(facts),
        rights_said=_rights_said(facts),
        rights=_table(_right_rows(facts)),
        advice=facts.rights.advice,
        limitations=tuple(limitations(facts)),
        practices=_table(_practice_rows(facts)),
        met=sum(each.state_of(facts) == "met" for each in ours),
        practices_ours=len(ours),
        not_ours=len(PRACTICES) - len(ours),
        citation=about.citation.replace("```", "").strip(),
        contact=about.contact,
    )  # fmt: skip


def _fields(each: Shown) -> dict[str, object]:
    images = f"{each.images:,} image{'' if each.images == 1 else 's'}"
    return {
        **{name: getattr(each, name) for name in ("dataset", "id", "picture", "question", "answer")},
        "images": images,
    }


def _file_rows(facts: Facts, sizes: dict[str, int]) -> Iterator[tuple[str, ...]]:
    yield "configuration", "split", "examples", "images shown", "fill (mean)", "fill (least)", "bytes"
    for table in facts.tables.examples:
        figures = (f"{table.rows:,}", f"{table.images:,}", f"{mean(table):.3f}", f"{min(table.fills):.3f}")
        yield table.dataset, table.split, *figures, f"{sum(sizes[path] for path in table.paths):,}"


def _column_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "configuration", "column", "content"
    has_canary = any(table.canary for table in facts.tables.examples)
    yield from (("of a dataset", f"`{name}`", said) for name, said in described_columns(has_canary=has_canary).items())
    if facts.tables.images:
        yield from ((f"`{facts.image_config}`", f"`{name}`", said) for name, said in IMAGE_COLUMNS.items())


def _built_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "dataset", "builder", "reader", "lengths", "reserve", "fits all lengths from", "sample", "seed"
    for data in facts.lock.manifest:
        if (name := str(data.get("name"))) in facts.datasets:
            lengths = ", ".join(format_length(table.length) for table in facts.datasets[name])
            sample = data.get("sample")
            size = sample.get("n") if isinstance(sample, dict) else None
            others = (str(data.get("reserve") or "of the task"), _length(data.get("admission_length")))
            seed = str(data.get("seed"))
            yield name, str(data.get("builder")), str(data.get("reader")), lengths, *others, str(size or "all"), seed


def _length(tokens: object) -> str:
    return format_length(tokens) if isinstance(tokens, int) else "–"


def _reject_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "dataset", "rows read", "kept", "not chosen", "left out, by reason", "questions without an example, by length"
    for name, tables in facts.datasets.items():
        if known := facts.lock.counts(name):
            asked = known.questions
            cells = [(table.split, found.rejected) for table in tables if (found := facts.counts(table))]
            short = ", ".join(f"{split} {count:,}" for split, count in cells if count) or "–"
            chosen = (f"{asked.kept:,}", f"{asked.not_sampled + asked.not_selected:,}")
            gone = Counter(asked.rejected) + Counter(asked.skipped)
            yield name, f"{asked.read:,}", *chosen, listed(gone) or "–", short


def _shortcuts(facts: Facts) -> str:
    if facts.shortcuts is None:
        return "Not audited. `mmlongbench shortcuts` tries to tell answers without looking."
    counted = {verdict: sum(each.verdict == verdict for each in facts.shortcuts) for verdict in _VERDICTS}
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in counted.items())
    rows = _table(_leak_rows(facts)) if facts.leaks else ""
    return f"Probes that tried to tell answers without looking: {said}.\n\n{rows}".strip()


_VERDICTS = ("leak", "clean", "undecided")


def _leak_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "dataset", "shortcut", "measure", "found", "by chance", "above chance, 95 %"
    for each in facts.leaks:
        figures = (f"{each.found:.1%}", f"{each.chance:.1%}", f"{each.low:+.1%} to {each.high:+.1%}")
        yield each.dataset, each.kind, each.measure, *figures


def _rights_said(facts: Facts) -> str:
    """Return what the strictest parts ask for, and what is withheld, in sentences."""
    rights = facts.rights
    total = rights.images + rights.texts
    said = [f"{_share(rights.with_licence, total)} of {total:,} images and texts have a licence, "]
    said += [f"{_share(rights.with_origin, total)} an origin. The combination asks for: "]
    said += [", ".join(demand.condition for demand in rights.demands) or "nothing", "."]
    if facts.cleared.withheld_sources:
        names = ", ".join(md(f"{each.name} ({each.licence})") for each in facts.cleared.withheld_sources)
        said += [f" Not published, because their licences forbid it, with every example that shows them: {names}. "]
        said += ["The manifest and the lock build them again from a download of your own."]
    return "".join(said)


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _right_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "source", "licence", "asks for", "images", "texts", "published at"
    for each in facts.rights.sources:
        licence = each.licence or (f"unknown: {each.reason}" if each.reason else "unknown")
        counts = (f"{each.images:,}", f"{each.texts:,}")
        yield each.name, licence, ", ".join(each.conditions) or "–", *counts, ", ".join(each.origins) or "unknown"


def _practice_rows(facts: Facts) -> Iterator[tuple[str, ...]]:
    yield "stage", "practice", "here", "told", "by"
    for each in PRACTICES:
        yield each.stage, each.name, each.state_of(facts), "yes" if each.is_automatic else "–", each.how


def _table(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as a table in Markdown; the first one has the heads, and columns of numbers are on the right."""
    heads, *others = [[md(cell) for cell in row] for row in rows]
    columns = list(zip(*others, strict=True)) or [()] * len(heads)
    rule = ["---:" if _is_numbers(column) else "---" for column in columns]
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, rule, *others))


def _is_numbers(cells: Sequence[str]) -> bool:
    """Return whether a column has numbers, such as `1,024`, `0.953`, `52.0%` or `8K`, and at most dashes besides."""
    found = [cell for cell in cells if cell != "–"]
    return bool(found) and all(re.fullmatch(r"[+-]?\d[\d,.]*[%KM]?", cell) for cell in found)
