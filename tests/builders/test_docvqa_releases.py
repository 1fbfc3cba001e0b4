"""Releases of document questions: what a build says about its source, what loaders read, and what `doctor` suspects."""

import json
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import needs
import pymupdf
import pytest
import yaml
from hub_forms import json_lines_of
from model_server import good, serving
from once import once
from one_dataset import OneDataset, built, manifest, ran, write_lines
from PIL import Image
from samples import Sources
from tiny import command, draw_pdf

import mmlongbench as mm

ROWS = Path(__file__).with_name("longdocurl_rows.jsonl")


def pdf(path: Path, *pages: str) -> None:
    """Write a document of one line of text a page; an empty text is a page with a black square."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with pymupdf.open() as document:
        for text in pages:
            page = document.new_page(width=1200, height=200)
            if text:
                page.insert_text((20, 40), text)
            else:
                page.draw_rect((20, 20, 90, 90), fill=(0, 0, 0))
        document.save(path, no_new_id=True)


# --- documents of one's own -------------------------------------------------------------------------------------------


def reports(folder: Path, *lines: str, **more: Any) -> dict[str, Any]:
    """A dataset of own questions about two documents, `harbour` and `lighthouse`, of two small pages each."""
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    for name in ("harbour", "lighthouse"):
        draw_pdf(folder / f"documents/{name}.pdf", 2)
    (folder / "questions.csv").write_text("\n".join(lines) + "\n", "utf-8")
    source = {"questions": folder / "questions.csv", "documents": folder / "documents"}
    return {
        "name": "reports",
        "builder": "docvqa",
        "reader": "own_documents",
        "source": source,
        "lengths": ["2K"],
        **more,
    }


def test_a_build_names_unused_columns_mistyped_documents_and_long_facets(tmp_path: Path) -> None:
    dataset = reports(
        tmp_path,
        "doc,question,answer,pages,accepted,region,reviewer,notes",
        "harbour,Who?,I,1,me; We,north,AB,fine",
        "lighthouse.PDF,Why?,for it has always been so,1,,north,AB,fine",
        f"harbour,Which?,one,1,,{'x' * 101},AB,fine",
        "harbor,Who?,I,1,,north,AB,fine",
        "zzzzz,Who?,I,1,,north,AB,fine",
        options={"facets": ["region"]},
    )
    path = manifest(tmp_path / "m.yaml", dataset)
    found = mm.build(path, tmp_path / "out")
    (note,) = found.notes
    assert all(fact in note for fact in ("'reports'", "questions.csv", "reviewer, notes", "options.facets"))
    release = OneDataset(tmp_path / "out", "reports", "")
    assert release.questions["rejected"] == {"missing-document": 2, "long-facet": 1}
    todos = [row["todo"] for row in release.rejects() if row["reason"] == "missing-document"]
    assert todos == ["did you mean 'harbour'?", "add it to the sources, or correct its name"]
    short, long = release.records(2)
    assert (short["answer_length"], long["answer_length"]) == ("short", "long")
    assert (short["facets"], "reviewer" in short) == ({"region": "north"}, False)
    again = mm.build(path, tmp_path / "out")
    assert (again.was_complete, again.notes) == (True, found.notes)


def test_a_document_of_another_case_or_form_or_of_two_folders_is_told_from_a_missing_one(tmp_path: Path) -> None:
    rows = (
        "doc,question,answer,pages",
        "HARBOUR,Who?,I,1",
        "e\u0301te\u0301,Who?,I,1",
        "a/twice,Who?,I,1",
        "harbour,Who?,I,1",
    )
    dataset = reports(tmp_path, *rows)
    for pages, name in enumerate(("\u00e9t\u00e9", "a/twice", "b/twice"), 1):
        (tmp_path / f"documents/{name}.pdf").parent.mkdir(exist_ok=True)
        draw_pdf(tmp_path / f"documents/{name}.pdf", pages)
    (case, form, twice) = built(tmp_path / "out", dataset).rejects()
    assert case["todo"] == "did you mean 'harbour'?"
    assert "did you mean '\u00e9t\u00e9'" in form["todo"]
    assert "'\\xe9t\\xe9' in ASCII" in form["todo"]  # the two look the same
    assert (twice["reason"], "a/twice.pdf, b/twice.pdf" in twice["found"]) == ("two-documents-of-one-name", True)


@pytest.mark.parametrize(
    ("facet", "said"), [("regoin", "did you mean 'region'"), ("doc_type", "the reader uses doc_type itself")]
)
def test_a_facet_without_its_column_is_refused_before_anything_is_built(facet: str, said: str, tmp_path: Path) -> None:
    lines = ("doc,question,answer,pages,region", "harbour,Who?,I,1,north")
    refused = ran(tmp_path / "out", reports(tmp_path, *lines, options={"facets": [facet]}))
    assert refused.code == 2
    assert said in refused.err
    assert not (tmp_path / "out").exists()


# --- anchors and retrieved pages --------------------------------------------------------------------------------------


def test_the_lock_the_plan_and_reports_say_how_unanswerable_questions_are_anchored(
    source: Path, finished: Path, tmp_path: Path
) -> None:
    lock = json.loads((finished / "build.lock.json").read_bytes())
    noted = lock["datasets"]["mmlongdoc"]["questions"]["noted"]
    assert noted.pop("unanswerable anchor drawn") == 1  # pages of numbers
    assert noted == {"answer read as Integer": 2, "answer read as List": 1, "answer read as None": 1} | {
        "answer read as String": 3
    }
    for setting, said in (("best_match", "drawn"), ("middle", "middle")):
        planned = command("plan", source / "tiny.yaml", "--set", f"options.unanswerable_anchor={setting}")
        assert f"unanswerable anchor {said}: 1" in planned.out
    predictions = [
        {"file": example.file, "id": example.id, "prediction": str(example.answer)}
        for length in ("1K", "2K")
        for example in mm.open_release(finished).examples("mmlongdoc", length)
    ]
    write_lines(tmp_path / "m.jsonl", predictions)
    scored = command("score", finished, tmp_path / "m.jsonl", "--out", tmp_path / "scores")
    assert scored.code == 0, scored.err
    facets = json.loads(command("report", tmp_path / "scores", "--json").out)["facets"]
    (cells,) = [facet["cells"] for facet in facets if facet["title"] == "anchor"]
    assert {cell["row"]: cell["examples"] for cell in cells if cell["column"] == "all"} == {"answer": 10, "drawn": 2}


def test_a_release_says_how_many_answer_pages_were_found(tmp_path: Path) -> None:
    pdf(tmp_path / "documents/alder.pdf", "bark", "wood of the marsh", "leaf")
    pdf(tmp_path / "documents/birch.pdf", "root", "marsh")
    pdf(tmp_path / "documents/scan.pdf", "")  # without any text
    table = (
        "doc,question,answer,pages",
        "alder,Which wood?,marsh wood,2; 3",
        "birch,Which root?,long,2",
        "scan,What?,a,1",
    )
    (tmp_path / "questions.csv").write_text("\n".join(table) + "\n", "utf-8")
    source = {"questions": tmp_path / "questions.csv", "documents": tmp_path / "documents"}
    options = {"context": "retrieved", "top_k": 1, "gold_pages": "as_found"}
    about = {"name": "trees", "builder": "docvqa", "reader": "own_documents", "source": source, "reserve": 64}
    dataset = {**about, "lengths": ["2K"], "admission_length": "2K", "options": options}
    release = built(tmp_path / "out", dataset)
    planned = command("plan", tmp_path / "out.yaml")
    recall = {"1": 0.25, "5": 0.25, "10": 0.25}
    assert release.questions["rejected"] == {"no-ranked-pages": 1}
    assert release.questions["retrieval"] == {
        "by": "bm25",
        "questions": 2,
        "gold_pages": 3,
        "ranked_gold_pages": 1,
        "recall": recall,
    }
    for said in (planned.out, release.out):
        assert "ranked by bm25: recall@1 0.250, @5 0.250, @10 0.250 over 2 questions; 2 of 3 not ranked" in said
    audited = command("audit", release.folder, "--json")
    assert (audited.code, json.loads(audited.out)["recall"]) == (0, recall)
    assert "page_retrieval" not in json.loads((release.folder / "build.lock.json").read_bytes())["manifest"][0]


# --- what others read -------------------------------------------------------------------------------------------------

# As the public loader has them: its template, its page line, its question
USER = (
    "You are given a document with text and images, and a question. Answer the question as concisely as you can, using "
    "a single phrase or sentence if possible. If the question cannot be answered based on the information in the "
    "article, write 'Not answerable.' Write your answer in the following format:\nAnswer: [answer]\n\n{context}\n\n"
    "Question: {question}"
)
PAGE = "Document {doc_id:.15}: <image>"
ASKED = "Based on Document {doc_name:.15}, answer the following question. "


def check_record(release: mm.Release, example: mm.Example) -> None:
    """A public loader makes the prompt, a public scorer can read the answer, and every image is there."""
    row = example.record
    context = "\n\n".join(PAGE.format(doc_id=path.split("/")[-2]) for path in row["page_list"])
    question = ASKED.format(doc_name=row["doc_name"]) + row["question"]
    assert USER.format(context=context, question=question) + "\nAnswer:" == example.prompt.rendered()
    if row["answer_format"] == "List":
        assert all(isinstance(element, str) for element in json.loads(row["answer"]))
    if row["answer_format"] == "Integer":
        int(row["answer"].replace(",", ""))
    assert (row["answer_format"] == "None") == (row["answer"] == "Not answerable") == (row["ans_page_list"] == [])
    folder = f"mmlongbench-doc/{row['doc_name']}/{row['doc_name']}"
    assert {f"{folder}_page{page}.jpg" for page in row["ans_page_list"]} <= set(row["page_list"])
    for path in row["page_list"]:
        with Image.open(release.path / "mmlb_image" / path) as picture:
            assert picture.format == "JPEG"


@pytest.mark.parametrize(("release", "lengths"), [("finished", ("1K", "2K")), ("families", ("8K", "16K"))])
def test_public_code_makes_the_prompt_and_reads_the_answer_of_a_record_at_every_length(
    release: str, lengths: Sequence[str], request: pytest.FixtureRequest
) -> None:
    opened = mm.open_release(request.getfixturevalue(release))
    short, long = (list(opened.examples("mmlongdoc", length)) for length in lengths)
    assert [example.id for example in short] == [example.id for example in long][: len(short)]
    for example in (*short, *long):
        check_record(opened, example)
    pages = {example.id: set(example.record["page_list"]) for example in long}
    assert all(set(example.record["page_list"]) <= pages[example.id] for example in short)


COLUMNS = {
    **dict.fromkeys(("id", "doc_name", "question", "answer", "answer_format", "doc_type"), "Value('string')"),
    **dict.fromkeys(("page_label", "gaps", "anchor", "evidence_position"), "Value('string')"),
    **dict.fromkeys(("page_list", "answer_sources"), "List(Value('string'))"),
    **dict.fromkeys(("ans_page_list", "anchor_page_list"), "List(Value('int64'))"),
    "question_names_page": "Value('bool')",
    "length": "Value('int64')",
    "tokens": "{'text': Value('int64'), 'image': Value('int64'), 'reserve': Value('int64')}",
}


@pytest.mark.rare
@pytest.mark.parametrize("lengths", [["1"], ["2"], ["1", "2"], ["2", "1"]], ids=" then ".join)
def test_datasets_reads_every_column_with_one_type_at_every_length(
    finished: Path, lengths: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=DeprecationWarning)  # of what `datasets` imports
        import datasets

    datasets.disable_progress_bars()
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    files = [str(finished / f"mmlb_data/documentQA/mmlongdoc_K{length}.jsonl") for length in lengths]
    rows = datasets.load_dataset("json", data_files=files, split="train", cache_dir=str(tmp_path))
    assert {name: repr(feature) for name, feature in rows.features.items()} == COLUMNS
    assert len(rows) == sum(len(json_lines_of(Path(file))) for file in files)


def test_a_text_dataset_is_asked_the_same_questions_over_the_same_pages(
    sample: Callable[[str], Sources], families: Path, tmp_path: Path
) -> None:
    about = {"name": "texts", "builder": "docvqa", "reader": "longdocurl", "source": sample("longdocurl")}
    options = {"pages_as": "text", "max_answer_words": 5}
    built(tmp_path / "out", {**about, "drawn_as": "longdocurl", "options": options}, "--limit", 2)
    images, texts = (
        [(example.id, example.record["page_list"]) for example in mm.open_release(release).examples(name, "8K")]
        for release, name in ((families, "longdocurl"), (tmp_path / "out", "texts"))
    )
    assert images == texts
    assert len(images) == 2


@pytest.mark.rare
def test_the_real_rows_of_longdocurl_are_about_the_pages_that_show_their_answers(tmp_path: Path) -> None:
    """Page 42 from 1 is file 41 from 0, which shows Table 4.16; its published answer is long-form."""
    real = needs.shared("real", "longdocurl")
    source = {"questions": real / "LongDocURL.jsonl", "page_images": real / "pdf_pngs"}
    about = {"name": "longdocurl", "builder": "docvqa", "reader": "longdocurl", "pages": {"dpi": 72}}
    refused = ran(tmp_path / "none", {**about, "source": source, "options": {"max_answer_words": 5}})
    assert "missing-document" in refused.err
    assert "long-form-answer" in refused.err
    release = built(tmp_path / "out", {**about, "source": {**source, "questions": ROWS}})
    assert (release.questions["kept"], release.questions["rejected"]) == (13, {})
    for record in release.records():
        shown = [int(path.split("page")[1][:-4]) for path in record["page_list"]]
        assert set(record["ans_page_list"]) <= set(shown)
        first, last = map(int, record["span"].split("-"))
        assert first <= shown[0] <= shown[-1] <= last
    with Image.open(release.folder / "mmlb_image/longdocurl/4151603/4151603_page41.jpg") as image:
        assert (image.format, image.size) == ("JPEG", (596, 842))


# --- open questions ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def opened(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six open questions of M-LongDoc; not to be changed."""

    def make(folder: Path) -> None:
        about = {"name": "m_longdoc", "builder": "docvqa", "reader": "m_longdoc", "source": sample("m_longdoc")}
        options = {"answer_form": "long", "facets": ["subject"]}
        built(folder / "release", {**about, "pages": {"dpi": 150}, "options": options}, "--limit", 6)

    return once(tmp_path_factory, "m-longdoc", make) / "release"


