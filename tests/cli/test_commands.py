import importlib.metadata
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tiny import REJECTED, build, command, hashes, records, rejects

from mmlongbench.cli.main import EXIT_CODES, cli

CONTEXT = click.Context(cli)
COMMANDS = sorted(cli.list_commands(CONTEXT))
HEAVY = ("pymupdf", "datasets", "tokenizers", "pyarrow", "numpy", "pandas", "PIL", "torch", "transformers")


def test_the_help_lists_every_command_and_the_exit_codes() -> None:
    for asked in ("--help", "-h"):
        shown = command(asked)
        assert shown.code == 0
        for name in COMMANDS:
            assert f"\n  {name} " in shown.out
        for code in ("0 ", "1 ", "2 ", "130 "):
            assert f"\n    {code}" in shown.out
        assert max(map(len, shown.out.splitlines())) <= 80
        groups = re.findall(r"^(\w+):\n(?=  [\w-])", shown.out, re.MULTILINE)
        assert groups == ["Options", "Make", "Look", "Trust", "Models", "Share"]
    assert {"build", "audit", "list"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_and_option_has_help(name: str) -> None:
    shown = command(name, "--help")
    assert shown.code == 0
    assert shown.out.startswith(f"Usage: mmlongbench {name} ")
    command_named = cli.get_command(CONTEXT, name)
    assert command_named is not None
    assert command_named.help
    for parameter in getattr(command_named, "own", command_named).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            assert parameter.opts[0] in shown.out
        else:
            assert str(parameter.name).upper() in str(command_named.help)


def test_without_a_command_the_help_is_shown_and_it_is_an_error() -> None:
    shown = command()
    assert shown.code == 2
    assert "Usage: mmlongbench" in shown.out + shown.err


def test_the_version_is_that_of_the_distribution() -> None:
    assert importlib.metadata.version("mmlongbench") in command("--version").out


@pytest.mark.parametrize(
    "args",
    [
        ["nothing"],
        ["build"],
        ["build", "quickstart"],
        ["build", "quickstart", "--out", "x", "--workers", "0"],
        ["build", "quickstart", "--out", "x", "--limit", "0"],
        ["build", "quickstart", "--out", "x", "--nothing"],
        ["audit", "/nowhere/at/all"],
    ],
)
def test_wrong_arguments_exit_with_2_and_say_how_it_is_used(args: list[str]) -> None:
    refused = command(*args)
    assert refused.code == 2
    assert "Error: " in refused.err
    assert not refused.out


def test_exit_codes_are_what_the_help_says(source: Path, finished: Path, tmp_path: Path) -> None:
    assert build(source, tmp_path / "good", "--limit", "1").code == 0
    assert command("audit", finished).code == 0
    assert build(source, tmp_path / "strict", "--strict").code == 1
    shutil.copytree(finished, tmp_path / "bad")
    (tmp_path / "bad" / "mmlb_data" / "documentQA" / "mmlongdoc_K1.jsonl").unlink()
    assert command("audit", tmp_path / "bad").code == 1
    assert command("build", "no such manifest", "--out", tmp_path / "x").code == 2
    assert command("audit", tmp_path).code == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mmlongbench.building.planning.plan_datasets", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        stopped = build(source, tmp_path / "stopped")
    assert (stopped.code, stopped.err.strip()) == (
        130,
        "interrupted; completed files are intact, run the same command to continue",
    )
    assert all(f"\n  {code} " in EXIT_CODES for code in (0, 1, 2, 130))


def test_an_error_is_one_line_and_debug_shows_where_it_came_from(tmp_path: Path) -> None:
    refused = command("audit", tmp_path)
    assert refused.err.startswith(f"error: {tmp_path}: no build.lock.json: this is no release of mmlongbench")
    assert refused.err.count("\n") == 1
    with pytest.raises(Exception, match=r"no build\.lock\.json"):
        command("--debug", "audit", tmp_path)


def test_build_prints_tables_one_json_object_or_nothing(source: Path, finished: Path, tmp_path: Path) -> None:
    told = build(source, tmp_path / "a")
    for part in ("11 read, 6 kept, 0 not sampled", "rejected 2: answer-page-out-of-range", "1K", "is complete"):
        assert part in told.out
    json_told = build(source, tmp_path / "b", "--json")
    answer = json.loads(json_told.out)
    (lost,) = answer.pop("shortfalls")
    assert (lost["dataset"], lost["kept"], lost["of"], len(lost["first"])) == ("mmlongdoc", 6, 11, 3)
    assert answer == {
        "out": str(tmp_path / "b"),
        "datasets": json.loads((finished / "build.lock.json").read_text("utf-8"))["datasets"],
        "was_complete": False,
    }
    quiet = build(source, tmp_path / "c", "-q")
    assert (quiet.out, quiet.err) == ("", "")
    assert told.err.startswith("warning: mmlongdoc: kept 6 of 11 questions\n  rejected 2: answer-page-out-of-range\n")
    assert json_told.err == ""
    assert hashes(tmp_path / "a") == hashes(tmp_path / "b") == hashes(tmp_path / "c")


def test_lengths_that_are_given_twice_are_joined(source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "out", "--lengths", "1K", "--lengths", "2K", "-q")
    assert records(tmp_path / "out", "1K")
    assert records(tmp_path / "out", "2K")
    planned = json.loads(command("plan", source / "tiny.yaml", "--lengths", "1K", "--lengths", "4K", "--json").out)
    assert [cell["length"] for cell in planned["cells"]] == [1024, 4096]


def test_a_printed_command_can_be_pasted_where_a_folder_has_a_blank(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "my release"
    printed = re.search("`(mmlongbench audit .*?)`", build(source, out).out)
    assert printed
    assert shlex.split(printed[1]) == ["mmlongbench", "audit", str(out)]


def test_a_plan_names_each_rejected_row_as_a_build_does_and_says_how_answers_were_read(
    source: Path, finished: Path
) -> None:
    told, found = (command("plan", source / "tiny.yaml", *more).out for more in ((), ("--json",)))
    lost = {line["id"]: line for line in rejects(finished) if line["id"] in REJECTED}
    for id in REJECTED:
        if id != "mmlongdoc_9":  # a plan makes no example, so that it cannot be too long
            (named,) = (line for line in told.splitlines() if line.strip().startswith(f"{id}: "))
            assert lost[id]["file"] in named
            assert lost[id]["found"] in named
            assert named.strip() in found
    assert "answer read as" in told


def test_audit_prints_a_table_a_json_object_a_file_or_nothing(finished: Path) -> None:
    told = command("audit", finished)
    assert "documentQA/mmlongdoc_K1.jsonl" in told.out
    quiet = command("audit", finished, "--quiet")
    assert (quiet.out, quiet.err) == ("", "")
    first, second = map(json.loads, command("audit", finished, "--json").out.splitlines())
    assert (first["file"], second["file"]) == ("documentQA/mmlongdoc_K1.jsonl", "documentQA/mmlongdoc_K2.jsonl")
    lengths = [record["length"] for record in records(finished, "1K")]
    assert first["fill"]["max"] == (max(lengths) + 64) / 1024
    assert first["fill"]["mean"] == pytest.approx((sum(lengths) / len(lengths) + 64) / 1024)
    assert (first["length"], first["examples"], first["problems"]) == (1024, 6, [])
    assert first["images"] == {"mean": 4.0, "sd": 0.0, "min": 4, "max": 4}
    assert first["image"]["mean"] == 4 * 14 * 14


def test_list_shows_builders_readers_samples_and_manifests() -> None:
    shown = command("list").out
    heads = ("builders\n", "readers\n", "samples\n", "manifests\n")
    for part in (*heads, "  docvqa ", "  mmlongbench_doc ", "  quickstart "):
        assert part in shown
    assert "an output with neither word is a refusal. [official, paper, ours] (mmlongbench)" in shown
    listed = json.loads(command("list", "--json").out)
    assert {("builder", "docvqa"), ("reader", "mmlongbench_doc"), ("sample", "mmlongbench_doc")} <= {
        (plugin["kind"], plugin["name"]) for plugin in listed["plugins"] if plugin["summary"]
    }
    assert {"quickstart", "mmlongdoc"} <= set(listed["manifests"])


@pytest.mark.parametrize(
    "code",
    [
        "import mmlongbench",
        "import builders.docvqa",
        "import tokenization",
        "from mmlongbench.cli import main\nsys.argv[1:] = ['--help']\ntry: main()\nexcept SystemExit: pass",
        "from mmlongbench.cli.main import cli\nfor name in cli.list_commands(None):\n"
        "    if name not in ('report', 'shortcuts'): cli.get_command(None, name)",
    ],
    ids=["mmlongbench", "builders", "tokenization", "help", "commands"],
)
def test_what_is_slow_is_imported_where_it_is_used(code: str) -> None:
    script = f"import sys\n{code}\nprint([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_help_imports_no_command() -> None:
    code = "from mmlongbench.cli import main\nsys.argv[1:] = ['--help']\ntry: main()\nexcept SystemExit: pass"
    heavy = ("pydantic", "rich", "yaml", "tokenization")
    script = f"import sys\n{code}\nprint([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
