"""The pages of the viewer, and the data that their scripts load.

A server and a folder of files have the same ones, under the same names.
"""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from pydantic import JsonValue, TypeAdapter, ValidationError

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import bounded_lines, read_regular, write_whole
from mmlongbench.io.pool import each_done
from mmlongbench.lengths import format_length
from mmlongbench.messages import messages
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import DatasetCounts, UnreadableCounts
from mmlongbench.table import Cell, Table, Value
from mmlongbench.web.kit import Section, html, points, render
from mmlongbench.web.viewer.example import chunk, on_model, outline, whole_text
from mmlongbench.web.viewer.index import IndexRow
from mmlongbench.web.viewer.review import pages_beside
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.viewed import ViewedFile, as_text, cache_folder, key_of

PAGE = 50
"""The rows of a page of the table of a dataset."""
_MAX_REJECTS = 500
"""The most rejects that a page shows."""
_MAX_DIFFERENCES = 200
"""The most differences between two locks that a page shows."""
_MAX_CURVES = 64 * 1024 * 1024
"""The most bytes of the curves that are kept."""
_CURVES = threading.Lock()
"""At most one report is computed at a time."""
_LINE = TypeAdapter(dict[str, JsonValue])
_VERDICTS = {"leak": "■", "undecided": "◪", "clean": "□"}


# The release.


def release_page(site: Site) -> Iterator[str]:
    """Yield the first page: datasets and lengths, what was left out, shortcuts, differences, and the lock."""
    lock = site.viewed.release.lock
    counts = {name: found for name, found in lock.datasets.items() if isinstance(found, DatasetCounts)}
    left_out = any(found.questions.rejected or found.questions.skipped for found in counts.values())
    sections = [
        (True, Section("datasets", "Datasets")),
        (left_out, Section("rejects", "Left out")),
        (bool(site.findings), Section("shortcuts", "Shortcuts")),
        (bool(site.against), Section("differences", "Differences")),
        (bool(site.viewed.lock_id), Section("lock", "Lock")),
    ]
    return render(
        "view_release.html",
        title=site.viewed.name,
        site=site,
        sections=[section for is_there, section in sections if is_there],
        datasets=_datasets(site, counts),
        left_out=_left_out(site, counts),
        findings=_findings(site),
        lock_differences=Table(
            ("where", "A against B"), site.against[1].lock[:_MAX_DIFFERENCES] if site.against else [], align="ll"
        ),
        most=_MAX_DIFFERENCES,
        lock=lock,
        sources=[(str(data.get("name")), list(_facts(data))) for data in lock.manifest],
    )


def _datasets(site: Site, counts: Mapping[str, DatasetCounts]) -> Table:
    rows: list[Sequence[Value]] = []
    for number, name in enumerate(site.viewed.datasets):
        address, known = f"dataset-{number}.html", counts.get(name)
        notes = [known.licence] if known and known.licence else []
        unread = site.viewed.release.lock.datasets.get(name)
        notes += [unread.fault] if isinstance(unread, UnreadableCounts) else []
        files = site.viewed.of(name)
        rows.append((Cell(html("link", address, name, True), notes if files else [*notes, "no file"]),))
        for file in files:
            length, head = format_length(file.length), site.index.head(file.number)
            examples, rejected, dry = max(1, head.rows), Cell("–"), Cell("–")
            if known and (cell := known.cells.get(length)):
                lacked = [f"up to {cell.missing_units:,} units lacked"] if cell.missing_units else []
                rejected, dry = Cell(f"{cell.rejected:,}"), Cell(f"{cell.ran_dry:,}", lacked)
            link = html("link", f"{address}#length={length}", length, False, f"Examples of {name} at {length}")
            row = (
                Cell(link if head.rows else length),
                Cell(f"{head.rows:,}", [f"{head.faults:,} cannot be read"] if head.faults else []),
                Cell(html("meter", head.fill_sum / examples, f"Mean fill of {name} at {length}")),
                f"{head.image_sum / examples:.1f}",
                rejected,
                dry,
            )
            rows.append(row)
    columns = ("length", "examples", "mean fill", "mean images", "left out at this length", "ran out of units")
    return Table(columns, rows)


