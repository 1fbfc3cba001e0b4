"""The audit as one page: no network, no image files, works from `file://`; everything from data is escaped."""

from collections.abc import Iterable, Sequence
from html import escape

from mmlongbench.lengths import format_length
from mmlongbench.release.findings import BINS, FileAudit, ModelTally
from mmlongbench.release.models import Model

_STYLE = """
:root{color-scheme:light;--ink:#1c2733;--dim:#66737f;--line:#dde3e8;--text:#3d6b99;--image:#d99a3d;--bad:#b3261e}
body{font:14px/1.45 system-ui,sans-serif;color:var(--ink);margin:2rem auto;max-width:82rem;padding:0 1rem}
h1{font-size:1.35rem;margin:0 0 .2rem}h2{font-size:1.05rem;margin:2rem 0 .4rem}p{margin:.2rem 0;color:var(--dim)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .5rem;border-bottom:1px solid var(--line);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;overflow-wrap:anywhere}
thead th{position:sticky;top:0;background:#fff;vertical-align:bottom}
th button{all:unset;cursor:pointer;font-weight:600}th button:focus-visible{outline:2px solid var(--text)}
th[aria-sort=ascending] button::after{content:" ▲"}th[aria-sort=descending] button::after{content:" ▼"}
td.over{background:var(--bad)!important;color:#fff;font-weight:600}td.na{color:var(--dim);background:#f4f4f4}
svg{display:inline-block;vertical-align:middle}
.bad{color:var(--bad)}.key span{display:inline-block;width:.8em;height:.8em;margin:0 .3em 0 1em}
@media(max-width:60rem){body{overflow-x:auto}}
"""
_SCRIPT = """
for (const button of document.querySelectorAll("th button")) button.addEventListener("click", () => {
  const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
  const place = [...head.parentNode.children].indexOf(head);
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const value = row => { const key = row.children[place].dataset.key; return isNaN(key) ? key : Number(key); };
  const order = (a, b) => { const x = value(a), y = value(b); return x < y ? -1 : x > y ? 1 : 0; };
  body.append(...[...body.rows].sort((a, b) => up ? order(a, b) : order(b, a)));
});
"""


def page(title: str, audits: Sequence[FileAudit], models: Sequence[Model], notes: Iterable[str]) -> str:
    """The whole page; `notes` are sentences for its head, such as what texts were counted by."""
    counted = [audit for audit in audits if audit.examples]
    wrong = sum(audit.problems.total() for audit in audits)
    state = f'<p class="bad">{wrong:,} problems</p>' if wrong else "<p>no problems</p>"
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    total = f"{sum(audit.examples for audit in counted):,} examples in {len(counted):,} files"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head><body>'
        f"<h1>{escape(title)}</h1><p>{total}</p>{state}{said}"
        f"{_problems(audits)}{_remarks(audits)}{_files(counted)}{_heat(counted, models)}{_worst(counted, models)}"
        f"<script>{_SCRIPT}</script></body></html>\n"
    )


def _problems(audits: Sequence[FileAudit]) -> str:
    rows = [
        [_cell(audit.file), _cell(kind), _cell(f"{number:,}", number), _cell(audit.first[kind])]
        for audit in audits
        for kind, number in audit.problems.items()
    ]
    return f"<h2>Problems</h2>{_table(['file', 'problem', 'times', 'first'], rows)}" if rows else ""


def _remarks(audits: Sequence[FileAudit]) -> str:
    """What builders noticed about the records of each file."""
    rows = [
        [_cell(audit.file), _cell(subject), *(_cell(f"{n:,}", n) for n in (tally.examples, number)), _cell(fault)]
        for audit in audits
        for subject, tally in audit.remarks.items()
        for fault, number in (tally.faults or {"all right": tally.examples}).items()
    ]
    heads = ["file", "about", "examples", "of these", "found"]
    return f"<h2>Noticed</h2>{_table(heads, rows)}" if rows else ""


def _files(audits: Sequence[FileAudit]) -> str:
    """A strip with the histogram of fill, a bar of text and images, and the numbers."""
    heads = ["file", "L", "n", "fill", "min", "how full", "text and images", "images ± sd"]
    rows = []
    for audit in audits:
        fill = audit.fill.figures()
        rows.append(
            [
                _cell(audit.file),
                _cell(format_length(audit.length) if audit.length else "", audit.length),
                _cell(f"{audit.examples:,}", audit.examples),
                _cell(f"{fill.mean:.4f}", fill.mean),
                _cell(f"{fill.min:.4f}", fill.min),
                f'<td data-key="{fill.mean}">{_strip(audit.fills.counts)}</td>',
                f'<td data-key="{audit.image.mean}">{_bar(audit)}</td>',
                _cell(f"{audit.images.mean:.1f} ± {audit.images.deviation:.1f}", audit.images.mean),
            ]
        )
    key = (
        '<p class="key">a bar is the length L:<span style="background:var(--text)"></span>text'
        '<span style="background:var(--image)"></span>images; a strip counts examples by fill, 0 to 1 and over</p>'
    )
    return f"<h2>Files</h2>{key}{_table(heads, rows)}"


