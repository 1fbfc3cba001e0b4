"""Document questions: images an example at five lengths, from decks of two sizes and from the real documents.

Drawn decks of 1024 × 768 and 1024 × 576 are an arithmetic check against the paper's Table 3 (SlideVQA 7.5, 16.2, 33.2,
67.2, 135.2). With `--shared`, short-answer questions about the real LongDocURL document are built from its published
page images at 72 DPI, padded with the real PDFs at 72 DPI, and MMLongBench-Doc's subset as images and as text.
"""

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import click
from PIL import Image, ImageDraw

from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.release.layout import DATA

SHARED = Path(__file__).resolve().parents[2] / "shared/real"
ROWS = Path(__file__).resolve().parents[1] / "tests/builders/longdocurl_rows.jsonl"
LENGTHS = ("8K", "16K", "32K", "64K", "128K")
SIZES = {"4:3": (1024, 768), "16:9": (1024, 576)}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--shared", type=click.Path(path_type=Path), default=SHARED, show_default=False, help="Real documents.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the releases there.")
@click.option("--workers", default=2, show_default=True)
def main(shared: Path, out: Path | None, workers: int) -> None:
    """Build, and print images an example."""
    with tempfile.TemporaryDirectory() as folder:
        kept = out or Path(folder) / "releases"
        for name, size in SIZES.items():
            source = _draw_decks(Path(folder) / name.replace(":", "-"), size)
            _built(f"slides {name}", {"name": "slidevqa", "reader": "slidevqa", "source": source}, kept, workers)
        if not shared.is_dir():
            return
        pdfs = str(shared / "mmlongbench-doc/documents")
        images = str(shared / "longdocurl/pdf_pngs")
        long = {"questions": str(ROWS), "page_images": images, "documents": pdfs}
        _built(
            "longdocurl", {"name": "longdocurl", "reader": "longdocurl", "source": long, "pages": {"dpi": 72}}, kept, 2
        )
        doc = {"samples": str(shared / "mmlongbench-doc/samples.json"), "documents": pdfs}
        common = {"reader": "mmlongbench_doc", "source": doc}
        _built("mmlongdoc", {"name": "mmlongdoc", **common}, kept, workers)
        text = {"name": "text_mmlongdoc", "drawn_as": "mmlongdoc", **common}
        for fill in ("same_pages", "budget"):
            _built(f"text, {fill}", {**text, "options": {"pages_as": "text", "text_fill": fill}}, kept, workers)


def _draw_decks(folder: Path, size: tuple[int, int]) -> dict[str, str]:
    """Ten decks of twenty slides, and a question about the fourth slide of each."""
    lines = []
    for deck in range(10):
        name = f"{deck:02}_deck_of_slides"
        (folder / "decks" / name).mkdir(parents=True)
        for number in range(1, 21):
            picture = Image.new("RGB", size, "white")
            ImageDraw.Draw(picture).text((80, 80), f"Deck {deck}, slide {number}", "black", font_size=48)
            picture.save(folder / "decks" / name / f"deck-{deck}-{number}-1024.jpg", quality=60)
        row = {"deck_name": name, "question": "Which slide?", "answer": f"slide {deck}", "evidence_pages": [4]}
        lines.append(json.dumps(row))
    (folder / "test.jsonl").write_text("\n".join(lines) + "\n")
    return {"questions": str(folder / "test.jsonl"), "decks": str(folder / "decks")}


def _built(what: str, about: dict[str, Any], out: Path, workers: int) -> None:
    spec = DatasetSpec.model_validate({"builder": "docvqa", "lengths": LENGTHS, **about})
    release = out / what.replace(" ", "-").replace(":", "-").replace(",", "")
    lock = build(Manifest(datasets=(spec,)), release, LocalExecutor(workers, Progress(is_shown=False))).lock.public()
    data = lock["datasets"][spec.name]
    click.echo(f"{what}: {data['questions']}")
    for length in LENGTHS:
        path = release / DATA / f"documentQA/{spec.name}_K{length[:-1]}.jsonl"
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []
        pages = [len(record["page_list"]) for record in records]
        fill = [(record["length"] + record["tokens"]["reserve"]) / (int(length[:-1]) * 1024) for record in records]
        cell = data["cells"][length]
        more = {key: cell[key] for key in ("rejected", "ran_dry", "left_out", "by_evidence_has_text") if cell.get(key)}
        click.echo(
            f"  {length}: n={len(pages)} pages {statistics.mean(pages):.1f} ± {statistics.pstdev(pages):.1f} "
            f"fill {statistics.mean(fill):.3f} {more}"
        )


if __name__ == "__main__":
    main()
