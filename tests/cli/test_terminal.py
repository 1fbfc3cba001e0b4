"""What a terminal shows: tables without cut numbers, errors of the system in one line, groups that are commands."""

import errno
import io
import re
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from mmlongbench.cli.audit import show_audit
from mmlongbench.cli.console import error_line, print_table, say_wrapped
from mmlongbench.cli.options import options_of
from mmlongbench.cli.questions import DefaultGroup
from mmlongbench.cli.show import fold
from mmlongbench.errors import BuildError
from mmlongbench.release.file_audit import FileAudit
from mmlongbench.table import Table

# Tables and texts.

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


class TerminalText(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "columns", "lines"),
    [
        (TerminalText, "20", ["  name  one two", "        three", "        a/path/that/is/longer"]),
        (TerminalText, "80", ["  name  one two three a/path/that/is/longer"]),
        (io.StringIO, "20", ["  name  one two three a/path/that/is/longer"]),
    ],
)
def test_a_row_of_text_is_as_wide_as_the_terminal(
    stream: type[io.StringIO], columns: str, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    with redirect_stdout(stream()) as out:
        say_wrapped("one two three a/path/that/is/longer", "  name  ", " " * 8)
    assert out.getvalue().splitlines() == lines


@pytest.mark.parametrize("most", [40, 60, 100, 400])
def test_a_folded_text_counts_what_is_left_out(most: int) -> None:
    text = " ".join(f"word{number}" for number in range(200))
    folded = fold(text, most)
    assert len(folded) <= most
    first, count, last = folded.replace(" … ", "…").split("…")
    assert text.startswith(first)
    assert text.endswith(last)
    assert len(first) + len(last) + int(count.split()[0].replace(",", "")) == len(text)
    assert fold("short", most) == "short"


# Errors of the system.


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left", "/a/b"), "/a/b: No space left; no file is half-written"),
        (OSError(errno.ENOSPC, "No space left"), "standard output, or a file in the output folder or in "),
        (OSError(errno.EMFILE, "Too many open files", "/a/b"), "/a/b: Too many open files; allow more (ulimit -n)"),
        (OSError(errno.EMFILE, "Too many open files"), "Too many open files; allow more (ulimit -n)"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory ran out; no file is half-written"),
        (MemoryError(), "memory ran out; no file is half-written"),
        (RuntimeError("can't start new thread"), "memory ran out; no file is half-written"),
        (ImportError("libx.so: failed to map segment from shared object"), "memory ran out; no file"),
        (BuildError("what it says"), "what it says"),
    ],
    ids=["full", "full-unnamed", "open", "open-unnamed", "enomem", "memory", "thread", "import", "own"],
)
def test_an_error_of_the_system_is_one_line(error: Exception, said: str) -> None:
    assert error_line(error).startswith(said)


def test_memory_that_ran_out_below_another_error_is_found_and_a_mistake_of_the_engine_keeps_its_traceback() -> None:
    error = ValueError("of a library")
    assert error_line(error) == error_line(RuntimeError("a mistake")) == error_line(KeyError("a mistake")) == ""
    error.__cause__ = MemoryError()
    assert error_line(error).startswith("memory ran out")


# A group that is a command itself.


@click.group()
def program() -> None:
    """A program with one such group."""


@click.group(cls=DefaultGroup)
def make() -> None:
    """Replaced by the text of the own command."""


@make.of_its_own
@click.argument("folder")
@click.option("--from", "kind", required=True, help="What to make it from.")
def own(folder: str, kind: str) -> None:
    """Make something of FOLDER."""
    click.echo(f"made {folder} from {kind}")


program.add_command(make)


@make.command()
@click.argument("folder")
@click.option("--review", is_flag=True, help="For people.")
def export(folder: str, review: bool) -> None:
    """Export FOLDER."""
    click.echo(f"exported {folder} {review}")


def run(*args: str) -> Result:
    return CliRunner().invoke(program, args)


