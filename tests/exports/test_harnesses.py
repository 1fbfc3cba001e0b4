"""What holds for each target that an evaluation harness reads: the same bytes, links, nothing lost, errors first."""

import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from harness_exports import examples_of, export

import mmlongbench as mm
from mmlongbench.exports.inspect_tasks import InspectTasks
from mmlongbench.exports.lmms_eval import LmmsEval
from mmlongbench.exports.target import Target
from mmlongbench.exports.vlmevalkit import VLMEvalKit
from mmlongbench.io.atomic import sha256_of
from mmlongbench.release.opened import Release
from mmlongbench.release.selecting import Selection

TARGETS = (LmmsEval, InspectTasks, VLMEvalKit)


@pytest.fixture(params=TARGETS, ids=lambda target: target.__name__)
def target(request: pytest.FixtureRequest) -> type[Target]:
    found: type[Target] = request.param
    return found


def files(out: Path) -> dict[str, str]:
    """The SHA-256 of each file of an export, without what the link leads to."""
    return {str(path.relative_to(out)): sha256_of(path) for path in out.rglob("*") if path.is_file()}


def test_the_same_release_gives_the_same_bytes_wherever_it_is_written(
    target: type[Target], hostile: Path, tmp_path: Path
) -> None:
    first = export(target, hostile, tmp_path / "a")
    second = export(target, hostile, tmp_path / "deep/er" / "b")
    assert first == second
    assert files(tmp_path / "a") == files(tmp_path / "deep/er/b")
    assert first.examples == 6
    assert first.left_out == ()


def test_images_are_linked_and_no_path_of_the_machine_is_written(
    target: type[Target], hostile: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(target, hostile, out)
    link = out / "release"
    assert not link.readlink().is_absolute()
    assert link.resolve() == hostile
    assert not [path for path in out.rglob("*") if path.suffix == ".jpg"]
    written = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert str(hostile).encode() not in written
    assert str(tmp_path).encode() not in written


def test_a_missing_image_is_named_before_anything_is_written(
    target: type[Target], hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last = examples_of(hostile)[-1]
    gone = hostile / "mmlb_image" / last.prompt.images[-1]
    is_file = Path.is_file
    monkeypatch.setattr(Path, "is_file", lambda path: path != gone and is_file(path))
    with pytest.raises(mm.ReleaseError, match=r"mmlongdoc_K1.jsonl, .*: image .*page3.jpg': is missing; see"):
        export(target, hostile, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_two_examples_of_one_name_are_refused(
    target: type[Target], hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = Release.examples

    def twice(release: Release, dataset: str, length: int | str) -> Any:
        yield from (*examples(release, dataset, length), next(iter(examples(release, dataset, length))))

    monkeypatch.setattr(Release, "examples", twice)
    with pytest.raises(mm.ReleaseError, match=r"two examples have the name '0012'; see `mmlongbench audit`"):
        export(target, hostile, tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_nothing_chosen_is_an_error(target: type[Target], hostile: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ReleaseError, match="no example is chosen"):
        export(target, hostile, tmp_path / "out", selection=Selection(limit=0))


def test_a_form_of_images_that_cannot_be_is_refused(target: type[Target], hostile: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ReleaseError, match="--images file-url: "):
        export(target, hostile, tmp_path / "out", images="file-url")
    assert list((tmp_path / "out").iterdir()) == []


def test_the_readme_names_the_model_and_the_tasks(target: type[Target], hostile: Path, tmp_path: Path) -> None:
    export(target, hostile, tmp_path / "out", model="it's a model; $HOME")
    text = (tmp_path / "out/README.md").read_text("utf-8")
    assert shlex.quote("it's a model; $HOME") in text
    assert "| 6 | doc_qa | 64 | 904 | 4 |" in text
    assert "$model" not in text
    assert all(len(line) <= 160 for line in text.split("\n") if not line.startswith("python"))


def test_generated_code_can_be_compiled(target: type[Target], hostile: Path, tmp_path: Path) -> None:
    export(target, hostile, tmp_path / "out")
    found = [path for path in (tmp_path / "out").rglob("*.py") if "release" not in path.parts]
    assert len(found) == 1
    compile(found[0].read_text("utf-8"), os.fspath(found[0]), "exec")


def test_every_target_says_what_it_is(target: type[Target]) -> None:
    assert target.summary
    assert "\n" not in target.summary
