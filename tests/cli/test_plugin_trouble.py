"""Plug-ins that cannot be used: installed, listed, asked for."""

import json
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest
from tiny import Ran, environment, in_one_process

PLUGINS = Path(__file__).parents[1] / "task"
PROBLEMS = {
    "absent": "ModuleNotFoundError: No module named 'broken_plugins_that_are_not_there'",
    "hidden": "<class 'broken_plugins.Hidden'>: 'needles' must be a method, as in every builder",
    "incomplete": "<class 'broken_plugins.Incomplete'> lacks draft, prompt, record, spec, which a builder needs",
    "lacking": "ModuleNotFoundError: No module named 'a_library_that_is_not_installed'",
    "stranger": "<class 'broken_plugins.Stranger'> is not a subclass of mmlongbench.task.builder.Builder",
    "quitting": "SystemExit: this plug-in wants another Python",
}


def install(folder: Path, package: str) -> Path:
    """Write what pip would write of a package."""
    source = PLUGINS / package
    project = tomllib.loads((source / "pyproject.toml").read_text("utf-8"))["project"]
    (module,) = source.glob("*.py")
    shutil.copy(module, folder)
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in found.items())
        for group, found in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("broken"), "broken")


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("twin"), "twin")


def run(site: Path, *commands: Sequence[object]) -> list[Ran]:
    """Run commands in a process that finds the packages of a folder."""
    return in_one_process(*commands, env=environment(PYTHONPATH=site, COLUMNS=300))


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which no build of a broken plug-in writes anything."""
    return tmp_path_factory.mktemp("refused")


@pytest.fixture(scope="module")
def ran(broken: Path, source: Path, finished: Path, refused: Path) -> dict[str, Ran]:
    """Commands with the broken plug-ins; a build is called by the plug-in that it uses."""
    commands: dict[str, Sequence[object]] = {
        **{
            name: ("build", source / "tiny.yaml", "--out", refused / name, "--set", f"builder={name}")
            for name in PROBLEMS
        },
        "audit": ("audit", finished, "-q"),
        "list": ("list", "--json"),
        "table": ("list",),
    }
    return dict(zip(commands, run(broken, *commands.values()), strict=True))


def test_list_shows_what_is_broken_with_its_cause_and_the_rest(ran: dict[str, Ran]) -> None:
    listed = ran["list"]
    assert listed.code == 0
    plugins = {(plugin["kind"], plugin["name"]): plugin for plugin in json.loads(listed.out)["plugins"]}
    for name, problem in PROBLEMS.items():
        assert problem in plugins["builder", name]["problem"]
        assert plugins["builder", name]["origin"] == "mmlongbench-broken"
    assert "has no attribute 'Nameless'" in plugins["reader", "nameless"]["problem"]
    assert plugins["sample", "lonely"]["problem"] == (
        "sample 'lonely' (broken_plugins:draw_nothing of mmlongbench-broken) is never drawn: no reader 'lonely' is "
        "installed"
    )
    assert not plugins["builder", "docvqa"]["problem"]
    table = ran["table"].out
    assert (
        "  lacking            BROKEN: builder 'lacking' (broken_plugins:Lacking of mmlongbench-broken) is bro" in table
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_build_of_a_broken_one_fails_with_one_line(name: str, ran: dict[str, Ran], refused: Path) -> None:
    failed = ran[name]
    assert failed.code == 2
    assert f"error: builder {name!r} (" in failed.err
    assert PROBLEMS[name] in failed.err
    assert failed.err.count("\n") == 1
    assert not (refused / name).exists()


def test_a_broken_plugin_does_not_hinder_a_build_with_others(ran: dict[str, Ran]) -> None:
    assert ran["audit"].code == 0


def test_two_of_one_name_are_an_error_that_names_both(twin: Path, source: Path, tmp_path: Path) -> None:
    build = ("build", source / "tiny.yaml", "--out", tmp_path / "out")
    failed, listed = run(twin, build, ("list", "--json"))
    said = (
        "two builders are called 'docvqa': builders.docvqa:DocVQA of mmlongbench and twin_plugin:DocVQA of "
        "mmlongbench-twin; uninstall one"
    )
    assert (failed.code, failed.err) == (2, f"error: {said}\n")
    plugins = json.loads(listed.out)["plugins"]
    assert [plugin["problem"] for plugin in plugins if plugin["name"] == "docvqa"] == [said, said]
