"""The Ray engine on a cluster of two nodes: the same bytes, spread over both; errors as they are elsewhere."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from line_task import write
from tiny import command, hashes, leftovers

from mmlongbench.building.build import build
from mmlongbench.building.executors.ray import RayExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.loading import load_manifest

pytestmark = pytest.mark.slow

ray = pytest.importorskip("ray", reason="the extra `ray` is not installed")
QUIET = Progress(is_shown=False)


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The address of a cluster of two nodes of one CPU each."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 1024 * 1024}
    started = Cluster(initialize_head=True, head_node_args=node)
    started.add_node(num_cpus=1, object_store_memory=80 * 1024 * 1024)
    yield started.address
    ray.shutdown()
    started.shutdown()


def test_two_nodes_give_the_bytes_of_one_process_and_both_have_worked(
    cluster: str, source: Path, finished: Path, tmp_path: Path
) -> None:
    executor = RayExecutor(QUIET, cluster)
    build(load_manifest(source / "tiny.yaml"), tmp_path / "out", executor)
    assert hashes(tmp_path / "out") == hashes(finished)
    assert len(executor.nodes) == 2
    assert not leftovers(tmp_path / "out")


def test_the_command_builds_on_a_cluster_and_another_build_may_follow_in_the_same_folder(
    cluster: str, source: Path, finished: Path, tmp_path: Path
) -> None:
    """Workers outlive a build: what they know of the first must not be in the second."""
    import shutil

    out, other = tmp_path / "out", ("--set", "seed=7")
    assert command("build", source / "tiny.yaml", "--out", tmp_path / "whole", "-q", *other).code == 0
    for settings, whole in (((), finished), (other, tmp_path / "whole")):
        args = (source / "tiny.yaml", "--out", out, "-q", *settings)
        assert command("build", *args, "--engine", "ray", "--ray-address", cluster).code == 0
        assert hashes(out) == hashes(whole)
        shutil.rmtree(out)


def test_an_error_of_a_shard_is_the_same_line_as_elsewhere(cluster: str, source: Path, tmp_path: Path) -> None:
    args = (source / "tiny.yaml", "--out", tmp_path / "out", "--strict", "-q")
    there = command("build", *args, "--engine", "ray", "--ray-address", cluster)
    here = command("build", source / "tiny.yaml", "--out", tmp_path / "here", "--strict", "-q")
    assert (there.code, there.err) == (here.code, here.err) == (1, here.err)


def test_a_cluster_that_is_not_there_and_an_address_without_ray_are_one_line(source: Path, tmp_path: Path) -> None:
    ran = command("build", source / "tiny.yaml", "--out", tmp_path / "out", "--ray-address", "auto")
    assert (ran.code, "--ray-address needs --engine ray" in ran.err) == (2, True)


def test_nodes_that_share_nothing_but_a_url_give_the_same_bytes(
    cluster: str, source: Path, finished: Path, tmp_path: Path
) -> None:
    args = ("--out", f"file://{tmp_path}/there", "--engine", "ray", "--ray-address", cluster)
    ran = command("build", source / "tiny.yaml", *args)
    assert ran.code == 0, ran.err
    assert hashes(tmp_path / "there") == hashes(finished)


def test_a_task_file_reaches_nodes_that_share_nothing_but_a_url(cluster: str, tmp_path: Path) -> None:
    manifest = write(tmp_path / "source") / "lines.yaml"
    args = ("--out", f"file://{tmp_path}/there", "--engine", "ray", "--ray-address", cluster, "-q")
    note = "note: the code of lines.py runs, because the manifest names it\n"
    assert command("build", manifest, "--out", tmp_path / "here", "--workers", 1, "-q").err == note
    ran = command("build", manifest, *args)
    assert ran.err == note
    assert hashes(tmp_path / "there") == hashes(tmp_path / "here")
