"""What some tests need beside Python: without it a test is skipped and says what to install; with CI=true it fails."""

import importlib.util
import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

SHARED = Path(__file__).parents[3] / "shared"
"""Reference data beside the checkout; a checkout elsewhere does without it."""


def program(*names: str, install: str) -> str:
    """Return the path of a program under one of its names."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    return found or _lack(f"{names[0]} is not installed: {install}")


def chromium() -> str:
    """Return the path of a browser."""
    return program("chromium", "chromium-browser", "google-chrome", install="apt-get install chromium")


def tesseract() -> str:
    """Return the path of the program that reads pictures."""
    return program("tesseract", install="apt-get install tesseract-ocr")


def library(name: str, extra: str) -> None:
    """Go on only where a library of an extra is installed. The extra `dense` is no part of the extra `test`, because it
    takes gigabytes: without it a test is skipped, in CI too.
    """
    if importlib.util.find_spec(name) is None:
        reason = f"{name} is not installed: pip install 'mmlongbench[{extra}]'"
        pytest.skip(reason) if extra == "dense" else _lack(reason)


def shared(*parts: str) -> Path:
    """Return the path of reference data; without it a test is skipped, in CI too."""
    path = SHARED.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"shared/{'/'.join(parts)} is not beside the checkout")
    return path


def _lack(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
