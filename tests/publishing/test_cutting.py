"""A release cut for models: a whole release of the questions that fit them all."""

import json
from pathlib import Path

from tiny import command, lock, on_model, records, rejects

WINDOW = 1000


def test_a_cut_release_is_a_whole_release_of_the_questions_that_fit(finished: Path, tmp_path: Path) -> None:
    totals = {id: total + 64 for id, total in on_model(finished, "1K", "qwen2.5-vl").items()}
    window = sorted(totals.values())[3]
    fitting = [id for id, total in totals.items() if total <= window]
    assert 0 < len(fitting) < len(totals)
    asked = ("--count-as", "qwen2.5-vl,gemma3", "--fits", window, "--fits", "gemma3=64K")
    found = [json.loads(line) for line in command("audit", finished, *asked, "--json").out.splitlines()]
    assert [line["fit_all"] for line in found] == [len(fitting), 0]
    assert found[0]["models"]["gemma3"]["fit"] == len(totals)
    shown = command("audit", finished, *asked, "--cut", tmp_path / "cut").out
    assert f"{len(fitting)} of {len(totals) + len(records(finished, '2K'))} examples" in shown
    cut = tmp_path / "cut"
    assert [each["id"] for each in records(cut, "1K")] == fitting
    assert not list((cut / "mmlb_data").rglob("*K2.jsonl"))
    for words in (("audit", cut, "-q"), ("verify", cut, "-q")):
        ran = command(*words)
        assert (ran.code, ran.err) == (0, "")
    assert command("audit", cut, *asked, "--check", "-q").code == 0
    assert lock(cut)["cut"]["fits"] == {"qwen2.5-vl": {"window": window}, "gemma3": {"window": 65536}}
    said = next(each for each in rejects(cut) if each["reason"] == "does-not-fit")
    assert f"tokens with the reserve, qwen2.5-vl takes {window:,}" in said["found"]
