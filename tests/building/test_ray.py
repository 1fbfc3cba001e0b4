"""The Ray engine: the same bytes on a cluster of two nodes, and every failure of Ray is one line."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from halted import refused
from line_task import write
from needs import library
from tiny import Ran, command, hashes, leftovers

import mmlongbench as mm
from mmlongbench.building.ray_executor import RayExecutor
from mmlongbench.io.progress import Progress


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of two nodes of one CPU each."""
    library("ray", "ray")
    import ray
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 1024 * 1024}
    started = Cluster(initialize_head=True, head_node_args=node)
    started.add_node(num_cpus=1, object_store_memory=80 * 1024 * 1024)
    yield started.address
    ray.shutdown()
    started.shutdown()


@pytest.fixture
def connected(cluster: str) -> Iterator[None]:
    """A connection that stays open, as in a program that builds twice: the workers of both builds are the same."""
    import ray

    ray.init(address=cluster, log_to_driver=False)
    yield
    ray.shutdown()


def on(cluster: str, manifest: Path, out: object, *args: object) -> Ran:
    return command("build", manifest, "--out", out, "-q", "--engine", "ray", "--ray-address", cluster, *args)


@pytest.mark.rare
@pytest.mark.usefixtures("connected")
def test_both_nodes_give_the_bytes_of_one_process_and_another_build_may_follow_in_the_same_folder(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    """Workers outlive a build: what they know of the first must not be in the second."""
    out, other = tmp_path / "out", {"seed": 7}
    mm.build(source / "tiny.yaml", tmp_path / "whole", overrides=other)
    for overrides, expected in (({}, finished), (other, tmp_path / "whole")):
        executor = RayExecutor(Progress(is_shown=False))
        mm.build(source / "tiny.yaml", out, overrides=overrides, executor=executor)
        assert len(executor.nodes) == 2
        assert hashes(out) == hashes(expected)
        assert not leftovers(out)
        shutil.rmtree(out)


@pytest.mark.rare
def test_an_error_of_a_shard_is_the_same_line_as_elsewhere(cluster: str, source: Path, tmp_path: Path) -> None:
    there = on(cluster, source / "tiny.yaml", tmp_path / "out", "--strict")
    here = command("build", source / "tiny.yaml", "--out", tmp_path / "here", "--strict", "-q")
    assert (there.code, there.err) == (here.code, here.err) == (1, here.err)


@pytest.mark.rare
def test_nodes_that_share_nothing_but_a_url_give_the_same_bytes_and_images(
    cluster: str, source: Path, finished: Path, tmp_path: Path
) -> None:
    assert on(cluster, source / "tiny.yaml", f"file://{tmp_path}/out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    assert [*(tmp_path / "out").rglob("*.jpg")]


@pytest.mark.rare
def test_nodes_that_share_nothing_but_a_url_get_task_files(cluster: str, tmp_path: Path) -> None:
    manifest = write(tmp_path / "source") / "lines.yaml"
    note = "note: the code of lines.py runs, because the manifest names it\n"
    assert command("build", manifest, "--out", tmp_path / "here", "--workers", 1, "-q").err == note
    assert on(cluster, manifest, f"file://{tmp_path}/lines").err == note
    assert hashes(tmp_path / "lines") == hashes(tmp_path / "here")


def test_options_of_one_engine_are_refused_for_the_other(source: Path, tmp_path: Path) -> None:
    words = ("build", source / "tiny.yaml", "--out", tmp_path / "out")
    for more, said in (
        (("--ray-address", "auto"), "--ray-address needs --engine ray"),
        (("--engine", "ray", "--workers", 2), "--workers is for --engine local"),
    ):
        ran = command(*words, *more)
        assert (ran.code, said in ran.err) == (2, True), ran


# Failures, with a module in the place of Ray


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
    ray.wait = lambda waiting, num_returns, timeout: (waiting[:1], waiting[1:])
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
    refused(built(None, source, tmp_path / "out", monkeypatch), "--engine ray: ", 'pip install "mmlongbench[ray]"')


@pytest.mark.parametrize("words", ["", "\n", "the node died\nwith a long\ntrace"], ids=["none", "blank", "lines"])
@pytest.mark.parametrize("where", ["init", "wait", "get"])
def test_an_error_of_ray_is_one_line(
    where: str, words: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = RuntimeError(words) if where == "init" else RayError(words)
    ran = built(fake(**{where: failing(error)}), source, tmp_path / "out", monkeypatch)
    refused(ran, "error: ", "the node died" if "died" in words else type(error).__name__)
    assert "trace" not in ran.err
    assert where == "init" or "run the command again to continue" in ran.err
