"""Draws small versions of what `mmlongbench fetch benchmark` and its steps leave in a data folder, in the forms in
which the authors of the datasets publish them.
"""

import json
import shutil
import tarfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hub_forms import slide_rows, write_haystacks, write_slides, write_structure

from tests.drawing.docvqa import draw_longdocurl, draw_reports, draw_slidevqa
from tests.drawing.many_shot import draw_inaturalist, draw_tables
from tests.drawing.mm_niah.upstream import draw_upstream
from tests.drawing.summarization import draw_cases
from tests.drawing.summarization import draw_reports as draw_government
from tests.drawing.visual_haystacks import draw_several, draw_single
from tests.drawing.vrag import draw_infoseek, draw_viquae


def draw_data(data: Path) -> None:
    """Draw the sources of all datasets of the manifest `benchmark`."""
    drawn = data.with_name("drawn")
    _articles(data, drawn)
    _haystacks(data, drawn)
    _web_pages(data, drawn)
    _classes(data, drawn)
    _summaries(data, drawn)
    _documents(data, drawn)
    shutil.rmtree(drawn)


def _articles(data: Path, drawn: Path) -> None:
    infoseek = draw_infoseek(_new(drawn / "infoseek"))
    _move(infoseek["corpus"], data / "KILT/kilt_knowledgesource.json")
    for name in ("questions", "entities", "images"):
        _move(infoseek[name], data / "InfoSeek" / infoseek[name].name)
    viquae = draw_viquae(_new(drawn / "viquae"))
    _move(viquae["questions"], data / "ViQuAE/test.jsonl")
    _tar(data / "ViQuAE/images.tar.gz", viquae["images"], "images")


def _haystacks(data: Path, drawn: Path) -> None:
    single = draw_single(_new(drawn / "single"))
    several = draw_several(_new(drawn / "several"))
    _move(single["questions"], data / "visual_haystacks/single_needle/VHs_large/visual_haystack_10.json")
    folder = write_haystacks(several["questions"], drawn / "haystacks", (10,))
    flat = [item for file in sorted(folder.rglob("*.json")) for item in json.loads(file.read_text("utf-8"))]
    _write(data / "visual_haystacks/multi_needle/visual_haystack_10.json", json.dumps(flat))
    _move(single["images"], data / "coco")
    _move(single["annotations"], data / "coco/annotations/instances_train2017.json")


def _web_pages(data: Path, drawn: Path) -> None:
    draw_upstream(_new(drawn / "niah"), rows=12, pictures=96, images="mm_niah_test/images")
    _move(drawn / "niah/mm_niah_val/annotations", data / "MM-NIAH/mm_niah_test/annotations")
    _tar(data / "MM-NIAH/mm_niah_test/images.tar.gz", drawn / "niah/mm_niah_test", "mm_niah_test")


def _classes(data: Path, drawn: Path) -> None:
    tables = draw_tables(_new(drawn / "tables"))["data"]
    for name, split in (("food101", "validation"), ("stanford_cars", "test"), ("sun397", "test")):
        for file in sorted(tables.iterdir()):
            target = data / name / "data" / file.name.replace("validation", split)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    inat = draw_inaturalist(_new(drawn / "inat"))
    renamed = {"train": "train_mini", "test": "val"}
    for split, name in renamed.items():
        text = inat[split].read_text("utf-8")
        for before, now in renamed.items():
            text = text.replace(f'"{before}/', f'"{now}/')
        file = _write(drawn / f"{name}.json", text)
        _tar(data / f"iNat2021/{name}.json.tar.gz", file, file.name)
        _tar(data / f"iNat2021/{name}.tar.gz", inat["images"] / split, name)


def _summaries(data: Path, drawn: Path) -> None:
    government = draw_government(_new(drawn / "gov"))
    write_structure(government["reports"], data / "GovReport")
    shutil.rmtree(data / "GovReport/plain_text")
    _move(government["documents"], data / "GovReport/pdfs")
    cases = draw_cases(_new(drawn / "cases"))
    _move(cases["cases"], data / "Multi-LexSum/releases/v20230518/test.json")
    for file in cases["documents"].rglob("*.pdf"):
        _move(file, data / "Multi-LexSum/pdfs" / file.name)


def _documents(data: Path, drawn: Path) -> None:
    reports = draw_reports(_new(drawn / "reports"))
    rows = pa.Table.from_pylist(json.loads(reports["samples"].read_text("utf-8")))
    table = data / "MMLongBench-Doc/data/train-00000-of-00001.parquet"
    table.parent.mkdir(parents=True)
    pq.write_table(rows, table)
    _move(reports["documents"], data / "MMLongBench-Doc/documents")
    urls = draw_longdocurl(_new(drawn / "urls"))
    _move(urls["questions"], data / "LongDocURL/LongDocURL_public.jsonl")
    _tar(data / "LongDocURL/pdf_files.tar.gz", urls["documents"], "pdf_files")
    write_slides(slide_rows(draw_slidevqa(_new(drawn / "slides"))), data / "SlideVQA/data/test-00000-of-00001.parquet")


def _new(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _move(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, target)


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _tar(path: Path, content: Path, name: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(content, name)
