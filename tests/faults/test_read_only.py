"""Sources on a file system that is mounted read-only: every reader builds from them, and nothing is written there."""

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from crash_harness import skip_unless_mounting
from samples import Sources, every_sample_as_written
from tiny import command, hashes, leftovers

pytestmark = pytest.mark.rare
READ_ONLY = """
set -e
mount --bind {folder} {folder}
mount -o remount,bind,ro {folder}
! touch {folder}/written 2> {said}
exec {python} -m mmlongbench build {manifest} --out {out} -q --workers 1
"""
OF_READERS = {dataset["reader"]: dataset for dataset in every_sample_as_written()["datasets"]}


def copied(sample: Callable[[str], Sources], folder: Path, source: Path) -> list[dict[str, Any]]:
    """Datasets of all readers, each of sources of its own; of two with a corpus, one has it ready to be searched."""
    datasets = []
    for reader, spec in OF_READERS.items():
        if reader == "mmlongbench_doc":  # the tiny source in place of the largest sample
            shutil.copytree(source, folder / reader)
            places = {"samples": folder / reader / "samples.json", "documents": folder / reader / "documents"}
        else:
            drawn = sample(reader)
            first = next(iter(drawn.values()))
            root = next(path for path in (first, *first.parents) if path.name.endswith(f"-sample-{reader}"))
            shutil.copytree(root, folder / reader)
            places = {name: folder / reader / path.relative_to(root) for name, path in drawn.items()}
        kept = ("name", "builder", "reader", "options", "reference_length", "pages")
        given = {key: spec[key] for key in kept if key in spec}
        if corpus := places.pop("corpus", None):
            if not (folder / "corpus").exists():
                assert command("corpus", "build", corpus, "--out", folder / "corpus").code == 0
                corpus = folder / "corpus"
            given["corpus"] = str(corpus)
        source_paths = {name: str(path) for name, path in places.items()}
        n = 60 if "many_shot" in spec["builder"] else 1  # at 8K, only the questions of some labels are asked
        datasets.append({**given, "source": source_paths, "licence": "none", "sample": {"n": n}})
    return datasets


def test_every_reader_builds_from_sources_that_cannot_be_written(
    sample: Callable[[str], Sources], source: Path, tmp_path: Path
) -> None:
    skip_unless_mounting()
    folder, out, said = tmp_path / "sources", tmp_path / "out", tmp_path / "touched"
    folder.mkdir()
    manifest = {"defaults": {"lengths": ["8K"]}, "datasets": copied(sample, folder, source)}
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump(manifest))
    before = hashes(folder)
    given = {"folder": folder, "manifest": tmp_path / "manifest.yaml", "out": out, "python": sys.executable}
    script = READ_ONLY.format(**{name: shlex.quote(str(value)) for name, value in {**given, "said": said}.items()})
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert "Read-only file system" in said.read_text()
    assert done.returncode == 0, done.stderr
    assert hashes(folder) == before
    assert not leftovers(out)  # the index and the prices of the corpus were kept in the build
    assert command("verify", out, "-q").code == 0
