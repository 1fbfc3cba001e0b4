"""The errata of a pruned set: complete with those of the original, and in files of their own for each dataset."""

from pathlib import Path

import pytest

import mmlongbench as mm
from mmlongbench.manifest.errata import load_errata
from mmlongbench.release.lock import Lock
from mmlongbench.shortcuts.pruning.naming import errata_files, named, options, write_errata
from mmlongbench.shortcuts.pruning.results import Drop

DROP = Drop(id="true", kind="k", reason='mmlongbench shortcuts: k: "quoted": # and\nmore ☂')
COUNTS = {"read": 9, "kept": 9, "not_sampled": 0}
LOCK = Lock.model_validate(
    {
        "format": 1,
        "manifest": [{"name": "walks_pruned", "drawn_as": "walks", "sample": {"n": 9}}],
        "datasets": {
            "walks_pruned": {
                "questions": COUNTS,
                "cells": {},
                "documents": {"usable": 0, "refused": {}, "renamed": {}},
                "errata": {"q7": {"source": "a letter", "set": {"answer": "007"}, "was": {"answer": "7"}}},
            }
        },
        "files": {},
    }
)


def test_errata_of_the_original_stay_and_any_text_is_read_back(tmp_path: Path) -> None:
    pruned = named(LOCK, "walks_pruned", 9, [DROP])
    write_errata(pruned, LOCK, tmp_path / "e.yaml")
    found = load_errata(tmp_path / "e.yaml")
    assert found["q7"].set == {"answer": "007"}
    assert found["q7"].was == {"answer": "7"}
    assert (found["true"].drop, found["true"].source) == (True, DROP.reason)


def test_a_set_that_is_pruned_again_has_a_name_of_its_own_and_the_draws_of_the_original() -> None:
    pruned = named(LOCK, "walks_pruned", 9, [DROP])
    assert (pruned.name, pruned.drawn_as, pruned.sample) == ("walks_pruned2", "walks", 8)
    assert options(pruned, Path("my errata.yaml")) == (
        "--set 'walks_pruned.errata=my errata.yaml' --set walks_pruned.drawn_as=walks "
        "--set walks_pruned.sample.n=8 --set walks_pruned.name=walks_pruned2"
    )


def test_several_datasets_have_files_of_their_own_and_none_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    assert errata_files(path, ["a"]) == {"a": path}
    assert errata_files(path, ["a", "b"]) == {"a": tmp_path / "e.a.yaml", "b": tmp_path / "e.b.yaml"}
    (tmp_path / "e.b.yaml").write_text("{}", "utf-8")
    with pytest.raises(mm.ReleaseError, match=r"e\.b\.yaml: already exists, and is not overwritten"):
        errata_files(path, ["a", "b"])