def test_a_release_of_open_questions_has_no_answers_and_passes_audit_and_shortcuts(opened: Path) -> None:
    examples = list(mm.open_release(opened).examples("m_longdoc", "8K"))
    assert len(examples) == 6
    for record in (example.record for example in examples):
        assert (record["answer"], record["answer_form"], record["answer_length"]) == ("", "long", "long")
        assert record["facets"]["subject"]
        assert record["tokens"]["reserve"] == 512
    audited = command("audit", opened)
    assert audited.code == 0, audited.out
    assert "answer from priors" not in command("shortcuts", opened, "--all").out.replace("(no", "")


@pytest.mark.parametrize("profile", ["paper", "official"])
def test_a_committee_grades_answers_without_a_reference(opened: Path, profile: str, tmp_path: Path) -> None:
    examples = mm.open_release(opened).examples("m_longdoc", "8K")
    said = [{"file": example.file, "id": example.id, "prediction": "It rose."} for example in examples]
    write_lines(tmp_path / "m.jsonl", said)
    with serving(lambda request: good(score=4)) as server:
        judges = [part for name in "abc" for part in ("--judge-model", name)]
        args = ("score", opened, tmp_path / "m.jsonl", "--profile", profile, "--judge-url", server.url, *judges)
        scored = command(*args, "--images", opened / "mmlb_image", "--out", tmp_path / "scores")
    assert scored.code == 0, scored.err
    assert "judge-committee" in scored.out
    assert " 75.0" in scored.out


