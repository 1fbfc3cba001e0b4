"""How image files were written: quantisation, subsampling and EXIF tags are read, and tell gold if they differ."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asked_questions import judged
from PIL import Image

from mmlongbench.shortcuts.encoding import QUANTISATION, TAGS, of_tables, of_tags
from mmlongbench.shortcuts.features import ImageFacts
from mmlongbench.shortcuts.golds import Group, find_golds
from mmlongbench.shortcuts.measured import uniforms

UNITS = 16
MAKERS = ("Ardent", "Brook", "Cobalt")


def written(**options: Any) -> bytes:
    file = io.BytesIO()
    Image.effect_noise((32, 32), 60).convert("RGB").save(file, "JPEG", **options)
    return file.getvalue()


def tables(**options: Any) -> tuple[float, ...]:
    with Image.open(io.BytesIO(written(**options))) as picture:
        return of_tables(picture)


def tags(**values: str | int) -> bytes:
    exif = Image.Exif()
    for name, value in values.items():
        exif[{"Make": 271, "Software": 305, "Orientation": 274}[name]] = value
    return exif.tobytes()


def test_tables_and_subsampling_are_told_apart() -> None:
    place = QUANTISATION.index("chroma subsampling")
    assert [tables(quality=80, subsampling=each)[place] for each in (0, 1, 2)] == [0, 1, 2]
    assert tables(quality=80)[:4] != tables(quality=81)[:4]
    assert tables(quality=80)[place + 1 :] == tables(quality=80)[place + 1 :] != tables(quality=81)[place + 1 :]


def test_tables_of_equal_mean_are_told_apart() -> None:
    flat = [[16] * 64, [16] * 64]
    steep = [[8] * 32 + [24] * 32] * 2
    one, other = tables(qtables=flat), tables(qtables=steep)
    assert one[0] == other[0]
    assert one != other


def test_tags_are_read_by_name() -> None:
    place = TAGS.index("EXIF Make")
    first, second = of_tags(tags(Make="Ardent", Orientation=3)), of_tags(tags(Make="Brook"))
    assert first[TAGS.index("EXIF Orientation")] == 3
    assert second[TAGS.index("EXIF Orientation")] == -1
    assert 1 < first[place] != second[place] > 1
    assert first[place] == of_tags(tags(Make="Ardent"))[place]
    assert (first[0], second[0]) == (2, 1)


@pytest.mark.parametrize("exif", [b"", None, b"Exif\0\0broken", b"Exif\0\0MM\0*\0\0\0\x08\xff\xff", "text"])
def test_exif_that_cannot_be_read_counts_as_none(exif: object) -> None:
    assert set(of_tags(exif)[1:]) == {-1.0}


def test_a_picture_without_tables_has_zeros(tmp_path: Path) -> None:
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    assert set(ImageFacts(tmp_path).of("a.png")["tables"]) == {0.0}


def contexts(share: float, gold: tuple[float, ...], others: list[tuple[float, ...]]) -> list[Group]:
    """60 contexts of 16 pictures: others are drawn; in a share of contexts, gold is of its own kind."""
    groups = []
    for number in range(60):
        drawn = uniforms(UNITS + 2, "encoding", number)
        rows = [others[int(each * len(others))] for each in drawn[:UNITS]]
        place = int(drawn[-1] * UNITS)
        if drawn[-2] < share:
            rows[place] = gold
        is_gold = tuple(at == place for at in range(UNITS))
        groups.append(Group(f"q{number}", f"c{number}", (f"g{number}",), np.array(rows), is_gold))
    return groups


@pytest.mark.parametrize("share", [1.0, 0.7, 0.4])
def test_a_tag_that_only_gold_has_is_a_leak_and_named(share: float) -> None:
    others = [of_tags(tags(Make=maker)) for maker in MAKERS]
    gold = of_tags(tags(Make="Ardent", Software="painter"))
    finding = judged(find_golds("gold from EXIF tags", TAGS, contexts(share, gold, others)))
    assert finding.verdict == "leak"
    assert "EXIF Software" in finding.evidence


@pytest.mark.parametrize("share", [1.0, 0.7, 0.4])
def test_tables_that_only_gold_has_are_a_leak(share: float) -> None:
    others = [tables(quality=80), tables(quality=75, subsampling=0), tables(quality=90)]
    groups = contexts(share, tables(qtables=[[16] * 64, [16] * 64]), others)
    assert judged(find_golds("gold from quantisation", QUANTISATION, groups)).verdict == "leak"


def test_drawn_tags_and_tables_are_no_leak() -> None:
    makers = [of_tags(tags(Make=maker)) for maker in MAKERS]
    written_by = [tables(quality=quality) for quality in (75, 80, 90)]
    assert judged(find_golds("gold from EXIF tags", TAGS, contexts(0, makers[0], makers))).verdict != "leak"
    assert judged(find_golds("gold from q", QUANTISATION, contexts(0, written_by[0], written_by))).verdict != "leak"
