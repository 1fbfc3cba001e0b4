"""The audit as one HTML page. It needs no network and no other files, so it works from `file://`. Its only script sorts
tables.
"""

from collections.abc import Iterable, Iterator, Sequence

from mmlongbench.lengths import format_length
from mmlongbench.release.example_cost import Model
from mmlongbench.release.file_audit import FileAudit, tokens_text
from mmlongbench.table import Cell, Table, Value
from mmlongbench.web.charts import histogram
from mmlongbench.web.kit import Section, html, render

_BAR = 160
"""The width in pixels of a bar that represents a length."""


def audit_page(title: str, audits: Sequence[FileAudit], models: Sequence[Model], notes: Iterable[str]) -> Iterator[str]:
    """Yield the page of an audit in pieces; `notes` are sentences at its top, such as how texts were counted."""
    counted = [audit for audit in audits if audit.examples]
    problems = [
        (audit.file, kind, times, audit.first[kind]) for audit in audits for kind, times in audit.problems.items()
    ]
    remarks = [
        (audit.file, subject, tally.examples, times, fault)
        for audit in audits
        for subject, tally in audit.remarks.items()
        for fault, times in (tally.faults or {"all right": tally.examples}).items()
    ]
    costliest = [
        (model.name, audit.file, id, tokens)
        for model in models
        for audit in counted
        for id, tokens in audit.models[model.name].worst
        if audit.models[model.name].over_window
    ]
    heads = [f"{model.name} ≤ {model.window:,}" if model.window else model.name for model in models]
    on_models: list[Sequence[Value]] = [
        (audit.file, *(_on_model(audit, model) for model in models)) for audit in counted
    ]
    sections = [
        (bool(problems), Section("problems", "Problems")),
        (bool(remarks), Section("remarks", "Noticed")),
        (True, Section("files", "Files")),
        (bool(models), Section("models", "On models")),
        (bool(costliest), Section("costliest", "The costliest examples of files that overflow")),
    ]
    return render(
        "audit.html",
        title=title,
        sections=[section for is_there, section in sections if is_there],
        examples=sum(audit.examples for audit in counted),
        files=len(counted),
        count=sum(audit.problems.total() for audit in audits),
        notes=list(notes),
        tables={
            "problems": Table(("file", "problem", "times", "first"), problems, align="llrl"),
            "remarks": Table(("file", "about", "examples", "of these", "found"), remarks, align="llrrl"),
            "files": _files(counted),
            "models": Table(("file", *heads), on_models),
            "costliest": Table(("model", "file", "id", "tokens"), costliest, align="lll"),
        },
    )


def _files(audits: Iterable[FileAudit]) -> Table:
    rows: list[Sequence[Value]] = []
    for audit in audits:
        fill, images = audit.fill.figures(), audit.images
        text, image = (_BAR * min(1.0, part.mean / (audit.length or 1)) for part in (audit.text, audit.image))
        rows.append(
            (
                audit.file,
                Cell(format_length(audit.length) if audit.length else "", key=audit.length),
                audit.examples,
                Cell(f"{fill.mean:.4f}", key=fill.mean),
                Cell(f"{fill.min:.4f}", key=fill.min),
                Cell(histogram(audit.fills), key=fill.mean),
                Cell(html("shares", _BAR, text, image), key=audit.image.mean),
                Cell(f"{images.mean:.1f} ± {images.deviation:.1f}", key=images.mean),
            )
        )
    return Table(("file", "L", "n", "fill", "min", "how full", "text and images", "images ± sd"), rows)


def _on_model(audit: FileAudit, model: Model) -> Cell:
    """Return what a file costs on a model. The cell is grey if no example was counted on the model, or if examples have
    too many images. Otherwise, it is red if examples overflow the window or are refused.
    """
    tally = audit.models[model.name]
    text, key = tokens_text(tally), tally.tokens.mean
    if tally.over_images or not tally.tokens.n:
        return Cell(text, look="na", key=key)
    if tally.over_window or tally.refused:
        return Cell(text, look="over", key=key)
    share = min(1.0, tally.tokens.most / (model.window or max(1.0, 4.0 * audit.length)))
    return Cell(text, key=key, ramp=f"{share:.2f}")
