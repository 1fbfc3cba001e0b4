"""Correct tasks of other packages: their releases pass the audit, and a forgery of each is found."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tiny import Ran, command
from tokenizers import Tokenizer, models, pre_tokenizers

from mmlongbench.io.progress import Progress
from mmlongbench.release.audit import audit_release

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "lawful"
METADATA = "Metadata-Version: 2.1\nName: mmlongbench-lawful\nVersion: 0.1\n"
LAWFUL = (
    "Lined",
    "Inline",
    "InlineLines",
    "InlinePictures",
    "Headed",
    "HeadedAll",
    "Shown",
    "Blanks",
    "Bundled",
    "SharedPermutations",
    "InlineTwo",
    "InlinePrefix",
    "MixedLines",
)
DATA = "mmlb_data/tiles/tiles_K1.jsonl"
ITEMS = "items/tiles/tiles_K1.parquet"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tasks be an installed package, as far as Python can tell."""
    info = tmp_path / "site" / "mmlongbench_lawful-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    builders = "".join(f"{name} = lawful:{name}\n" for name in LAWFUL)
    reader = "[mmlongbench.readers]\nlawful-tiles = lawful:TileReader\n"
    sample = "[mmlongbench.samples]\nlawful-tiles = lawful:draw_tiles\n"
    (info / "entry_points.txt").write_text(f"[mmlongbench.builders]\n{builders}{reader}{sample}")
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.syspath_prepend(str(HERE))


def build(tmp_path: Path, builder: str, *options: object) -> Path:
    text = (
        f"datasets:\n  - {{name: tiles, builder: {builder}, reader: lawful-tiles, source: sample, lengths: [1K], "
        "admission_length: 1K}\n"
    )
    (tmp_path / "tiles.yaml").write_text(text)
    ran = command("build", tmp_path / "tiles.yaml", "--out", tmp_path / "out", "--workers", 1, "-q", *options)
    assert ran == Ran(0, "", "")
    return tmp_path / "out"


def problems(release: Path) -> list[str]:
    """Return the findings of an audit, without files that differ from the lock."""
    found = [
        f"{kind}: {where}"
        for audit in audit_release(release, Progress(is_shown=False))
        for kind, where in audit.first.items()
    ]
    return [said for said in found if "the bytes are not those of the lock" not in said]


def edit(release: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the second record of a release."""
    records = [json.loads(line) for line in (release / DATA).read_text("utf-8").splitlines()]
    change(records[1])
    (release / DATA).write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


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


@pytest.mark.parametrize("name", LAWFUL)
def test_a_lawful_task_passes_the_audit_and_its_forgeries_are_found(name: str, installed: None, tmp_path: Path) -> None:
    out = build(tmp_path, name)
    assert command("audit", out, "-q") == Ran(0, "", "")
    for number, forge in enumerate((turned, elsewhere, deeper)):
        forged = tmp_path / f"forged-{number}"
        shutil.copytree(out, forged)
        edit(forged, forge)
        assert any("tile-0" in said for said in problems(forged)), forge


def test_ids_with_blanks_are_read_back_from_the_items(installed: None, tmp_path: Path) -> None:
    out = build(tmp_path, "Blanks")
    inside = {row["inside"] for row in pq.read_table(out / ITEMS).to_pylist()} - {""}
    assert "the%200%20%25%20needle%09of%20tile-0" in " ".join(inside).split()


def test_an_audit_says_where_no_place_is_compared(installed: None, tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    vocabulary = {"[UNK]": 0, "Question": 1, "tile": 2, "Answer": 3}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.save(str(tokenizer))
    out = build(tmp_path, "Lined", "--set", f"counter.tokenizer={tokenizer}")
    ran = command("audit", out, "--tokenizer", tokenizer)
    said = f"places in the prompt: 6, 6 not compared, for the tokenizer {tokenizer} may merge texts across newlines"
    assert ran.code == 0
    assert f"tiles/tiles_K1.jsonl: {said} (first line 1, tile-0)" in ran.out
    (tmp_path / "embedded").mkdir()
    assert "places in the prompt" not in command("audit", build(tmp_path / "embedded", "Lined")).out
