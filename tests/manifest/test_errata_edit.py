"""Errata in which one entry is changed: every other byte stays as it is."""

import pytest

from mmlongbench.manifest.errata import errata_of
from mmlongbench.manifest.errata_edit import edited, kept_ids

DROP = {"source": "z", "drop": True}
OTHER = "zz:\n  source: q\n  drop: true\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_that_a_source_is_right_is_said_once_and_can_be_undone(end: str) -> None:
    text = f'# head{end}# anna says that the source is right: "r1"{end}r2:{end}  source: x{end}  drop: true{end}'
    rest = f"# head{end}r2:{end}  source: x{end}  drop: true{end}"
    assert kept_ids(text) == {"r1": "anna"}
    assert edited(text, "r1") == rest
    again = edited(text, "r1", kept_by="anna")
    assert again.count("says that the source is right") == 1
    assert edited(edited(text, "r1", kept_by="bert"), "r1") == rest
    assert edited(edited(again, "r1", kept_by="anna"), "r1") == rest


@pytest.mark.parametrize("id", ["x" * 130, "a\nb", "a\u2028b", "? a", "a: b", "007", "true", "", "é\x85", "- x"])
def test_an_entry_with_any_id_is_changed_and_removed(id: str) -> None:
    first = edited(f"# head\n{OTHER}", id, {**DROP, "source": "y"})
    second = edited(f"{first}# note\nyy:\n  source: q\n  drop: true\n", id, DROP)
    assert {name: each.source for name, each in errata_of(second.encode(), "n").items()} == {
        "zz": "q",
        id: "z",
        "yy": "q",
    }
    assert edited(second, id) == f"# head\n{OTHER}# note\nyy:\n  source: q\n  drop: true\n"


def test_blank_lines_and_comments_after_an_entry_stay() -> None:
    after = "\n\n  # note on b\nb:\n  source: y\n  drop: true\n\n# end\n"
    text = f"a:\n  # in it\n  source: x\n  drop: true\n{after}"
    assert edited(text, "a", DROP) == f"a:\n  source: z\n  drop: true\n{after}"
    assert edited(text, "a") == after
    assert edited(text, "b") == text.partition("b:\n")[0] + "\n# end\n"


@pytest.mark.parametrize(
    "entry",
    [
        "{source: x, drop: true}",
        "{source: x,\n  drop: true}  # y",
        "\n  set: {a: [1,\n    2]}\n  source: |\n    one\n    # two",
        "\n  set: {a: b}\n  source: >-\n    one\n\n    two",
        "\n  set:\n    a:\n    - 1\n    - 'x\n\n      y'\n  source: x",
        "\n  set: {a: b}\n  source: several\n   words",
    ],
)
def test_an_entry_is_removed_as_it_was_written(entry: str) -> None:
    text = f"a: {entry}\n# after\n{OTHER}"
    assert "a" in errata_of(text.encode(), "n")
    assert edited(text, "a") == f"# after\n{OTHER}"
