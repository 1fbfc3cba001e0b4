"""Plug-ins that cannot be used, as real packages: installed, listed, asked for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny import Ran, environment, mmlongbench

pytestmark = pytest.mark.slow

PLUGINS = Path(__file__).parents[1] / "task"
PIP = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target")
PROBLEMS = {
    "absent": "ModuleNotFoundError: No module named 'broken_plugins_that_are_not_there'",
    "hidden": "<class 'broken_plugins.Hidden'>: 'needles' must be a method, as in every builder",
    "incomplete": "<class 'broken_plugins.Incomplete'> lacks draft, prompt, record, spec, which a builder needs",
    "lacking": "ModuleNotFoundError: No module named 'a_library_that_is_not_installed'",
    "stranger": "<class 'broken_plugins.Stranger'> is not a subclass of mmlongbench.task.builder.Builder",
    "quitting": "SystemExit: this plug-in wants another Python",
}


def install(folder: Path, package: str) -> Path:
    subprocess.run([sys.executable, *PIP, str(folder), str(PLUGINS / package)], check=True)
    return folder


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("broken"), "broken")


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install(tmp_path_factory.mktemp("twin"), "twin")


def run(site: Path, *args: object) -> Ran:
    return mmlongbench(*args, env=environment(PYTHONPATH=site, COLUMNS=300))


def test_list_shows_what_is_broken_with_its_cause_and_the_rest(broken: Path) -> None:
    listed = run(broken, "list", "--json")
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
    table = run(broken, "list").out
    assert (
        "  lacking            BROKEN: builder 'lacking' (broken_plugins:Lacking of mmlongbench-broken) is bro" in table
    )


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_build_of_a_broken_one_fails_with_one_line(name: str, broken: Path, source: Path, tmp_path: Path) -> None:
    failed = run(broken, "build", source / "tiny.yaml", "--out", tmp_path / "out", "--set", f"builder={name}")
    assert failed.code == 2
    assert f"error: builder {name!r} (" in failed.err
    assert PROBLEMS[name] in failed.err
    assert failed.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_broken_plugin_does_not_hinder_a_build_with_others(
    broken: Path, source: Path, finished: Path, tmp_path: Path
) -> None:
    assert run(broken, "audit", finished, "-q").code == 0


def test_two_of_one_name_are_an_error_that_names_both(twin: Path, source: Path, tmp_path: Path) -> None:
    failed = run(twin, "build", source / "tiny.yaml", "--out", tmp_path / "out")
    said = (
        "two builders are called 'docvqa': builders.docvqa:DocVQA of mmlongbench and twin_plugin:DocVQA of "
        "mmlongbench-twin; uninstall one"
    )
    assert (failed.code, failed.err) == (2, f"error: {said}\n")
    plugins = json.loads(run(twin, "list", "--json").out)["plugins"]
    assert [plugin["problem"] for plugin in plugins if plugin["name"] == "docvqa"] == [said, said]
