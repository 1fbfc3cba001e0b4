"""What the viewer answers: the release, its tables, every example with its prompt, and what it keeps to find them."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from once import linked
from starlette.testclient import TestClient
from tiled import TASKS
from tiny import hashes
from viewing import viewer

import mmlongbench as mm

HEADED = "tiles/headed_K1.jsonl"
NUMBER = {name: at for at, name in enumerate(TASKS)}
"""The numbers of the datasets, and of their files."""
K2 = "documentQA/mmlongdoc_K2.jsonl"


@pytest.fixture(scope="module")
def asked(tiles: Path, scores: Path) -> TestClient:
    models = ("--count-as", "qwen2.5-vl,gemma3", "--fits", "gemma3=1K")
    return viewer(tiles, "--scores", scores, *models)


@pytest.fixture(scope="module")
def documents(finished: Path) -> TestClient:
    return viewer(finished)


def rows(client: TestClient, file: int = 0) -> list[dict[str, Any]]:
    """The rows of a file in the table of its dataset."""
    found: list[dict[str, Any]] = client.get(f"/data/rows-{file}.json").json()
    return found


# Pages.


def test_the_release_page_lists_datasets_and_the_lock_and_leads_to_rejects(
    asked: TestClient, documents: TestClient, tiles: Path
) -> None:
    text = asked.get("/").text
    for number, name in enumerate(TASKS):
        assert f'href="dataset-{number}.html">{name}</a>' in text
    assert "lock " in text
    assert "pymupdf" in text
    assert 'href="rejects.html#r0-long-form-answer"' in documents.get("/").text
    rejects = documents.get("/rejects.html").text
    assert 'id="r0-long-form-answer"' in rejects
    assert "samples.json, row 6" in rejects
    assert '<p id="line-1"><a href="#line-1">Line 1</a> of <code>rejects.jsonl</code></p>' in rejects
    assert "&#34;reason&#34;: &#34;long-form-answer&#34;" in rejects


def test_the_table_of_a_dataset_has_the_rows_of_its_files_with_the_scores_of_each_model(
    asked: TestClient, documents: TestClient
) -> None:
    assert 'data-files="[0, 1]"' in documents.get("/dataset-0.html").text
    found = rows(asked)
    assert [(each["url"], each["id"], each["placement"]) for each in found] == [
        (f"example-0-{3 * tile + at + 1}.html", f"tile-{tile}", f"depth {depth}")
        for tile in (0, 1)
        for at, depth in enumerate(("0", "0.4", "1"))
    ]
    assert [tuple(each["scores"]) for each in found] == [(1.0, 1.0), (1.0, 0.0), (1.0, 1.0)] * 2
    assert {each["length"] for each in rows(documents, 1)} == {"2K"}
    assert any("document type: Bark" in each["facets"] for each in rows(documents, 1))


def test_an_example_has_its_question_places_neighbours_scores_and_budget(asked: TestClient) -> None:
    text = asked.get("/example-0-2.html").text
    for part in (
        "tile-0",
        'id="previous" href="example-0-1.html"',
        'id="next" href="example-0-3.html"',
        'id="wrong" href="example-0-5.html"',
        'aria-label="depth"',
        "sub_em",
        "100.0",
        f"{HEADED}, example 2 of 6",
        "1,024 (1K) less",
        "which are kept free for the answer and the chat template",
    ):
        assert part in text, part
    assert asked.get("/example-0-6.html").status_code == 200
    assert asked.get("/example-0-0.html").status_code == 404
    beyond = asked.get("/example-0-7.html")
    assert (beyond.status_code, beyond.text) == (404, f"{HEADED}: there is no example 7\n")


def test_the_outline_says_where_each_block_is(asked: TestClient, tiles: Path) -> None:
    found = asked.get("/data/example-0-1-outline.json").json()
    example = [*mm.open_release(tiles).examples("headed", "1K")][1]
    assert found["total"] == example.tokens.total
    assert [role["name"] for role in found["roles"]] == ["instruction", "negative", "needle", "question"]
    roles = [found["roles"][role]["name"] for role in found["role"]]
    assert (roles[0], roles[-1], roles.count("needle"), len(roles)) == ("instruction", "question", 1, 14)
    assert found["start"] == sorted(found["start"])
    assert [roles[block] for block, bits in enumerate(found["marks"]) if bits] == ["needle"]
    assert found["needles"][0]["requested"] == 0.4
    assert found["start"][roles.index("needle")] == found["needles"][0]["start"]


def test_rows_have_texts_and_images_by_number(asked: TestClient, tiles: Path) -> None:
    shown = asked.get("/data/example-0-1-rows-0.json").json()
    pictures = [piece for row in shown for piece in row["pieces"] if "image" in piece]
    assert len(pictures) == 12
    for piece in pictures[:2]:
        small, whole = (asked.get(f"/images/{kind}-0-{piece['image']}.jpg") for kind in ("small", "large"))
        assert (small.status_code, small.headers["content-type"]) == (200, "image/jpeg")
        assert whole.headers["content-type"] == "image/png"
        assert whole.content == (tiles / "mmlb_image" / piece["path"]).read_bytes()
    assert asked.get("/data/example-0-1-rows-1.json").status_code == 404


def test_a_picture_is_found_without_reading_the_paths_of_all_others(
    tiles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, read = viewer(tiles), []

    def unquoted(path: str, errors: str) -> str:
        read.append(path)
        return unquote(path, errors=errors)

    monkeypatch.setattr("mmlongbench.web.viewer.index.unquote", unquoted)
    assert client.get("/images/large-0-2.jpg").status_code == 200
    assert len(read) == 1
    beyond = client.get("/images/large-0-9999.jpg")
    assert (beyond.status_code, beyond.text) == (404, f"{HEADED}: there is no image 9999\n")


def test_a_model_rescales_and_says_what_fits(asked: TestClient, tiles: Path) -> None:
    qwen, gemma = (asked.get(f"/data/example-0-1-model-{model}.json").json() for model in (0, 1))
    assert qwen["room"] is None
    assert gemma["room"] < gemma["total"]
    assert any("more than fit the window" in note for note in gemma["notes"])
    assert gemma["start"] == [sum(gemma["cost"][:block]) for block in range(len(gemma["cost"]))]
    assert asked.get("/data/example-0-1-model-2.json").status_code == 404
    wide = viewer(tiles, "--count-as", "gemma3", "--fits", "gemma3=64K").get("/data/example-0-1-model-0.json").json()
    left = wide["room"] - wide["total"]
    said = f"the prompt fits the window: {wide['total']:,} of {wide['room']:,} tokens, {left:,} left"
    assert said in wide["notes"]


def test_messages_are_those_of_the_prompt_with_paths_below_the_release(asked: TestClient, tiles: Path) -> None:
    found = asked.get("/data/example-0-1-messages.json").json()
    example = [*mm.open_release(tiles).examples("headed", "1K")][1]
    urls = [part["image_url"]["url"] for part in found[0]["content"] if part["type"] == "image_url"]
    assert urls == [f"mmlb_image/{path}" for path in example.prompt.images]
    own = json.loads(json.dumps(example.messages()))
    texts = [[part["text"] for part in said[0]["content"] if part["type"] == "text"] for said in (found, own)]
    assert texts[0] == texts[1]


def test_what_a_longer_context_adds_is_marked_and_lengths_are_linked(documents: TestClient) -> None:
    text = documents.get("/example-1-1.html").text
    assert "are not in the context of 1K" in text
    assert '<a class="same-unit" href="example-0-1.html">1K</a>' in text
    short, long = (documents.get(f"/data/example-{file}-0-outline.json").json() for file in (0, 1))
    context = [block for block, role in enumerate(long["role"]) if long["roles"][role]["look"] != "frame"]
    assert long["added"] == [block for block in context if long["key"][block] not in set(short["key"])] != []
    roles = [long["roles"][role]["name"] for role in long["role"]]
    assert (roles[0], roles[-1], set(roles[1:-1])) == ("instruction", "question", {"own", "padding"})


def test_a_long_text_is_folded_and_given_whole_when_asked_for(copy: Path) -> None:
    path = copy / "mmlb_data/tiles/inline_K1.jsonl"
    record = json.loads(path.read_text("utf-8").splitlines()[0])
    record["units"] = [["", "word " * 5000, ""], *record["units"]]
    path.write_text(json.dumps(record) + "\n", "utf-8")
    client, number = viewer(copy), NUMBER["inline"]
    shown = client.get(f"/data/example-{number}-0-rows-0.json").json()
    block, piece = next((row["block"], piece) for row in shown for piece in row["pieces"] if piece.get("folded"))
    assert sum(map(len, piece["t"])) < 5000 < piece["n"]
    whole = client.get(f"/data/example-{number}-0-text-{block}-{piece['piece']}.json").json()["t"]
    assert len("".join(whole)) == piece["n"]
    assert "".join(whole).startswith("".join(piece["t"])[:50])
    assert client.get(f"/data/example-{number}-0-text-999-0.json").status_code == 404


@pytest.mark.parametrize(
    ("name", "kind"),
    [("page.css", "text/css"), ("view.css", "text/css"), ("view.js", "text/javascript"), ("view.svg", "image/svg+xml")],
)
def test_assets_have_their_types(asked: TestClient, name: str, kind: str) -> None:
    assert asked.get(f"/assets/{name}").headers["content-type"].startswith(kind)


def test_every_asset_of_a_page_is_served(asked: TestClient) -> None:
    for address in ("/", "/dataset-0.html", "/example-0-1.html", "/report.html"):
        for asset in re.findall(r'(?:src|href)="(assets/[^"]+)"', asked.get(address).text):
            assert asked.get(f"/{asset}").status_code == 200, asset


@pytest.mark.parametrize(
    "path",
    [
        *("/nothing", "/dataset-99.html", "/example-99-1.html", "/data/example-99-0-outline.json", "/data/rows-9.json"),
        *("/data/example-0-99-outline.json", "/images/small-0-9999.jpg", "/images/large-99-0.jpg", "/assets/show.css"),
        *("/assets/..%2fkit.py", "/review.html", "/review-1.html"),
    ],
)
def test_what_is_not_there_is_not_found(asked: TestClient, path: str) -> None:
    answer = asked.get(path)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


# The index.


def test_each_example_is_found_and_nothing_is_written_into_the_release_or_indexed_twice_by_the_same_code(
    finished: Path, calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = hashes(finished)
    client = viewer(finished)
    records = [json.loads(line) for line in (finished / "mmlb_data" / K2).read_bytes().splitlines()]
    assert [each["id"] for each in rows(client, 1)] == [each["id"] for each in records]
    for number, record in enumerate(records):
        page = json.dumps(client.get(f"/data/example-1-{number}-rows-0.json").json())
        assert record["question"] in page
        assert all(path in page for path in record["page_list"])
    assert hashes(finished) == before
    del calls[:]
    assert len(rows(viewer(finished), 1)) == len(records)
    assert calls == []
    monkeypatch.setattr("mmlongbench.web.viewer.viewed.package_sha256", lambda name: f"other code of {name}")
    assert len(rows(viewer(finished), 1)) == len(records)
    assert calls == ["index_file"] * 2


def test_a_changed_file_is_refused_by_an_older_index_and_indexed_again(copy: Path) -> None:
    client = viewer(copy)
    path = copy / "mmlb_data" / HEADED
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    old = client.get("/data/example-0-0-rows-0.json")
    assert (old.status_code, "has changed since the viewer was started" in old.text) == (404, True)
    again = [each["placement"] for each in rows(viewer(copy))]
    assert again == ["depth 0.4", "depth 1", "depth 0", "depth 0.4", "depth 1"]


def test_a_line_that_is_no_record_is_a_row_that_says_why_and_one_without_an_id_has_its_number(copy: Path) -> None:
    path = copy / "mmlb_data" / HEADED
    first, second, *others = path.read_bytes().splitlines(keepends=True)
    wrong = json.dumps(json.loads(second) | {"units": 7}).encode()
    path.write_bytes(b"".join([first, b"{\n", wrong + b"\n", b"\n", *others]))
    client = viewer(copy)
    found = rows(client)
    assert [(each["id"], each["url"]) for each in found[:2]] == [
        ("tile-0", "example-0-1.html"),
        ("example 2", "example-0-2.html"),
    ]
    assert len(found) == 7
    text = client.get("/example-0-2.html").text
    assert "<h1>example 2</h1>" in text
    assert f"{HEADED}, example 2: line 2: expected one JSON object" in text
    assert f"{HEADED}, example 3: " in client.get("/example-0-3.html").text
    assert client.get("/data/example-0-1-outline.json").status_code == 404
    assert client.get("/data/example-0-3-outline.json").status_code == 200


def test_public_files_of_others_open_without_lock_items_and_images(finished: Path, tmp_path: Path) -> None:
    shutil.copytree(finished / "mmlb_data", tmp_path / "mmlb_data")
    for path in (tmp_path / "mmlb_data").rglob("*.jsonl"):
        lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        bare = [{key: value for key, value in line.items() if key != "tokens"} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in bare), "utf-8")
    client = viewer(tmp_path)
    assert [[each["length"] for each in rows(client, file)] for file in (0, 1)] == [["1K"] * 6, ["2K"] * 6]
    page = client.get("/example-1-1.html").text
    assert "estimated" in page
    images = json.dumps(client.get("/data/example-1-0-rows-0.json").json()).count('"image"')
    assert images > 0
    assert client.get("/images/small-1-0.jpg").status_code == 404


def test_items_that_are_not_those_of_the_prompt_are_said_and_not_used(finished: Path, tmp_path: Path) -> None:
    release = linked(finished, tmp_path / "copy")
    items = release / "items/documentQA"
    shutil.copy(items / "mmlongdoc_K2.parquet", items / "mmlongdoc_K1.parquet")
    client = viewer(release)
    pages = [client.get(f"/example-0-{number}.html").text for number in range(1, 7)]
    unfit = [page for page in pages if "see `mmlongbench verify`" in page or "see <code>" in page]
    assert unfit
    for page in unfit:
        assert "units are the parts of the prompt, and their tokens are estimated" in page
        assert "has no items" not in page


@pytest.mark.parametrize("part", ["rows", "units", "records"])
def test_an_index_that_is_damaged_is_named_and_made_again(
    families: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "mmlb_data/ICL").mkdir(parents=True)
    # one object for all records, so that the index keeps copies of them
    shutil.copy(families / "mmlb_data/ICL/food101_K8.json", tmp_path / "mmlb_data/ICL")
    client = viewer(tmp_path, "--images", families / "mmlb_image")
    kept = tmp_path / "cache/mmlongbench/view/index"
    for path in kept.glob(f"*.{part}"):
        path.write_bytes(b"?" * 100_000)
    answer = client.get("/data/example-0-0-outline.json")
    assert answer.status_code == 404
    assert "is no index" in answer.text
    assert ".head and start again" in answer.text
    for path in kept.glob("*.head"):
        path.unlink()
    again = viewer(tmp_path, "--images", families / "mmlb_image")
    assert again.get("/data/example-0-0-outline.json").json()["total"] > 0
