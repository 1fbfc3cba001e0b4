"""Tables for people: no number is cut, however narrow the terminal and however long the contexts."""

import io
import re
from contextlib import redirect_stdout

import pytest

from mmlongbench.cli.tables import show_audit
from mmlongbench.release.findings import FileAudit

MILLION = 1_048_576
FILES = (
    ("documentQA/mmlongdoc_with_a_name_that_is_rather_long_K1024.jsonl", 4500, MILLION - 256.0, 10_485.0, "1,048,320"),
    ("vrag/infoseek_K1024_dep3.jsonl", 99_999, MILLION - 1.0, 2.5, "1,048,575"),
)


def audits() -> list[FileAudit]:
    found = []
    for file, examples, tokens, images, _ in FILES:
        audit = FileAudit(file, MILLION, examples)
        for spread in (audit.text, audit.image):
            spread.add(tokens)
        for number in (images, images + 2_000):
            audit.images.add(number)
        for fill in (0.8765, 0.9876):
            audit.fill.add(fill)
        audit.problems["over its length"] = 1234
        found.append(audit)
    return found


def shown(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name in ("COLUMNS", "FORCE_COLOR", "TERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with redirect_stdout(io.StringIO()) as out:
        show_audit(audits())
    return re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())


def numbers() -> list[str]:
    fills = [f"{fill:.4f}" for fill in (0.8765, 0.9876, (0.8765 + 0.9876) / 2)]
    return [*fills, "1,048,320", "1,048,575", "11485.0 ± 1000.0", "1002.5 ± 1000.0", "4,500", "99,999", "1234"]


@pytest.mark.parametrize("columns", ["80", "40", "100", "300"])
def test_every_number_stands_in_the_table_of_a_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = shown(monkeypatch, TTY_COMPATIBLE="1", TERM="xterm", COLUMNS=columns)
    for number in numbers():
        assert number in table, number
    assert "…" not in table
    if int(columns) >= 80:
        assert max(map(len, table.splitlines())) <= int(columns)


@pytest.mark.parametrize("columns", ["80", "20", ""])
def test_nothing_is_cut_or_folded_where_there_is_no_terminal(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = shown(monkeypatch, **({"COLUMNS": columns} if columns else {}))
    for text in (*numbers(), *(file for file, *_ in FILES)):
        assert text in table, text
    lines = [line.split() for line in table.splitlines() if ".jsonl" in line]
    assert [(line[0], line[1], line[5]) for line in lines] == [
        (file, f"{examples:,}", tokens) for file, examples, _, _, tokens in FILES
    ]
