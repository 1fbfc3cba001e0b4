"""No value of a manifest is turned into another type, and every bound has its reason."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from tiny import build, write_manifest

import mmlongbench as mm
from mmlongbench.documents.limits import MAX_PIXELS
from mmlongbench.errors import ManifestError
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.loading import load_manifest, narrowed
from mmlongbench.manifest.model import DatasetSpec, ImageSpec, Manifest
from mmlongbench.manifest.resolve import bind_builder, refuse_secrets
from mmlongbench.task.spec import Options

LEAST = {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": "sample"}


def load(folder: Path, **changes: Any) -> Manifest:
    (folder / "m.yaml").write_text(yaml.safe_dump({"datasets": [{**LEAST, **changes}]}), "utf-8")
    return load_manifest(folder / "m.yaml")


def refusal(folder: Path, **changes: Any) -> str:
    with pytest.raises(ManifestError) as refused:
        load(folder, **changes)
    assert "\n" not in str(refused.value)
    return str(refused.value).removeprefix(f"{folder / 'm.yaml'}: dataset 'mmlongdoc': ")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"seed": True}, "seed: Input should be a valid integer (found True)"),
        ({"seed": "7"}, "seed: Input should be a valid integer (found '7')"),
        ({"seed": 7.0}, "seed: Input should be a valid integer (found 7.0)"),
        ({"reserve": "256"}, "reserve: Input should be a valid integer (found '256')"),
        ({"sample": {"n": 3.0}}, "sample.n: Input should be a valid integer (found 3.0)"),
        ({"pages": {"dpi": "144"}}, "pages.dpi: Input should be a valid integer (found '144')"),
        ({"limits": {"pages": True}}, "limits.pages: Input should be a valid integer (found True)"),
        ({"limits": {"page": 1}}, "unknown key 'limits.page'; did you mean 'pages'?"),
        ({"limits": {"nesting": 101}}, "limits.nesting: Input should be less than or equal to 100 (found 101)"),
        ({"limits": {"seconds_a_page": "1"}}, "limits.seconds_a_page: Input should be a valid number (found '1')"),
        ({"limits": {"seconds_a_page": float("nan")}}, "limits.seconds_a_page: Input should be less than or equal to"),
        ({"limits": [1]}, "limits: Input should be a valid dictionary (found [1])"),
        ({"placements": ["0.5"]}, "placements: Input should be a valid number"),
        ({"placements": True}, "placements: Input should be a valid list or Input should be a valid integer"),
        ({"retrieval": {"random_fill": "no"}}, "retrieval.random_fill: Input should be a valid boolean"),
        ({"retrieval": {"near_duplicate": "1"}}, "retrieval.near_duplicate: Input should be a valid number"),
        ({"licence": 4}, "licence: Input should be a valid string (found 4)"),
        ({"lengths": {"8K": None}}, "lengths: Input should be a valid list"),
        ({"lengths": [8192.0]}, "lengths: length '8192.0': expected a whole number of K"),
        ({"retrieval": {"reranker": {"modle": "x"}}}, "unknown key 'retrieval.reranker.modle'; did you mean 'model'?"),
    ],
)
def test_a_value_of_another_type_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, **changes).startswith(said)


def test_what_yaml_writes_in_its_own_way_is_taken(tmp_path: Path) -> None:
    changes = {"source": {"samples": "a.json"}, "corpus": "c", "placements": [0, 0.5], "lengths": ["8K", 16384]}
    (dataset,) = load(tmp_path, **changes).datasets
    assert dataset.source == {"samples": (LocalPath(tmp_path / "a.json"),)}
    assert (dataset.corpus, dataset.placements, dataset.lengths) == (tmp_path / "c", (0.0, 0.5), (8192, 16384))
    assert DatasetSpec.model_validate(dataset.model_dump(mode="json")) == dataset


def test_options_of_builders_are_strict() -> None:
    class Own(Options):
        number: int = 1

    with pytest.raises(ValueError, match="valid integer"):
        Own.model_validate({"number": "1"})
    spec = DatasetSpec.model_validate({**LEAST, "options": {"max_answer_words": "5"}})
    with pytest.raises(ManifestError, match=r"options: max_answer_words: Input should be a valid integer .found '5'"):
        bind_builder(spec)


def test_pixel_limits_of_counting_are_reported_under_their_key(tmp_path: Path) -> None:
    said = refusal(tmp_path, counter={"image": {"min_pixels": 9000, "max_pixels": 8000}})
    assert said.startswith("counter.image: min_pixels 9000 is more than max_pixels 8000")
    assert ImageSpec(min_pixels=9000, max_pixels=9000).max_pixels == 9000


@pytest.mark.parametrize("length", ["99999M", "1025M", "999999999K", "1048577K"])
def test_a_length_over_the_bound_is_refused(length: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--lengths", length)
    assert (refused.code, refused.err) == (2, f"error: length '{length}': expected 1K to 1024M (1G tokens)\n")
    assert not (tmp_path / "out").exists()
    assert refusal(tmp_path, lengths=["8K", length]).startswith(f"lengths: length '{length}': expected 1K to 1024M")


LONG = (2**30 + 1024, 10**20, 0, -(10**20), 1 << 20_000, -(1 << 20_000), (1 << 20_000) + 1)


@pytest.mark.parametrize("length", [hex(length) for length in LONG], ids=range(len(LONG)))
def test_an_integer_that_is_no_length_is_refused_however_long(length: str, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(f"defaults: {LEAST}\ndatasets: [{{lengths: [{length}]}}]")
    with pytest.raises(ManifestError, match=r"lengths: length .*: expected 1K to 1024M"):
        load_manifest(tmp_path / "m.yaml")


def test_the_longest_length_is_taken_as_text_and_as_an_integer(tmp_path: Path) -> None:
    assert load(tmp_path, lengths=["1024M", 2**30]).datasets[0].lengths == (2**30, 2**30)
    assert narrowed(load(tmp_path), "1024m", None).datasets[0].lengths == (2**30,)


def test_more_pixels_than_pillow_opens_are_refused_with_the_reason(tmp_path: Path) -> None:
    assert Image.MAX_IMAGE_PIXELS is not None
    assert MAX_PIXELS == 2 * Image.MAX_IMAGE_PIXELS
    said = refusal(tmp_path, limits={"pixels": MAX_PIXELS + 1})
    assert said.startswith(
        "limits.pixels: at most 178,956,970 pixels: Pillow refuses a larger picture, which may be an attack"
    )
    assert load(tmp_path, limits={"pixels": MAX_PIXELS}).datasets[0].limits.pixels == MAX_PIXELS


@pytest.mark.parametrize("setting", ["source.samples=", "mmlongdoc.source.samples= ", "corpus="])
def test_a_setting_without_a_path_is_refused(setting: str, source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--set", setting)
    assert (refused.code, refused.err) == (
        2,
        f"error: --set {setting!r}: expected a path after the =, found nothing\n",
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reserve": 1024}, "reserve 1024 leaves no room at length 1K (1024 tokens)"),
        ({"reserve": 5000, "lengths": ["8K", "4K"], "admission_length": "8K"}, "reserve 5000 leaves no room at length"),
        ({"reserve": 1500, "lengths": ["2K"]}, "reserve 1500 leaves no room at admission_length 1K (1024 tokens)"),
    ],
)
def test_a_reserve_that_leaves_no_room_is_refused_before_anything_is_written(
    changes: dict[str, Any], said: str, source: Path, tmp_path: Path
) -> None:
    manifest = write_manifest(tmp_path / "tiny.yaml", source="sample", **changes)
    refused = build(manifest.parent, tmp_path / "out")
    assert refused.code == 2
    assert f"error: dataset 'mmlongdoc': {said}" in refused.err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("licence", "see https://user:hunter2@host/licence"),
        ("licence", "https://host/licence?X-Amz-Signature=hunter2"),
        ("drawn_as", "s3://KEY:hunter2@bucket/x"),
        ("retrieval.reranker.model", "https://host/model?token=hunter2"),
        ("licence", "https://host/x#access_token=hunter2"),
    ],
)
def test_a_secret_in_a_url_never_reaches_the_lock_or_a_message(key: str, value: object, tmp_path: Path) -> None:
    with pytest.raises(mm.ManifestError) as refused:
        mm.build("vh_single", tmp_path / "out", overrides={"source": "sample", key: value}, lengths="1K", limit=1)
    assert "hunter2" not in str(refused.value)
    assert not (tmp_path / "out").exists()


SECRETS = (
    "u:hunter2@h/x",
    "//u:hunter2@h",
    ":hunter2@h",
    "mailto:u:hunter2@h",
    "(see u:hunter2@h)",
    "https://h/x#access_token=hunter2",
    "https://h/x;jsessionid=hunter2",
    "https://h/x%3Fsig=hunter2",
    "https://h/x%253Fsig=hunter2",
    "https://u%3Ahunter2%40h/x",
    "https%3A%2F%2Fh%2Fx%3Fsig=hunter2",
    r"https:\\u:hunter2@h",
    r"https:/\u:hunter2@h",
)


@pytest.mark.parametrize("licence", SECRETS, ids=range(len(SECRETS)))
def test_a_licence_with_a_hidden_secret_is_refused_without_repeating_it(licence: str) -> None:
    spec = mm.DatasetSpec(name="x", builder="b", reader="r", source="sample", licence=licence)
    with pytest.raises(mm.ManifestError, match="licence: expected a text that may be published") as refused:
        refuse_secrets(spec)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "licence",
    [
        "https://host/by/4.0/",
        "see me@x.org",
        "mailto:me@x.org",
        "Email:me@x.org",
        "CC BY 4.0 (see https://host/terms?)",
        "CC BY 4.0: https://creativecommons.org/licenses/by/4.0/",
        "MIT (https://host/MIT); CC BY 4.0; see https://host/a%20b; and others",
        "hub:owner/name@revision",
        "https://host/@me",
        "none; 10:30 @ home",
    ],
)
def test_a_text_without_a_secret_may_be_a_licence(licence: str) -> None:
    refuse_secrets(mm.DatasetSpec(name="x", builder="b", reader="r", source="sample", licence=licence))
