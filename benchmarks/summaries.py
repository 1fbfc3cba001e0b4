"""Summaries: how well pages of highlights are found, and pages an example at every length.

Drawn letter-size reports in every layout, and two pages that only name the headings, tell how many summary pages are
found, against searches for the headings, by a reference that the page repeats and by one in other words; documents of
55 to 60 pages are built at five lengths (a check of the arithmetic against the paper's Table 3); with `--documents`,
real PDFs too, under references that are made up.
"""

import json
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pymupdf
from sources import open_pdfs

import mmlongbench.task as mt
from builders.samples.summarization.reports import (
    SUBJECTS,
    broken_over_lines,
    draw_case_document,
    draw_report,
    layouts,
    reworded,
    summary_of,
)
from builders.summarization.highlights import HEADINGS, find_highlights, grams
from builders.summarization.rows import Section
from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest
from mmlongbench.release.layout import DATA

DRAWS = mt.Draws(("summaries",))
NAMING = (
    "Contents\nWhat GAO Found ......... 1\nWhy GAO Did This Study\n3\nAppendix I: Scope ........ 20",
    "This review follows up on what GAO found in 2009, and on what GAO recommends to other agencies in such cases.",
)
"""Pages that only name the headings: a table of contents, and running text."""
LENGTHS = "8K,16K,32K,64K,128K"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--documents", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Real PDFs.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the releases there.")
@click.option("--examples", default=4, show_default=True, help="Of each drawn dataset.")
@click.option("--workers", default=2, show_default=True)
def main(documents: Path | None, out: Path | None, examples: int, workers: int) -> None:
    """Find summary pages, build, and print what came out."""
    _find()
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder)
        _built("letter", _drawn(drawn / "letter", examples), out or drawn, workers)
        if documents:
            with open_pdfs(documents) as pdfs:
                _built("real", _real(drawn / "real", pdfs), out or drawn, workers)