# --- suspects ---------------------------------------------------------------------------------------------------------

FILLER = "the committee met again and the minutes were read and approved by all present"
FACTS = ("Maren Holt", "Tern Rock", "Veldersund", "the Ellery lighthouse", "4183 barges", "Stannow Quay")
NAMED = tuple(f"{FILLER}. What is named is {fact}. {number}" for number, fact in enumerate(FACTS, 101))
WHAT = "What is named?"
KEEPER = "Who is the keeper of the harbour?"
Case = tuple[tuple[str, ...], list[tuple[str, str, int]], list[tuple[str, object, str]]]
SUSPECTS: dict[str, Case] = {
    "right": (NAMED, [(WHAT, fact, page) for page, fact in enumerate(FACTS, 1)], []),
    "counted otherwise": (
        (*NAMED, FILLER),
        [(WHAT, fact, page) for page, fact in enumerate(FACTS, 2)],
        [("numbering-off", [page], "1 page before") for page in range(1, 7)],
    ),
    "elsewhere": (
        (
            FILLER,
            *NAMED[1:4],
            f"{FILLER} lighthouses of the harbour are described",  # one word of the question, the other page has two
            f"{FILLER} the keeper of the harbour is Maren Holt",
        ),
        [(KEEPER, "Maren Holt", 5)],
        [("answer-on-another-page", [6], "'Maren Holt' is not on page 5, but on page 6")],
    ),
    "elsewhere by one word": (  # an answer of one word: the other page must have one more word of the question
        (FILLER, f"{FILLER} lighthouses of the harbour", f"{FILLER} the keeper of the harbour is from Veldersund"),
        [(KEEPER, "Veldersund", 2)],
        [("answer-on-another-page", [3], "'Veldersund' is not on page 2, but on page 3")],
    ),
    "by chance": (
        (f"{FILLER}: the mean depth of the channel", f"{FILLER} 4183"),
        [("What is the mean depth of the channel?", "4183", 1)],
        [],
    ),
    "beyond": (NAMED, [(WHAT, "Veldersund", 103)], [("page-beyond-the-document", [3], "page 103 of 6")]),
    "another page": (
        NAMED,
        [("Which colour has page 12?", "blue", 2)],
        [("question-names-another-page", None, "names page 12, its answer page is 2")],
    ),
    "a printed number": (NAMED, [("Which colour has page 102?", "blue", 2)], []),
}
"""Pages, (question, answer, annotated page), and (kind, corrected pages, evidence) of each finding."""


