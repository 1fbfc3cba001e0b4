"""The plan of a build: exact counts are right, estimates are close, and exhausted sources are named."""

import json
from pathlib import Path
from typing import Any

import yaml
from tiny import command, lock, records


def planned(*args: object) -> tuple[int, dict[str, Any]]:
    ran = command("plan", *args, "--json")
    assert "Traceback" not in ran.err
    (found,) = [json.loads(line) for line in ran.out.splitlines()]
    return ran.code, found


def test_a_plan_of_all_questions_is_what_the_build_becomes(source: Path, finished: Path) -> None:
    code, found = planned(source / "tiny.yaml", "--probe", 99)
    built = lock(finished)["datasets"]["mmlongdoc"]
    assert code == 0
    assert (found["questions"], found["rejected"]) == (built["questions"]["kept"], built["questions"]["rejected"])
    images = {path for path in lock(finished)["files"] if path.startswith("mmlb_image")}
    assert found["image_files"] == len(images)
    size = sum(lock(finished)["files"][path]["bytes"] for path in images)
    assert 0.7 * size < found["image_bytes"] < 1.4 * size
    for cell in found["cells"]:
        lines = records(finished, f"{cell['length'] // 1024}K")
        assert cell["examples"] == len(lines)
        assert cell["images"] * len(lines) == sum(len(line["page_list"]) for line in lines)
        path = finished / f"mmlb_data/documentQA/mmlongdoc_K{cell['length'] // 1024}.jsonl"
        assert cell["bytes"] == path.stat().st_size
        assert (cell["ran_dry"], cell["rejected"]) == (0, 0)


def test_a_length_beyond_the_sources_says_what_runs_out(source: Path) -> None:
    _, found = planned(source / "tiny.yaml", "--lengths", "1K,64K", "--probe", 2)
    short, long = found["cells"]
    assert (short["ran_dry"], long["ran_dry"], long["left_over"]) == (0, 2, "padding")
    assert long["missing"] > 200
    said = command("plan", source / "tiny.yaml", "--lengths", "64K").out
    assert "padding units run out first, by up to" in said
    assert "nothing is repeated" in said


def test_a_source_that_is_missing_is_said_and_the_others_are_planned(source: Path, tmp_path: Path) -> None:
    (own,) = yaml.safe_load((source / "tiny.yaml").read_text())["datasets"]
    places = {"samples": str(source / "samples.json"), "documents": str(source / "documents")}
    other = {**own, "name": "other", "source": {**places, "samples": str(tmp_path / "no.json")}}
    path = tmp_path / "two.yaml"
    path.write_text(yaml.safe_dump({"datasets": [other, {**own, "source": places}]}))
    ran = command("plan", path)
    assert ran.code == 1
    assert "other: cannot be built: " in ran.out
    assert "no.json" in ran.out
    assert "mmlongdoc: 6 questions" in ran.out


def test_nothing_is_left(source: Path, tmp_path: Path) -> None:
    before = sorted(source.rglob("*"))
    assert command("plan", source / "tiny.yaml").code == 0
    assert sorted(source.rglob("*")) == before
