"""A run of `questions` that is killed again and again: no stored answer is asked for again, same bytes."""

import os
import signal
from pathlib import Path

import pytest
from model_server import serving
from question_models import script_of
from question_runs import Kills, made, recorded, results, settings_of
from question_world import Doc, World

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("MMLONGBENCH_KILLS", "2"))
"""How often the run is killed."""
DELAYS = (0.0, 0.003, 0.01)
"""Seconds between a request and the kill."""


@pytest.mark.timeout(600)
def test_no_stored_answer_is_asked_for_again_and_the_bytes_are_the_same(tmp_path: Path) -> None:
    world = World.drawn(tmp_path / "docs", [Doc("harbours-a", 3)], tmp_path / "whole")
    with recorded() as known, serving(script_of(world)) as server:
        made(world, tmp_path / "whole", server.url, settings_of())
        total = len(server.requests)
    world.pictures = tmp_path / "killed" / ".kept" / "pictures"
    killing = Kills(world, tmp_path / "killed", known)
    with killing.serving() as server:
        for number in range(KILLS):
            after = max(2, total // (KILLS + 2))
            assert killing.run(server, after, DELAYS[number % len(DELAYS)], 1 + number) == -signal.SIGKILL
        assert killing.run(server, 0) == 0
    assert killing.repeated == 0
    assert results(tmp_path / "killed") == results(tmp_path / "whole")
