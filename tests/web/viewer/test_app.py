"""Every address of the viewer: what it answers, and that nothing else is answered."""

import gc
import json
import shutil
import warnings
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from viewing import client, site_of

from mmlongbench.web.viewer.app import ASSETS
from mmlongbench.web.viewer.pictures import whole_file
from mmlongbench.web.viewer.site import Site


@pytest.fixture(scope="module")
def scores(tiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of two models; one has an example wrong."""
    folder = tmp_path_factory.mktemp("scores")
    site = site_of(tiles)
    file = next(file for file in site.viewed.files if file.dataset == "headed")
    for model, wrong in (("one", 2), ("two", -1)):
        lines = [
            {
                "model": model,
                "metric": "sub_em",
                "profile": "official",
                "is_own": True,
                "file": file.name,
                "dataset": "headed",
                "length": 1024,
                "id": row.id,
                "depth": row.placement,
                "status": "scored",
                "score": 0.0 if row.row == wrong else 1.0,
            }
            for row in site.index.file(file.number).rows
        ]
        (folder / f"{model}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def site(tiles: Path, scores: Path) -> Site:
    return site_of(tiles, "qwen2.5-vl,gemma3", ["gemma3=1K"], [scores])


@pytest.fixture(scope="module")
def asked(site: Site) -> TestClient:
    return client(site)


def headed(site: Site) -> tuple[int, str]:
    file = next(file for file in site.viewed.files if file.dataset == "headed")
    return file.number, file.name


def test_the_release_page_lists_datasets_lengths_and_the_lock(asked: TestClient, site: Site) -> None:
    text = asked.get("/").text
    for name in site.viewed.datasets:
        assert f">{name}</a>" in text
    assert "lock " + site.viewed.lock_id in text
    assert "pymupdf" in text


def test_rejects_lead_to_their_raw_rows(finished: Path) -> None:
    asked = client(site_of(finished))
    page = asked.get("/").text
    assert 'href="/rejects#r0-long-form-answer"' in page
    rejects = asked.get("/rejects").text
    assert 'id="r0-long-form-answer"' in rejects
    assert "samples.json, row 6" in rejects
    assert '<p id="line-1"><a href="#line-1">Line 1</a> of <code>rejects.jsonl</code></p>' in rejects
    assert "&#34;reason&#34;: &#34;long-form-answer&#34;" in rejects


def test_the_table_filters_sorts_and_pages(asked: TestClient, site: Site) -> None:
    number = site.viewed.datasets.index("headed")
    every = asked.get(f"/data/dataset/{number}/rows").json()
    assert every["total"] == len(every["rows"]) == 6
    assert [row["placement"] for row in every["rows"]][:3] == ["depth 0", "depth 0.4", "depth 1"]
    found = asked.get(f"/data/dataset/{number}/rows", params={"q": "TILE-1 0.4", "sort": "-tokens"}).json()
    assert [row["id"] for row in found["rows"]] == ["tile-1"]
    assert asked.get(f"/data/dataset/{number}/rows?q=nowhere").json()["total"] == 0
    worst = asked.get(f"/data/dataset/{number}/rows?sort=score").json()["rows"]
    assert worst[0]["scores"] == [0.0, 1.0]
    odd = asked.get(f"/data/dataset/{number}/rows", params={"sort": "__class__", "page": "-1", "length": "x" * 999})
    assert odd.json()["total"] == 0
    assert asked.get(f"/dataset/{number}").status_code == 200


def test_an_example_has_its_question_places_neighbours_and_scores(asked: TestClient, site: Site) -> None:
    _, name = headed(site)
    text = asked.get(f"/example/{name}/2").text
    assert "tile-0" in text
    assert f'id="previous" href="/example/{name}/1"' in text
    assert f'id="next" href="/example/{name}/3"' in text
    assert f'id="wrong" href="/example/{name}/3"' in text
    assert 'aria-label="depth"' in text
    assert "sub_em" in text
    assert "100.0" in text


def test_people_count_from_one_and_see_what_the_budget_is(asked: TestClient, site: Site, tiles: Path) -> None:
    _, name = headed(site)
    text = asked.get(f"/example/{name}/2").text
    rows = site.index.head(site.viewed.by_name[name].number).rows
    assert f"{name}, example 2 of {rows}" in text
    assert "1,024 (1K) less" in text
    assert "which are kept free for the answer and the chat template" in text
    assert asked.get(f"/example/{name}/0").status_code == 404
    assert asked.get(f"/example/{name}/{rows}").status_code == 200
    beyond = asked.get(f"/example/{name}/{rows + 1}")
    assert (beyond.status_code, beyond.text) == (404, f"{name}: there is no example {rows + 1}\n")


def test_a_record_without_an_id_has_its_number(tiles: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(tiles, tmp_path / "copy"))
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    first, *others = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([first, "{", *others]) + "\n", "utf-8")
    site = site_of(release)
    asked, (_, name) = client(site), headed(site)
    text = asked.get(f"/example/{name}/2").text
    assert "<h1>example 2</h1>" in text
    assert f"{name}, example 2: line 2: expected one JSON object" in text
    rows = asked.get(f"/data/dataset/{site.viewed.datasets.index('headed')}/rows").json()["rows"]
    assert (rows[1]["id"], rows[1]["url"]) == ("example 2", f"/example/{name}/2")


def test_the_outline_is_small_and_says_where_each_block_is(asked: TestClient, site: Site) -> None:
    number, _ = headed(site)
    found = asked.get(f"/data/example/{number}/1/outline").json()
    opened = site.open(site.file(number), 1)
    assert found["total"] == opened.example.tokens.total
    assert found["start"] == [each.start for each in opened.blocks]
    assert [role["name"] for role in found["roles"]] == ["instruction", "negative", "needle", "question"]
    marked = [block for block, bits in enumerate(found["marks"]) if bits]
    assert [found["roles"][found["role"][block]]["name"] for block in marked] == ["needle"]
    assert found["needles"][0]["requested"] == 0.4
    assert len(found["rows"]["block"]) == len(opened.rows)


def test_rows_have_texts_and_images_by_number(asked: TestClient, site: Site) -> None:
    number, _ = headed(site)
    rows = asked.get(f"/data/example/{number}/1/rows/0").json()
    pictures = [piece for row in rows for piece in row["pieces"] if "image" in piece]
    assert len(pictures) == 12
    for piece in pictures[:2]:
        small = asked.get(f"/small/{number}/{piece['image']}")
        assert (small.status_code, small.headers["content-type"]) == (200, "image/jpeg")
        whole = asked.get(f"/image/{number}/{piece['image']}")
        assert whole.headers["content-type"] == "image/png"
        assert whole.content == (site.viewed.path / "mmlb_image" / piece["path"]).read_bytes()
    assert asked.get(f"/data/example/{number}/1/rows/1").status_code == 404


def test_a_model_rescales_and_says_what_does_not_fit(asked: TestClient, site: Site) -> None:
    number, _ = headed(site)
    qwen, gemma = (asked.get(f"/data/example/{number}/1/model/{model}").json() for model in (0, 1))
    assert qwen["room"] is None
    assert gemma["room"] < gemma["total"]
    assert any("more than fit the window" in note for note in gemma["notes"])
    assert gemma["start"] == [sum(gemma["cost"][:block]) for block in range(len(gemma["cost"]))]
    assert asked.get(f"/data/example/{number}/1/model/2").status_code == 404


def test_an_image_that_a_browser_no_longer_waits_for_stays_not_open(finished: Path) -> None:
    root = finished / "mmlb_image"
    path = next(root.rglob("*.jpg"))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        sent = whole_file(root, path.relative_to(root).as_posix())
        del sent
        gc.collect()
    assert [str(each.message) for each in said] == []


def test_a_window_that_is_large_enough_is_said_to_fit(tiles: Path) -> None:
    site = site_of(tiles, "gemma3", ["gemma3=64K"])
    number, _ = headed(site)
    gemma = client(site).get(f"/data/example/{number}/1/model/0").json()
    left = gemma["room"] - gemma["total"]
    said = f"the prompt fits the window: {gemma['total']:,} of {gemma['room']:,} tokens, {left:,} left"
    assert said in gemma["notes"]


def test_messages_are_those_of_the_prompt_with_paths_below_the_release(asked: TestClient, site: Site) -> None:
    number, _ = headed(site)
    found = asked.get(f"/data/example/{number}/1/messages").json()
    urls = [part["image_url"]["url"] for part in found[0]["content"] if part["type"] == "image_url"]
    assert urls == [f"mmlb_image/{path}" for path in site.open(site.file(number), 1).example.prompt.images]


def test_what_a_longer_context_adds_is_marked_and_lengths_are_linked(finished: Path) -> None:
    site = site_of(finished)
    asked = client(site)
    long = next(file for file in site.viewed.files if file.length == 2048)
    rows = site.index.file(long.number).rows
    text = asked.get(f"/example/{long.name}/{rows[0].number}").text
    assert "are not in the context of 1K" in text
    assert '<a class="same-unit" href="/example/documentQA/mmlongdoc_K1.jsonl/1">1K</a>' in text
    short = site.open(site.viewed.files[0], 0)
    found = asked.get(f"/data/example/{long.number}/0/outline").json()
    context = [block for block, role in enumerate(found["role"]) if found["roles"][role]["look"] != "frame"]
    kept = {each.key for each in short.blocks}
    assert found["added"] == [block for block in context if found["key"][block] not in kept]
    assert found["added"]


def test_a_long_text_is_folded_and_given_whole_when_asked_for(tiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mmlongbench.web.viewer import prompt_list

    monkeypatch.setattr(prompt_list, "FOLDED", 20)
    monkeypatch.setattr(prompt_list, "BEGINNING", 10)
    site = site_of(tiles)
    file = next(file for file in site.viewed.files if file.dataset == "inline")
    asked = client(site)
    rows = asked.get(f"/data/example/{file.number}/0/rows/0").json()
    folded = [(row["block"], piece) for row in rows for piece in row["pieces"] if piece.get("folded")]
    assert folded
    block, piece = folded[0]
    assert sum(map(len, piece["t"])) == 10
    whole = asked.get(f"/data/example/{file.number}/0/text/{block}/{piece['piece']}").json()["t"]
    assert len("".join(whole)) == piece["n"]
    assert asked.get(f"/data/example/{file.number}/0/text/999/0").status_code == 404


@pytest.mark.parametrize("name", ASSETS)
def test_assets_have_their_types(asked: TestClient, name: str) -> None:
    assert asked.get(f"/assets/{name}").headers["content-type"].startswith(ASSETS[name])


@pytest.mark.parametrize(
    "path",
    [
        *("/nothing", "/dataset/99", "/example/x/0", "/data/example/99/0/outline", "/data/example/0/99/outline"),
        *(
            "/small/0/9999",
            "/image/0/9999",
            "/image/99/0",
            "/assets/show.css",
            "/assets/..%2fkit.py",
            "/data/dataset/9/rows",
        ),
    ],
)
def test_what_is_not_there_is_not_found(asked: TestClient, path: str) -> None:
    answer = asked.get(path)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text
