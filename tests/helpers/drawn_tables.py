"""Reports with ruled tables whose every cell is known, for questions that are made from the layer of PDFs."""

from collections.abc import Sequence
from pathlib import Path

import pymupdf

QUAYS = ("Gull Haven", "Tarn Harbour", "Skerry Dock", "Long Strand")
PORTS = ("Port Ellery", "Stannow Quay", "Veldersund", "Marram Point")
VOLUMES = (("4183", "3927"), ("2768", "3149"), ("5216", "4871"), ("1104", "3055"))
CATCHES = (("811", "790"), ("302", "377"), ("618", "640"), ("129", "145"))


def draw(
    path: Path,
    numbers: Sequence[Sequence[str]],
    years: Sequence[str],
    name: str,
    table: int = 1,
    ports: Sequence[str] = PORTS,
) -> None:
    """Draw two pages: a heading and a ruled table with a caption, and a heading with text."""
    rows = [("Port", *years), *((port, *line) for port, line in zip(ports, numbers, strict=True))]
    with pymupdf.open() as document:
        page = document.new_page()
        page.insert_text((72, 80), f"1  {name.upper()}", fontname="hebo", fontsize=16)
        page.insert_text((72, 110), "The board looked at the figures of both years in its spring meeting.", fontsize=10)
        page.insert_text(
            (72, 140), f"Table {table}: {name}, in barge loads, by port and year", fontname="heit", fontsize=10
        )
        for row, cells in enumerate(rows):
            for column, text in enumerate(cells):
                x, y = 72 + 130 * column, 150 + 20 * row
                page.draw_rect((x, y, x + 130, y + 20), width=0.7)
                left = x + 124 - pymupdf.get_text_length(text, fontsize=10) if column else x + 6
                page.insert_text((left, y + 14), text, fontsize=10)
        page = document.new_page()
        page.insert_text((72, 80), "2  OUTLOOK FOR NEXT SEASON", fontname="hebo", fontsize=16)
        page.insert_text((72, 110), "Nothing has been decided about the outer harbour.", fontsize=10)
        document.save(path, no_new_id=True)  # the same bytes again: they decide which questions are drawn


def draw_tables(folder: Path) -> None:
    """Draw two reports into a folder."""
    draw(folder / "dredging.pdf", VOLUMES, ("2016", "2017"), "Dredged volume")
    draw(folder / "landings.pdf", CATCHES, ("2018", "2019"), "Landed catch", 2, QUAYS)