def _left_out(site: Site, counts: Mapping[str, DatasetCounts]) -> Table:
    rows: list[Sequence[Value]] = []
    for name, found in counts.items():
        asked = found.questions
        reasons = (
            Cell(html("counted_links", [(f"rejects.html#{reject_anchor(site, name, why)}", why, n) for why, n in each]))
            for each in (asked.rejected.items(), asked.skipped.items())
        )
        rows.append((name, asked.read, asked.kept, asked.not_sampled, *reasons))
    columns = ("dataset", "read", "kept", "not sampled", "rejected, by reason", "left out by the benchmark")
    return Table(columns, rows, align="lrrrll")


def _findings(site: Site) -> Table:
    rows = [
        (
            f"{_VERDICTS[each.verdict]} {each.verdict}",
            each.dataset,
            Cell(each.kind, [each.evidence] if each.evidence else []),
            each.questions,
            points(each.found),
            points(each.chance),
            f"{points(each.low)} to {points(each.high)}",
        )
        for each in site.findings
    ]
    return Table(("verdict", "dataset", "what tells", "questions", "found", "chance", "excess"), rows, align="lll")


def _facts(data: Mapping[str, JsonValue]) -> Iterator[tuple[str, str]]:
    """Yield what the lock says about how a dataset was made: (name, value)."""
    for key, value in data.items():
        if key != "name" and value not in (None, {}, []):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield key, text if len(text) <= 300 else f"{text[:299]}…"


def rejects_page(site: Site) -> Iterator[str]:
    """Yield the page of rejects: every reject with its raw row, by dataset and reason."""
    groups: dict[tuple[str, str], list[dict[str, object]]] = {}
    lines = list(islice(_reject_lines(site), _MAX_REJECTS + 1))
    for dataset, reason, line in lines[:_MAX_REJECTS]:
        groups.setdefault((dataset, reason), []).append(line)
    return render(
        "view_rejects.html",
        title="Left out",
        site=site,
        groups=groups,
        most=_MAX_REJECTS,
        has_more=len(lines) > _MAX_REJECTS,
        anchor=reject_anchor,
    )


def reject_anchor(site: Site, dataset: str, reason: str) -> str:
    """Return the anchor of the rejects of a dataset with a reason."""
    names = site.viewed.datasets
    slug = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in reason)
    return f"r{names.index(dataset) if dataset in names else 'x'}-{slug}"


def _reject_lines(site: Site) -> Iterator[tuple[str, str, dict[str, object]]]:
    """Yield (dataset, reason, line) of `rejects.jsonl`; a line that cannot be read is shown as it is."""
    path = site.viewed.rejects
    if path is None:
        return
    with path.open("rb") as file:
        for number, _, line in bounded_lines(file):
            if line is None or not line.strip():
                continue
            try:
                found = _LINE.validate_json(line)
            except ValidationError:
                found = {}
            raw = json.dumps(found, ensure_ascii=False, indent=1) if found else line.decode("utf-8", "replace")
            where = ", ".join(str(found[key]) for key in ("file", "place", "field") if found.get(key))
            shown = {"number": number, "id": str(found.get("id", "")), "where": where, "raw": raw[:20_000]}
            yield str(found.get("dataset", "")), str(found.get("reason", "unreadable")), shown


# A dataset.


def dataset_page(site: Site, number: int) -> Iterator[str]:
    """Yield the page of a dataset: a table of its examples, which a script fills, filters and sorts."""
    names = site.viewed.datasets
    if number >= len(names):
        raise ReleaseError(f"there is no dataset {number}")
    files = site.viewed.of(names[number])
    return render(
        "view_dataset.html",
        title=names[number],
        site=site,
        files=[file.number for file in files],
        lengths=[format_length(length) for length in dict.fromkeys(file.length for file in files)],
        models=site.answers.models,
        page=PAGE,
    )


def rows_data(site: Site, file: int) -> list[object]:
    """Return the rows of a public file in the table of its dataset."""
    viewed = site.file(file)
    rows: list[object] = []
    for row in site.index.rows(file):
        scores = [site.answers.score(viewed, row, model) for model in site.answers.models]
        values = {
            "url": site.address(viewed, row.row),
            "id": row.name,
            "length": format_length(viewed.length),
            "placement": row.placed,
            "question": row.fault or row.question,
            "fault": bool(row.fault),
            "answer": row.answer,
            "document": row.document,
            "facets": [f"{name}: {', '.join(values)}" for name, values in row.facets.items()],
            "tokens": row.tokens,
            "fill": round((row.tokens + row.reserve) / viewed.length, 4),
            "images": row.images,
            "scores": [None if score is None else round(score, 4) for score in scores],
        }
        rows.append(values)
    return rows


