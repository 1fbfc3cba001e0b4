"""The audit as one HTML page. It needs no network and no other files, so it works from `file://`. Its only script sorts
tables.
"""

from collections.abc import Iterable, Iterator, Sequence

from mmlongbench.lengths import format_length
from mmlongbench.release.example_cost import Model
from mmlongbench.release.file_audit import FileAudit, tokens_text
from mmlongbench.web.charts import strip
from mmlongbench.web.kit import Section, render
from mmlongbench.web.tables import Cell

BAR = 160
"""The width in pixels of a bar that represents a length."""


def audit_page(title: str, audits: Sequence[FileAudit], models: Sequence[Model], notes: Iterable[str]) -> Iterator[str]:
    """Yield the page of an audit in pieces; `notes` are sentences at its top, such as how texts were counted."""
    counted = [audit for audit in audits if audit.examples]
    costliest = [
        (model.name, audit.file, id, tokens)
        for model in models
        for audit in counted
        for id, tokens in audit.models[model.name].worst
        if audit.models[model.name].over_window
    ]
    return render(
        "audit.html",
        title=title,
        sections=list(_sections(audits, models, has_costliest=bool(costliest))),
        audits=audits,
        counted=counted,
        models=models,
        notes=list(notes),
        costliest=costliest,
        format_length=format_length,
        strip=strip,
        bar=bar,
        bar_width=BAR,
        model_heads=[(f"{model.name}{_window(model)}", False) for model in models],
        model_cells=model_cells,
    )


def _sections(audits: Sequence[FileAudit], models: Sequence[Model], *, has_costliest: bool) -> Iterator[Section]:
    """Yield the sections that have content."""
    if any(audit.problems for audit in audits):
        yield Section("problems", "Problems")
    if any(audit.remarks for audit in audits):
        yield Section("remarks", "Noticed")
    yield Section("files", "Files")
    if models:
        yield Section("models", "On models")
    if has_costliest:
        yield Section("costliest", "The costliest examples of files that overflow")


def _window(model: Model) -> str:
    return f" ≤ {model.window:,}" if model.window else ""


def bar(audit: FileAudit) -> tuple[float, float]:
    """Return the widths of a file's mean text tokens and mean image tokens in a bar that represents the length."""
    text, image = (BAR * min(1.0, part.mean / (audit.length or 1)) for part in (audit.text, audit.image))
    return text, image


def model_cells(audit: FileAudit, models: Sequence[Model]) -> list[Cell]:
    """Return a cell for each model, with the cost of a file. The cell is grey if no example was counted on the
    model, or if examples have too many images. Otherwise, it is red if examples overflow the window or are refused.
    """
    return [_model_cell(audit, model) for model in models]


def _model_cell(audit: FileAudit, model: Model) -> Cell:
    tally = audit.models[model.name]
    text, key = tokens_text(tally), str(tally.tokens.mean)
    if tally.over_images or not tally.tokens.n:
        return Cell(text, look="na", key=key)
    if tally.over_window or tally.refused:
        return Cell(text, look="over", key=key)
    share = min(1.0, tally.tokens.most / (model.window or max(1.0, 4.0 * audit.length)))
    return Cell(text, f"{share:.2f}", key=key)