def _find() -> None:
    """Precision and recall over summary pages of every layout and two subjects, ours and those of two searches."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    over = list[float]()
    for name, layout in layouts():
        for subject in SUBJECTS[:2]:
            data, summary = draw_report("gao-18-107", subject, 9, layout, DRAWS.at(name, subject[0]))
            texts = [page.get_text() for page in pymupdf.open(stream=data, filetype="pdf").pages()]
            told = frozenset[str]().union(*(grams("\n".join(s.paragraphs)) for s in summary[:2]))
            covers = [len(grams(text) & told) / len(told) for n, text in enumerate(texts) if n not in layout.pages]
            over.append(max(covers))
            naming = set(range(len(texts), len(texts) + len(NAMING)))
            texts += NAMING
            cut = [broken_over_lines(text) for text in texts]
            for reference, pages, sections in (
                ("verbatim", texts, summary),
                ("verbatim, words broken over lines", cut, summary),
                ("reworded", texts, reworded(summary)),
            ):
                for what, found in _searched(pages, sections).items():
                    counted = counts.setdefault((reference, what), Counter())
                    right = set(layout.pages)
                    headed = right if layout.look.manner != "none" else set[int]()
                    wrong = found - right - naming
                    counted.update(hit=len(found & right), wrong=len(wrong), missed=len(right - found), reports=1)
                    counted.update(headed=len(headed), headed_hit=len(found & headed), naming=len(found & naming))
    for (reference, what), counted in counts.items():
        _tell(f"{reference}: {what}", counted)
    click.echo(
        f"body pages cover at most {max(over):.3f} of the summary (mean of the worst {statistics.mean(over):.3f})"
    )


def _searched(texts: Sequence[str], summary: Sequence[Section]) -> dict[str, set[int]]:
    """Return the pages that each method takes for the summary."""
    joined = [" ".join(text.split()).casefold() for text in texts]
    return {
        "found": set(find_highlights(texts, summary, first_pages=len(texts)).removed),
        "plain search for the headings": {n for n, text in enumerate(texts) if any(h in text for h in HEADINGS)},
        "search in any case over joined lines": {
            n for n, text in enumerate(joined) if any(heading.casefold() in text for heading in HEADINGS)
        },
    }


def _tell(what: str, counted: Counter[str]) -> None:
    precision = counted["hit"] / max(1, counted["hit"] + counted["wrong"])
    recall = counted["hit"] / max(1, counted["hit"] + counted["missed"])
    headed = counted["headed_hit"] / max(1, counted["headed"])
    numbers = {key: counted[key] for key in ("hit", "wrong", "missed")}
    click.echo(
        f"{what}: precision {precision:.3f}, recall {recall:.3f} ({headed:.3f} of pages with a heading) "
        f"over {counted['reports']} reports {numbers}; "
        f"{counted['naming']} of {counted['reports'] * len(NAMING)} pages that only name headings"
    )


def _drawn(folder: Path, examples: int) -> list[dict[str, Any]]:
    """Reports `gao-18-107` … and cases of numeric documents, 55 to 60 pages beside the summary."""
    reports, highlights, lines = folder / "gov" / "pdf", [], []
    reports.mkdir(parents=True)
    (folder / "lexsum" / "pdf").mkdir(parents=True)
    layout = next(found for name, found in layouts() if found.pages == (1,))
    for number in range(examples):
        id, subject = f"gao-18-{107 + number}", SUBJECTS[number % len(SUBJECTS)]
        data, summary = draw_report(id, subject, 56 + number % 6, layout, DRAWS.at(id))
        (reports / f"{id}.pdf").write_bytes(data)
        highlights.append({"id": id, "url": "", "highlight": [section.model_dump(mode="json") for section in summary]})
        parts = [20 + number % 3, 3, 32]
        ids = [str(31854 + 10 * number + place) for place in range(len(parts))]
        for name, pages in zip(ids, parts, strict=True):
            file = draw_case_document(name, subject, pages, DRAWS.at(name))
            (folder / "lexsum" / "pdf" / f"{name}.pdf").write_bytes(file)
        lines.append({"case_id": f"{1000 + number}", "case_documents": ids, "summary/short": "The case was settled."})
    return _datasets(folder, highlights, lines)


def _real(folder: Path, pdfs: Sequence[Path]) -> list[dict[str, Any]]:
    """Each PDF as a report without a summary page; and cases that each hold about 130K tokens of PDFs."""
    reports = folder / "gov" / "pdf"
    reports.mkdir(parents=True)
    (folder / "lexsum" / "pdf").mkdir(parents=True)
    highlights, lines, held = [], [], list[str]()
    pages = 0
    for number, path in enumerate(pdfs):
        id = f"gao-20-{100 + number}"
        (reports / f"{id}.pdf").write_bytes(path.read_bytes())
        summary = summary_of(SUBJECTS[0], DRAWS.at(id))
        highlights.append({"id": id, "url": "", "highlight": [section.model_dump(mode="json") for section in summary]})
        (folder / "lexsum" / "pdf" / f"{40000 + number}.pdf").write_bytes(path.read_bytes())
        held.append(str(40000 + number))
        pages += len(pymupdf.open(path))
        if pages > 52:
            lines.append({"case_id": f"{number}", "case_documents": held, "summary/short": "The case was settled."})
            held, pages = [], 0
    return _datasets(folder, highlights, lines, keep=True)


def _datasets(
    folder: Path, highlights: Sequence[object], lines: Sequence[object], *, keep: bool = False
) -> list[dict[str, Any]]:
    for name, rows in (("gov/reports.jsonl", highlights), ("lexsum/cases.json", lines)):
        (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    gov = {"reports": str(folder / "gov/reports.jsonl"), "documents": str(folder / "gov/pdf")}
    lexsum = {"cases": str(folder / "lexsum/cases.json"), "documents": str(folder / "lexsum/pdf")}
    options = {"without_summary_page": "keep"} if keep else {}
    shared = {"builder": "summary"}
    return [
        {**shared, "name": "gov", "reader": "govreport", "source": gov, "options": options},
        {
            "name": "lexsum",
            "builder": "summary",
            "reader": "multi_lexsum",
            "source": lexsum,
            "options": {"kind": "case"},
        },
    ]


def _built(what: str, datasets: list[dict[str, Any]], out: Path, workers: int) -> None:
    manifest = Manifest.model_validate({"datasets": [{**each, "lengths": LENGTHS.split(",")} for each in datasets]})
    release = out / f"{what}-release"
    lock = build(manifest, release, LocalExecutor(workers, Progress(is_shown=False))).lock.public()
    for name, data in lock["datasets"].items():
        click.echo(f"{what}, {name}: {data['questions']}")
        for length in LENGTHS.split(","):
            path = release / DATA / f"summ/{name}_K{length[:-1]}.jsonl"
            images = (
                [len(json.loads(line)["image_list"]) for line in path.read_text().splitlines()] if path.exists() else []
            )
            if images:
                click.echo(f"  {length}: {statistics.mean(images):.1f} ± {statistics.pstdev(images):.1f} pages")


if __name__ == "__main__":
    main()