# An example.


def example_page(site: Site, file: int, number: int) -> Iterator[str]:
    """Yield the page of an example: its question and answer, its tokens to scale, its prompt as a list, and what models
    said. An example that cannot be read has a page that says why.
    """
    viewed = site.file(file)
    row = site.row(viewed, number)
    try:
        opened, fault = site.open(viewed, number), ""
    except MMLongBenchError as error:
        opened, fault = None, str(error)
    rows, shorter = site.index.rows(file), site.shorter(viewed, row)
    after = [*rows[number + 1 :], *rows[:number]]
    wrong = next((each for each in after if site.answers.is_wrong(viewed, each)), None)
    lengths, placements = _places(site, viewed, row)
    return render(
        "view_example.html",
        title=f"{row.name}{f', {row.placed}' if row.placed else ''} · {format_length(viewed.length)}",
        site=site,
        file=viewed,
        row=row,
        of=len(rows),
        dataset=site.viewed.datasets.index(viewed.dataset),
        length=format_length(viewed.length),
        opened=opened,
        fault=fault,
        answer=as_text(opened.example.answer) if opened else row.answer,
        lengths=lengths,
        placements=placements,
        previous=site.address(viewed, number - 1) if number > 0 else "",
        next=site.address(viewed, number + 1) if number + 1 < len(rows) else "",
        wrong=site.address(viewed, wrong.row) if wrong else "",
        answers=site.answers.of(viewed, row),
        shorter=format_length(shorter[0].length) if shorter else "",
    )


Places = list[tuple[str, str, bool]]
"""(name, address, whether it is this example) of the places of a question; no address: the site lacks it."""


def _places(site: Site, file: ViewedFile, row: IndexRow) -> tuple[Places, Places]:
    """Return the lengths of a question, and its placements at this length; a length leads to the same placement."""
    places = sorted(
        [(file, row), *site.elsewhere(file, row)],
        key=lambda pair: (pair[0].length, -1.0 if pair[1].placement is None else pair[1].placement),
    )
    by_length: dict[int, tuple[ViewedFile, IndexRow]] = {}
    for other, each in places:
        if other.length not in by_length or each.placement == row.placement:
            by_length[other.length] = other, each
    by_length[file.length] = file, row
    lengths = [
        (format_length(length), site.address(other, each.row), other is file)
        for length, (other, each) in by_length.items()
    ]
    placements = [
        (f"{each.placement:g}", site.address(other, each.row), each is row)
        for other, each in places
        if other is file and each.placement is not None
    ]
    return lengths, placements


def outline_data(site: Site, file: int, number: int) -> dict[str, object]:
    """Return the outline of an example, in which units that a shorter context lacks are marked."""
    opened = site.open(site.file(file), number)
    shorter, keys = site.shorter(site.file(file), opened.row), None
    if shorter:
        try:
            items = site.index.units(shorter[0].number, shorter[1]).items
            keys = frozenset(item["unit"] for item in items) if items else site.read(*shorter).keys
        except MMLongBenchError:
            keys = None
    return outline(opened, keys)


def chunk_data(site: Site, file: int, number: int, place: int) -> list[object]:
    """Return the rows of a chunk of an example's list; files on a disk have texts whole."""
    opened = site.open(site.file(file), number)
    numbers = {path: at for at, path in enumerate(site.index.images(file))}
    return chunk(opened, place, numbers, is_whole=site.is_static)


def text_data(site: Site, file: int, number: int, block: int, piece: int) -> dict[str, object]:
    """Return a whole text of an example."""
    return whole_text(site.open(site.file(file), number), block, piece)


def model_data(site: Site, file: int, number: int, model: int) -> dict[str, object]:
    """Return what the blocks of an example cost on a model."""
    if model >= len(site.models):
        raise ReleaseError(f"there is no model {model}")
    return on_model(site.open(site.file(file), number), site.models[model])


def message_data(site: Site, file: int, number: int) -> list[object]:
    """Return the prompt as messages; images are given by their paths below the release."""
    return list(messages(site.open(site.file(file), number).example.prompt, lambda path: f"{IMAGES}/{path}"))


