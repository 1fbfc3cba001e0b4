"""Every failure of Ray is one line: it is not installed, it does not start, or a process dies."""

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from tiny import Ran, command

REMEDY = "run the command again to continue"


class RayError(Exception):
    """As Ray has it."""


class RayTaskError(RayError):
    """As Ray has it."""


def fake(**functions: Any) -> Any:
    """A module with the functions of Ray that the engine uses."""
    ray: Any = ModuleType("ray")
    ray.exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)
    ray.remote = lambda **options: lambda function: SimpleNamespace(remote=lambda *arguments: arguments[1])
    ray.is_initialized = lambda: False
    ray.init = ray.shutdown = ray.cancel = lambda *arguments, **options: None
    ray.wait = lambda waiting, num_returns: (waiting[:1], waiting[1:])
    for name, function in functions.items():
        setattr(ray, name, function)
    return ray


def failing(error: Exception) -> Any:
    def fail(*arguments: Any, **options: Any) -> None:
        raise error

    return fail


def built(ray: Any, source: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> Ran:
    monkeypatch.setitem(sys.modules, "ray", ray)
    return command("build", source / "tiny.yaml", "--out", out, "-q", "--engine", "ray")


def test_ray_that_is_not_installed_is_named_with_its_extra(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = built(None, source, tmp_path / "out", monkeypatch)
    assert (ran.code, ran.err) == (2, 'error: --engine ray: Ray is not installed: pip install "mmlongbench[ray]"\n')


@pytest.mark.parametrize("words", ["", "\n", "the node died\nwith a long\ntrace"], ids=["none", "blank", "lines"])
@pytest.mark.parametrize("where", ["init", "wait", "get"])
def test_an_error_of_ray_is_one_line(
    where: str, words: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RuntimeError(words) if where == "init" else RayError(words)
    ran = built(fake(**{where: failing(error)}), source, tmp_path / "out", monkeypatch)
    assert (ran.code, ran.err.count("\n")) == (2, 1), ran.err
    assert ran.err.startswith("error: ")
    assert ("the node died" if "died" in words else type(error).__name__) in ran.err
    assert "trace" not in ran.err
    assert where == "init" or REMEDY in ran.err