@pytest.mark.parametrize(
    ("args", "printed"),
    [
        (("docs", "--from", "layer"), "made docs from layer\n"),
        (("--from", "layer", "docs"), "made docs from layer\n"),
        (("./export", "--from", "layer"), "made ./export from layer\n"),
        (("--from", "layer", "export"), "made export from layer\n"),
        (("--from", "export", "docs"), "made docs from export\n"),
        (("--from=layer", "--", "-docs"), "made -docs from layer\n"),
        (("--from", "layer", "--", "-docs"), "made -docs from layer\n"),
        (("--from=layer", "--", "export"), "made export from layer\n"),
        (("export", "docs", "--review"), "exported docs True\n"),
        (("export", "export"), "exported export False\n"),
    ],
)
def test_only_a_first_argument_that_is_the_name_of_a_subcommand_runs_one(args: tuple[str, ...], printed: str) -> None:
    done = run("make", *args)
    assert (done.exit_code, done.output) == (0, printed)


@pytest.mark.parametrize("args", [("--help",), ()])
def test_the_help_shows_the_own_command_and_the_subcommands(args: tuple[str, ...]) -> None:
    shown = run("make", *args).output
    assert shown.startswith("Usage: program make [OPTIONS] FOLDER\n")
    for text in ("Make something of FOLDER.", "--from TEXT", "What to make it from.", "export  Export FOLDER."):
        assert text in shown


def test_help_after_other_arguments_is_that_of_the_own_command() -> None:
    shown = run("make", "docs", "--help")
    assert shown.exit_code == 0
    assert shown.output.startswith("Usage: program make [OPTIONS] FOLDER\n")


def test_an_error_names_the_group_as_the_user_typed_it() -> None:
    refused = run("make", "docs")
    assert refused.exit_code == 2
    assert "Try 'program make --help'" in refused.output
    assert "Missing option '--from'" in refused.output


# Tables as values, and options of dataclasses.


def drawn(table: Table, monkeypatch: pytest.MonkeyPatch, **how: Any) -> list[str]:
    monkeypatch.setenv("TTY_COMPATIBLE", "0")
    with redirect_stdout(io.StringIO()) as out:
        print_table(table, **how)
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_table_has_counts_headings_and_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("first",), ("  a", 1234, 0.5), ("  b", 5, "–")]
    found = drawn(Table(("", "n", "mean"), rows, "scores", ["a note"]), monkeypatch)
    assert found == ["scores", "           n  mean", "first", "  a    1,234  0.50", "  b        5     –", "a note"]


def test_texts_become_narrow_before_numbers_and_numbers_are_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    table = Table(("rule", "why", "n"), [("a rule", "a long text about it", "12.5 ±3.1")], align="Ll")
    assert drawn(table, monkeypatch, usual=30) == [
        "rule    why                  n",
        "a rule  a long text  12.5 ±3.1",
        "        about it",
    ]
    assert drawn(table, monkeypatch, usual=20, folds_numbers=True)[1].split()[-1] == "12.5"
    assert "12.5 ±3.1" in "\n".join(drawn(table, monkeypatch, usual=1))


@dataclass(frozen=True)
class Options:
    name: str
    sizes: tuple[int, ...] = ()
    span: tuple[float, float] | None = None
    share: float = 0.0
    most: int | None = None
    is_new: bool = False
    file: Path | None = None


@click.command()
@options_of(Options, "given", prefix="--x-", without=("file",), is_new={"option": "--new"}, share={"metavar": "SHARE"})
def dressed(given: Options) -> None:
    """Print the options."""
    click.echo(repr(given))


def test_options_are_made_of_the_fields_of_a_dataclass() -> None:
    words = ["--x-name", "n", "--x-size", "1", "--x-size", "2", "--x-span", "0", "2.5", "--new"]
    done = CliRunner().invoke(dressed, words)
    assert done.output == f"{Options('n', (1, 2), (0.0, 2.5), is_new=True)!r}\n"
    assert "Missing option '--x-name'" in CliRunner().invoke(dressed, []).output
    assert "x>=1" in CliRunner().invoke(dressed, ["--x-name", "n", "--x-most", "0"]).output
    helped = CliRunner().invoke(dressed, ["--help"]).output
    assert "--x-share SHARE" in helped
    assert "[default: 0.0; x>=0]" in helped
    assert "--x-file" not in helped
