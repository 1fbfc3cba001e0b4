"""Sources on a file system that is mounted read-only: every reader builds from them, and nothing is written there."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from crash_harness import skip_unless_mounting
from every_sample import every_sample
from tiny import command, hashes, leftovers

from mmlongbench.corpus.making import make_corpus
from mmlongbench.manifest.registry import sample_function

pytestmark = pytest.mark.slow

READ_ONLY = """
set -e
mount --bind {folder} {folder}
mount -o remount,bind,ro {folder}
! touch {folder}/written 2> {said}
exec {python} -m mmlongbench build {manifest} --out {out} -q --workers 1
"""
DATASETS = every_sample().datasets
EVERY_READER = {dataset.reader: dataset for dataset in DATASETS}
SMALL = "mmlongbench_doc"


def built_read_only(folder: Path, manifest: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """A build whose sources lie in a folder that is mounted read-only for it."""
    given = {"folder": folder, "manifest": manifest, "out": out, "python": sys.executable}
    script = READ_ONLY.format(**given, said=out.with_name("touched"))
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    assert "Read-only file system" in out.with_name("touched").read_text()
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    skip_unless_mounting()
    return tmp_path_factory.mktemp("read-only")


def drawn(folder: Path, source: Path) -> list[dict[str, Any]]:
    """Datasets of all readers, each of sources of its own; of two with a corpus, one has it ready to be searched."""
    datasets = []
    for name, spec in EVERY_READER.items():
        (folder / name).mkdir()
        found = small(folder / name, source) if name == SMALL else sample_function(name)(folder / name)
        kept = {"name", "builder", "reader", "options", "reference_length", "pages"}
        asked = spec.model_dump(mode="json", include=kept)
        corpus = found.pop("corpus", None)
        if corpus and not (folder / "corpus").exists():
            make_corpus(str(corpus), corpus := folder / "corpus")
        given = {"source": {key: str(path) for key, path in found.items()}, "corpus": corpus and str(corpus)}
        datasets.append({**asked, **given, "licence": "none", "sample": {"n": 1}})
    return datasets


def small(folder: Path, source: Path) -> dict[str, Path]:
    """The tiny source in place of the largest sample."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    return {"samples": folder / "samples.json", "documents": folder / "documents"}


def test_every_reader_builds_from_sources_that_cannot_be_written(folder: Path, source: Path, tmp_path: Path) -> None:
    (folder / "sources").mkdir()
    manifest = {"defaults": {"lengths": ["8K"]}, "datasets": drawn(folder / "sources", source)}
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump(manifest))
    before = hashes(folder)
    done = built_read_only(folder, tmp_path / "manifest.yaml", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert hashes(folder) == before
    assert not leftovers(tmp_path / "out")  # the index and the prices of the corpus were kept in the build
    assert command("verify", tmp_path / "out", "-q").code == 0
