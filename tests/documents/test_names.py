"""Names of documents as folders: kept where they can be, else safe, stable, and of one document only."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.documents.names import LABEL_WIDTH, distinct_labels, folder_names, label, safe_name
from mmlongbench.prompt import commands_in

AWKWARD = ["", ".", "..", "...", ".tmp-1", "-rf", " a", "a ", "a.", "a/b", "a\\b", 'a"b', "<image>", "home page"]
AWKWARD += ["Page", "a\x00b", "a\nb", "a\x85b", "a\u2028b", "a\ud800b", "页" * 60]
AWKWARD += ["é", "e\u0301", "É", "ß", "SS", "ss", "A", "a"]
ids_of_documents = st.sets(st.sampled_from(AWKWARD) | st.text(st.characters(), max_size=12), max_size=12)


def folded(name: str) -> str:
    """Return a name as a file system sees it that ignores case and the encoding of accents."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


@given(ids_of_documents)
def test_each_document_has_a_folder_of_its_own_whatever_the_case(ids: set[str]) -> None:
    names = folder_names(ids)
    assert names.keys() == ids
    assert len({folded(name) for name in names.values()}) == len(ids)


def test_a_name_that_a_model_reads_as_a_command_is_replaced() -> None:
    (name,) = folder_names(["scan[IMG]7"]).values()
    assert commands_in(name) == ()


@given(ids_of_documents)
def test_no_name_holds_what_public_loaders_split_by(ids: set[str]) -> None:
    for name in folder_names(ids).values():
        assert "page" not in name
        assert not set(name) & set('"/\\<>:|?*')
        assert not any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in name)
        assert name.strip(" .") == name
        assert 0 < len(name.encode()) <= 150


@given(st.permutations(AWKWARD))
def test_the_order_of_the_documents_does_not_matter(ids: list[str]) -> None:
    assert folder_names(ids) == folder_names(AWKWARD)


@given(ids_of_documents, ids_of_documents)
def test_unrelated_documents_do_not_change_a_name(ids: set[str], others: set[str]) -> None:
    mine = {folded(id) for id in ids}
    unrelated = {id for id in others if folded(id) not in mine}
    assert folder_names(ids).items() <= folder_names(ids | unrelated).items()


def test_a_name_that_looks_made_is_made_anew() -> None:
    made = safe_name("home page")
    ids = ["home page", made, made.upper(), safe_name(made), safe_name(made).replace("-", "-\ufb00", 1)]
    names = folder_names(ids)
    assert names["home page"] == made
    assert len({folded(name) for name in names.values()}) == len(ids)


@pytest.mark.parametrize(
    "id",
    [
        "2310.07609v1",
        "Annual Report (final) 2019",
        "报告",
        "rapport d'été",
        "Pages",
        "{doc_id}",
        "550e8400-e29b-41d4-a716-446655440000",
        "a" * 150,
        "é" * 75,
    ],
)
def test_a_name_that_can_be_kept_is_kept(id: str) -> None:
    assert folder_names([id]) == {id: id}


@pytest.mark.parametrize("id", ["a" * 151, "é" * 76, "home page", ".hidden", "..", "a/b", "../../etc/passwd"])
def test_a_name_that_cannot_be_kept_is_made(id: str) -> None:
    assert folder_names([id]) == {id: safe_name(id)}


def test_known_names() -> None:
    names = folder_names(["Report", "report", "other"])
    assert (names["other"], names["Report"][:7], names["report"][:7]) == ("other", "Report-", "report-")
    assert safe_name("home page") == "home_pg-900cd0505dda3de0"
    assert safe_name("../PAGE:\ud800") == "pg-033d9f1a417e1a66"
    assert safe_name("页").startswith("document-")


@given(st.text())
def test_a_label_is_what_the_public_template_prints(name: str) -> None:
    assert label(name) == f"{name:.15}"
    assert len(label(name)) <= LABEL_WIDTH == 15


similar = st.sets(
    st.builds(
        "{}{}{}".format,
        st.sampled_from(["annual-report-acme-", "annual-report", "x" * 140, "Été 2019 – "]),
        st.integers(0, 120),
        st.sampled_from(["", "-final", " b", "x"]),
    )
    | st.text(max_size=30),
    max_size=12,
)


@given(similar)
def test_distinct_labels_are_beginnings_of_names_and_never_equal(names: set[str]) -> None:
    labels = distinct_labels(names)
    assert labels.keys() == names
    assert len(set(labels.values())) == len(names)
    for name, shown in labels.items():
        assert name.startswith(shown)
        assert len(shown) >= min(len(name), LABEL_WIDTH)


@given(similar)
def test_a_label_is_longer_only_if_another_name_begins_with_the_same_characters(names: set[str]) -> None:
    for name, shown in distinct_labels(names).items():
        is_alone = all(label(other) != label(name) for other in names - {name})
        assert not is_alone or shown == label(name)


@pytest.mark.parametrize(
    "expected",
    [
        {"annual-report-acme-2019": "annual-report-acme-2019", "annual-report-acme-2020": "annual-report-acme-2020"},
        {"annual-report-2019": "annual-report-2019", "annual-report-2019-final-b": "annual-report-2019-final"},
        {"annual-report-of acme inc": "annual-report-of acme", "annual-report-of bolt inc": "annual-report-of bolt"},
        {"x" * 149 + "a": "x" * 149 + "a", "x" * 149 + "b": "x" * 149 + "b"},
        {"harbour-dredging-2019": "harbour-dredgin", "report": "report"},
        {},
    ],
)
def test_labels_that_are_known_by_heart(expected: dict[str, str]) -> None:
    assert distinct_labels(expected) == expected
