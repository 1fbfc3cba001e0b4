"""A program that takes the place of `tesseract`, needs no other program on PATH, and notes each picture."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mmlongbench.documents import ocr
from mmlongbench.documents.confined import end_readers

STAND_IN = """#!/bin/sh
here=${{0%/*}}
case "$1" in
  --version) printf 'tesseract 9.8.7\\n leptonica-6.5.4\\n'; exit 0 ;;
  --list-langs)
    printf 'List of available languages in "%s" (1):\\n' "$here"
    while read -r name; do echo "$name"; done < "$here/languages"
    exit 0 ;;
esac
sum=$({sha256sum})
sum=${{sum%"${{sum#????????????????}}"}}
left=
[ ! -e "$here/left" ] || read -r left < "$here/left"
if [ -e "$here/next" ] && [ "$left" = 0 ]; then
  . "$here/next"
fi
[ -z "$left" ] || echo $((left - 1)) > "$here/left"
echo "$sum" >> "$here/pictures"
echo "The picture $sum has many words, so that a page with it is no scan."
"""
"""It finds nothing by PATH: tests set that to a folder where it stands alone."""


class StandIn:
    """A program `tesseract` whose text is made of the hash of the picture."""

    def __init__(self, folder: Path) -> None:
        """Write the program and its data."""
        self.folder = folder
        folder.mkdir()
        self.languages("eng", "osd")
        (folder / "eng.traineddata").write_text("data")
        program = folder / "tesseract"
        program.write_text(STAND_IN.format(sha256sum=shutil.which("sha256sum")))
        program.chmod(0o755)

    @property
    def pictures(self) -> list[str]:
        """The hash of each picture that was read, in order."""
        path = self.folder / "pictures"
        return path.read_text().split() if path.exists() else []

    def languages(self, *names: str) -> None:
        """Set the languages of which it has data."""
        (self.folder / "languages").write_text("".join(f"{name}\n" for name in names))

    def after(self, pictures: int, do: str) -> None:
        """Do something else, in the words of a shell, instead of reading the next picture after some."""
        (self.folder / "left").write_text(f"{pictures}\n")
        (self.folder / "next").write_text(do)

    def mend(self) -> None:
        """Read pictures again."""
        (self.folder / "next").unlink()


@contextmanager
def programs_of(folder: Path, monkeypatch: pytest.MonkeyPatch, *, alone: bool = False) -> Iterator[None]:
    """Find programs in a folder first, or there alone."""
    monkeypatch.setenv("PATH", str(folder) if alone else f"{folder}{os.pathsep}{os.environ['PATH']}")
    forget()
    yield
    forget()


def forget() -> None:
    """Ask the program for its version again."""
    ocr.ocr_version.cache_clear()
    ocr.ocr_engine.cache_clear()
    end_readers()
