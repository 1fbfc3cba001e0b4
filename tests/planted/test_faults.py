"""The table of planted faults fits the code: each text to replace stands once, each test that is named is there."""

import subprocess
import sys
from pathlib import Path


def test_every_fault_can_be_planted() -> None:
    plant = Path(__file__).with_name("plant.py")
    done = subprocess.run([sys.executable, plant, "--check"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
