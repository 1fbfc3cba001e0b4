"""Releases that tests of rights, publications and takedowns share."""

from pathlib import Path

import pytest
import yaml
from once import once
from tiny import command, write_manifest

LICENCES = "asset,licence,author,url\nash.pdf,CC0-1.0,Ann,https://example.org/ash\nbirch,none,,\n"


@pytest.fixture(scope="session")
def trees(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release with pages as images and as texts, and licences by source and by document; not to be changed."""

    def make(folder: Path) -> None:
        (folder / "licences.csv").write_text(LICENCES, "utf-8")
        paths = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
        table = str(folder / "licences.csv")
        licence = {"spdx": "MIT", "sources": {"documents": {"spdx": "CC-BY-4.0", "assets": table}}}
        path = write_manifest(folder / "m.yaml", licence=licence, source=paths)
        manifest = yaml.safe_load(path.read_text("utf-8"))
        texts = {**manifest["datasets"][0], "name": "text_mmlongdoc", "drawn_as": "mmlongdoc"}
        texts["options"] = {"max_answer_words": 5, "pages_as": "text", "text_fill": "budget"}
        manifest["datasets"].append(texts)
        path.write_text(yaml.safe_dump(manifest), "utf-8")
        ran = command("build", path, "--out", folder / "release")
        assert ran.code == 0, ran.err

    return once(tmp_path_factory, "trees", make) / "release"
