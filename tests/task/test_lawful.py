"""Correct tasks of other packages: their releases pass the audit, and a forgery of each is found."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from once import linked
from tiny import Ran, command
from tokenizers import Tokenizer, models, pre_tokenizers

import mmlongbench as mm

HERE = Path(__file__).parent / "lawful"
LAWFUL = (
    *("Lined", "Inline", "InlineLines", "InlinePictures", "Headed", "HeadedAll", "Shown", "Blanks", "Bundled"),
    *("SharedPermutations", "InlineTwo", "InlinePrefix", "MixedLines"),
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let the tasks be an installed package, as far as Python can tell."""
    info = tmp_path_factory.mktemp("site") / "mmlongbench_lawful-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mmlongbench-lawful\nVersion: 0.1\n")
    builders = "".join(f"{name} = lawful:{name}\n" for name in LAWFUL)
    reader = "[mmlongbench.readers]\nlawful-tiles = lawful:TileReader\n"
    sample = "[mmlongbench.samples]\nlawful-tiles = lawful:draw_tiles\n"
    (info / "entry_points.txt").write_text(f"[mmlongbench.builders]\n{builders}{reader}{sample}")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(info.parent))
        patch.syspath_prepend(str(HERE))
        yield


def build(folder: Path, names: tuple[str, ...], *options: object) -> Path:
    common = "reader: lawful-tiles, source: sample, lengths: [1K], admission_length: 1K"
    datasets = "".join(f"  - {{name: {name}, builder: {name}, {common}}}\n" for name in names)
    (folder / "tiles.yaml").write_text(f"datasets:\n{datasets}")
    ran = command("build", folder / "tiles.yaml", "--out", folder / "out", "--workers", 1, "-q", *options)
    assert ran == Ran(0, "", "")
    return folder / "out"


@pytest.fixture(scope="module")
def lawful(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One release of all tasks."""
    return build(tmp_path_factory.mktemp("lawful"), LAWFUL)


def turned(record: dict[str, Any]) -> None:
    """Reverse the units of an example."""
    record["units"].reverse()


def elsewhere(record: dict[str, Any]) -> None:
    """Record a false place of the needle."""
    starts = record["needle_start"]
    record["needle_start"] = [each + 9 for each in starts] if isinstance(starts, list) else starts + 9


def deeper(record: dict[str, Any]) -> None:
    """Record a false depth of the needle."""
    depths = record["depth_achieved"]
    record["depth_achieved"] = [each / 2 + 0.3 for each in depths] if isinstance(depths, list) else depths / 2 + 0.3


def test_lawful_tasks_pass_the_audit(lawful: Path) -> None:
    assert command("audit", lawful, "-q") == Ran(0, "", "")


@pytest.mark.parametrize("forge", [turned, elsewhere, deeper])
def test_a_forgery_of_each_task_is_found(forge: Callable[[dict[str, Any]], None], lawful: Path, tmp_path: Path) -> None:
    """The second record of each file is forged; that its bytes are not those of the lock does not count."""
    forged = linked(lawful, tmp_path / "forged")
    for name in LAWFUL:
        path = forged / f"mmlb_data/tiles/{name}_K1.jsonl"
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        forge(records[1])
        path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    found = {
        line.dataset
        for line in mm.audit(forged)
        for problem in line.problems
        if "the bytes are not those of the lock" not in problem.first and "tile-0" in problem.first
    }
    assert found == {*LAWFUL}


def test_ids_with_blanks_are_read_back_from_the_items(lawful: Path) -> None:
    items = pq.read_table(lawful / "items/tiles/Blanks_K1.parquet").to_pylist()
    inside = {row["inside"] for row in items} - {""}
    assert "the%200%20%25%20needle%09of%20tile-0" in " ".join(inside).split()


def test_an_audit_says_where_no_place_is_compared(installed: None, tmp_path: Path, lawful: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    vocabulary = {"[UNK]": 0, "Question": 1, "tile": 2, "Answer": 3}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tokenizer))
    out = build(tmp_path, ("Lined",), "--set", f"counter.tokenizer={tokenizer}")
    ran = command("audit", out, "--tokenizer", tokenizer)
    said = (
        f"places in the prompt: 6, 6 not compared, for the tokenizer {tokenizer.name} may merge texts across newlines"
    )
    assert ran.code == 0
    assert f"tiles/Lined_K1.jsonl: {said} (first line 1, tile-0)" in ran.out
    assert "not compared" not in command("audit", lawful).out