def test_doctor_finds_what_may_be_wrong_and_raises_no_false_alarm(tmp_path: Path) -> None:
    rows, expected = [], []
    for name, (pages, asked, findings) in SUSPECTS.items():
        pdf(tmp_path / f"documents/{name}.pdf", *pages)
        expected += [(name, *finding) for finding in findings]
        common = {"doc_id": f"{name}.pdf", "doc_type": "Log", "evidence_sources": "[]", "answer_format": "Str"}
        for question, answer, page in asked:
            rows.append({**common, "question": question, "answer": answer, "evidence_pages": f"[{page}]"})
    (tmp_path / "samples.json").write_text(json.dumps(rows), "utf-8")
    source = {"samples": tmp_path / "samples.json", "documents": tmp_path / "documents"}
    dataset = {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": source}
    path = manifest(tmp_path / "m.yaml", dataset)
    examined = command("doctor", path, "--json")
    assert examined.code == 0, examined.err
    found = [json.loads(line) for line in examined.out.splitlines()]
    said = [(rows[int(each["id"].split("_")[1])]["doc_id"][:-4], each) for each in found]
    assert [(name, each["kind"]) for name, each in said] == [(name, kind) for name, kind, _, _ in expected]
    for (_, each), (_, _, right, evidence) in zip(said, expected, strict=True):
        assert each["correction"] == ({"evidence_pages": right} if right else {})
        assert evidence in each["evidence"]

    assert {each["place"] for each in found} == {f"samples.json, row {each['id'].split('_')[1]}" for each in found}

    drafted = command("doctor", path, "--out", tmp_path / "errata.yaml")
    assert "page-beyond-the-document" in drafted.out
    assert f"{found[0]['id']} ({found[0]['place']})  {found[0]['kind']}: " in drafted.out
    errata = yaml.safe_load((tmp_path / "errata.yaml").read_text("utf-8"))
    assert len(errata) == sum(1 for _, _, right, _ in expected if right)
    assert all(erratum["source"].startswith("mmlongbench doctor: ") for erratum in errata.values())
    before = built(tmp_path / "before", {**dataset, "lengths": ["2K"]})
    after = built(tmp_path / "after", {**dataset, "lengths": ["2K"], "errata": str(tmp_path / "errata.yaml")})
    assert (before.questions["kept"], after.questions["kept"]) == (len(rows) - 1, len(rows))


def test_doctor_names_a_row_whose_id_stood_before(tmp_path: Path) -> None:
    pdf(tmp_path / "documents/bells.pdf", "The bell weighs 12 tons.")
    rows = [
        {"id": id, "doc": "bells.pdf", "question": f"How many tons? {id}", "answer": "12", "pages": [1]} for id in "aba"
    ]
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    source = {"questions": tmp_path / "rows.jsonl", "documents": tmp_path / "documents"}
    dataset = {"name": "bells", "builder": "docvqa", "reader": "own_documents", "source": source}
    (found,) = map(json.loads, command("doctor", manifest(tmp_path / "m.yaml", dataset), "--json").out.splitlines())
    assert (found["id"], found["kind"]) == ("a", "duplicate-id")
    assert "rows.jsonl, line 3" in found["evidence"]
    assert "rows.jsonl, line 1" in found["evidence"]


def test_doctor_compares_every_answer_that_is_specific_and_counts_the_others_by_reason(tmp_path: Path) -> None:
    pages = (f"{FILLER} Port Elleray", f"{FILLER} of the harbour", FILLER, f"{FILLER} 52 barges")
    pdf(tmp_path / "documents/log.pdf", *pages)
    pdf(tmp_path / "documents/scan.pdf", "", "")
    rows = [
        (
            "log",
            "Which town is the harbour in?",
            "Port Elleray",
            2,
        ),  # its words are on page 2
        ("log", "Which barges?", "52", 2),
        ("log", "Who is named?", "Maren Holt of Tern Rock", 3),
        ("scan", "Who is named?", "Maren Holt", 1),
    ]
    fields = ("doc", "question", "answer", "pages")
    write_lines(tmp_path / "q.jsonl", [dict(zip(fields, row, strict=True)) for row in rows])
    source = {"questions": tmp_path / "q.jsonl", "documents": tmp_path / "documents"}
    path = manifest(
        tmp_path / "m.yaml", {"name": "logs", "builder": "docvqa", "reader": "own_documents", "source": source}
    )
    (found,) = map(json.loads, command("doctor", path, "--json").out.splitlines())
    assert (found["kind"], found["correction"]) == ("answer-on-another-page", {"pages": [1]})
    told = command("doctor", path).out
    reasons = ("its answer page has no text", "its answer is too short", "its answer stands on no page")
    assert "3 more rows" in told
    assert all(f"1  {reason}" in told for reason in reasons)


def test_a_manifest_that_cannot_be_examined_says_so(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    about = {"name": "lexsum", "builder": "summary", "reader": "multi_lexsum", "source": sample("multi_lexsum")}
    refused = command("doctor", manifest(tmp_path / "m.yaml", {**about, "reference_length": "16K"}))
    assert refused.code == 2
    assert "no builder of this manifest" in refused.err


@pytest.mark.rare
def test_the_real_subset_has_the_suspects_that_were_looked_at() -> None:
    """Each was checked by eye: the annotation is wrong in all of them."""
    real = needs.shared("real", "mmlongbench-doc")
    settings = ["--set", f"source.samples={real / 'samples.json'}", "--set", f"source.documents={real / 'documents'}"]
    asked = command("doctor", "mmlongdoc", *settings, "--json")
    found = {suspect["id"]: suspect for suspect in map(json.loads, asked.out.splitlines())}
    assert set(found) == {f"mmlongdoc_{row}" for row in (28, 109, 116, 142, 144, 153, 156, 157, 159)}
    corrections = {id: suspect["correction"] for id, suspect in found.items() if suspect["correction"]}
    assert corrections == {
        "mmlongdoc_28": {"evidence_pages": [24, 25]},
        "mmlongdoc_153": {"evidence_pages": [8, 9]},
        "mmlongdoc_157": {"evidence_pages": [36, 37]},
        "mmlongdoc_159": {"evidence_pages": [29]},
    }