def _heat(audits: Sequence[FileAudit], models: Sequence[Model]) -> str:
    """Mean tokens of an example, models by lengths; what overflows a window is red."""
    if not models:
        return ""
    heads = ["file", *(f"{model.name}{_window(model)}" for model in models)]
    rows = [[_cell(audit.file), *(_heat_cell(audit, model) for model in models)] for audit in audits]
    note = (
        "<p>Mean tokens of an example. Red: some examples are over the window, with their share. n/a: some hold more "
        "images than a request may, so the file cannot be run as it is. Refused: the model takes no image of that "
        "size.</p>"
    )
    return f"<h2>On models</h2>{note}{_table(heads, rows)}"


def _heat_cell(audit: FileAudit, model: Model) -> str:
    tally = audit.models[model.name]
    said, mean = heat_text(audit, tally), tally.tokens.mean
    if tally.over_images or not tally.tokens.n:
        return f'<td class="na" data-key="{mean}">{escape(said)}</td>'
    if tally.over_window or tally.refused:
        return f'<td class="over" data-key="{mean}">{escape(said)}</td>'
    share = min(1.0, tally.tokens.most / (model.window or max(1.0, 4.0 * audit.length)))
    return f'<td data-key="{mean}" style="background:hsl(38 80% {97 - 30 * share:.0f}%)">{escape(said)}</td>'


def heat_text(audit: FileAudit, tally: ModelTally) -> str:
    """What a table says of a file on a model: mean tokens, the share that is over, or n/a."""
    if tally.over_images:
        return "n/a"
    if not tally.tokens.n:
        return "refused" if tally.refused else "not counted"
    counted = tally.tokens.n + tally.refused
    over = f" ({tally.over_window / counted:.0%} over)" if tally.over_window else ""
    return f"{short(tally.tokens.mean)}{over}{f' ({tally.refused} refused)' if tally.refused else ''}"


def short(tokens: float) -> str:
    """A number of tokens for a narrow column.

    >>> short(890), short(7_540), short(2_357_953)
    ('890', '7.5K', '2,358K')
    """
    if tokens < 1000:
        return f"{tokens:.0f}"
    return f"{tokens / 1000:,.1f}K" if tokens < 100_000 else f"{tokens / 1000:,.0f}K"


def _window(model: Model) -> str:
    return f" ≤ {model.window:,}" if model.window else ""


def _worst(audits: Sequence[FileAudit], models: Sequence[Model]) -> str:
    rows = [
        [_cell(model.name), _cell(audit.file), _cell(id), _cell(f"{tokens:,}", tokens)]
        for model in models
        for audit in audits
        for id, tokens in audit.models[model.name].worst
        if audit.models[model.name].over_window
    ]
    heads = ["model", "file", "id", "tokens"]
    return f"<h2>The dearest examples of files that overflow</h2>{_table(heads, rows)}" if rows else ""


def _strip(counts: Sequence[int]) -> str:
    """A histogram: one column a bin, as high as its share of the largest."""
    top = max(counts, default=0) or 1
    bars = "".join(
        f'<rect x="{place * 6}" y="{18 - 18 * count / top:.1f}" width="5" height="{18 * count / top:.1f}" '
        f'fill="var(--{"bad" if place == BINS else "text"})"/>'
        for place, count in enumerate(counts)
        if count
    )
    width = 6 * len(counts)
    ground = f'<line x1="0" x2="{width}" y1="18.5" y2="18.5" stroke="#bbb"/>'
    return f'<svg width="{width}" height="19" role="img">{ground}{bars}</svg>'


def _bar(audit: FileAudit) -> str:
    """Text and images as shares of the length."""
    length = audit.length or 1
    text, image = (160 * min(1.0, part.mean / length) for part in (audit.text, audit.image))
    return (
        '<svg width="162" height="14" role="img"><rect width="161" height="13" x=".5" y=".5" fill="none" '
        f'stroke="#bbb"/><rect x="1" y="1" width="{text:.1f}" height="12" fill="var(--text)"/>'
        f'<rect x="{1 + text:.1f}" y="1" width="{image:.1f}" height="12" fill="var(--image)"/></svg>'
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f'<th scope="col"><button type="button">{escape(text)}</button></th>' for text in heads)
    body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(text: str, key: float | str | None = None) -> str:
    return f'<td data-key="{escape(str(text if key is None else key))}">{escape(text)}</td>'