# The report.


def report_page(site: Site) -> Iterator[str]:
    """Yield the page of the score report: curves over lengths and depths, in which each point leads to its examples."""
    if not site.answers.score_paths:
        raise ReleaseError("there are no scores: start the viewer with --predictions or --scores")
    curves = curves_of_scores(site.answers.score_paths)
    parts = {part: list(figures) for part, figures in groupby(curves["figures"], key=lambda figure: figure["part"])}
    names = {"datasets": "Datasets by length", "depth": "By depth", "facets": "By facet"}
    headings = {
        part: [(name, list(group)) for name, group in groupby(figures, key=lambda figure: figure["heading"])]
        for part, figures in parts.items()
    }
    return render(
        "view_report.html",
        title="Report",
        site=site,
        curves=curves,
        sections=[Section(part, name) for part, name in names.items() if part in parts],
        parts=headings,
        target=lambda figure, point, model: _target(site, figure, point, model),
    )


def curves_of_scores(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the curves of scores; they are computed once, in a process of its own, and kept."""
    files = [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]
    kept = cache_folder() / "curves" / f"{key_of(files)}.json"
    with _CURVES:
        try:
            curves: dict[str, Any] = json.loads(read_regular(kept, _MAX_CURVES))
        except (OSError, ValueError):
            for _, text in each_done(1, computed, [(files,)], ["the report"]):
                write_whole(kept, [text.encode()])
                curves = json.loads(text)
    return curves


def computed(files: Sequence[Path]) -> str:
    """Compute curves; called in a process of its own, because the import alone takes 100 MB."""
    from mmlongbench.web.viewer.curves import curves_of

    return curves_of(files)


def _target(site: Site, figure: Mapping[str, Any], point: Mapping[str, str], model: str) -> str:
    """Return the address of the examples of a point, those first that the model has worst; empty if the release lacks
    the dataset.
    """
    names = site.viewed.datasets
    if figure["dataset"] not in names:
        return ""
    is_depth, column, placement = figure["part"] == "depth", point["column"], ""
    if is_depth:
        # if all depths are tenths, the report may have rounded them: an example is at the nearest tenth
        is_rounded = all(f"{round(10 * float(depth)) / 10:g}" == depth for _, depth in figure["axis"])
        placement = f"~{column}" if is_rounded else column
    name = site.answers.shown_names.get(model, model)
    query = {
        "length": figure["value"] if is_depth else column,
        "placement": placement,
        "facet": f"{figure['facet']}: {figure['value']}" if figure["facet"] else "",
        "sort": "score",
        "model": name if name in site.answers.models else "",
    }
    kept = urlencode({name: value for name, value in query.items() if value})
    return f"dataset-{names.index(figure['dataset'])}.html#{kept}"


# A review.


def review_page(site: Site) -> Iterator[str]:
    """Yield the list of what is reviewed."""
    if site.review is None:
        raise ReleaseError("nothing is under review: start the viewer with --suspects or --review")
    rows = [
        (
            Cell(html("link", f"review-{number}.html", each.id, True)),
            each.kind,
            Cell(html("few", each.question)),
            Cell(html("few", each.answer)),
            ", ".join(map(str, each.pages)),
        )
        for number, each in enumerate(site.review.subjects, 1)
    ]
    columns = ("id", "why it is here", "question", "claimed answer", "pages")
    subjects = Table(columns, rows, align="llll")
    return render("view_review.html", title="Review", site=site, review=site.review, subjects=subjects)


def subject_page(site: Site, number: int) -> Iterator[str]:
    """Yield the page of something that is reviewed, which counts from 0: its pages beside the claimed answer."""
    count = len(site.review.subjects) if site.review else 0
    if site.review is None or not 0 <= number < count:
        raise ReleaseError(f"there is nothing to review with the number {number + 1}")
    subject = site.review.subjects[number]
    shown, claimed, example = pages_beside(site.viewed, site.index, subject)
    return render(
        "view_subject.html",
        title=subject.id,
        site=site,
        subject=subject,
        number=number,
        count=count,
        fields=Table(("field", "value", "proposed"), subject.fields, align="lll"),
        pages=shown,
        claimed=claimed,
        example=site.address(*example) if example else "",
    )
