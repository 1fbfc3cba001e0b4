"""Arguments, results and errors of the functions of `import mmlongbench as mm`."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hub_server import hub
from once import once

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.loading import find_manifest, load_manifest

Options = dict[str, Any]


@pytest.fixture(scope="module")
def small(sample: Callable[[str], dict[str, Path]]) -> Options:
    """The options of one question of a drawn source."""
    return {"overrides": {"source": sample("visual_haystacks")}, "lengths": ["8K"], "limit": 1}


@pytest.fixture(scope="module")
def folder(small: Options, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one question at six depths; not to be changed."""

    def make(where: Path) -> None:
        out = where / "release"
        built = mm.build("vh_single", out, **small)
        assert (built.out, built.was_complete) == (out, False)
        assert mm.build("vh_single", str(out), **small).was_complete

    return once(tmp_path_factory, "one-needle", make) / "release"


def test_a_release_gives_its_examples(folder: Path) -> None:
    release = mm.open_release(str(folder))
    assert (release.datasets, release.lengths("vh_single")) == (("vh_single",), (8192,))
    found = list(release.examples("vh_single", "8K"))
    assert [example.record["depth"] for example in found] == list(mt.DEPTHS)
    (first, *_) = list(release.examples("vh_single", 8192))
    assert first == found[0]
    assert (first.id, first.answer) == (first.record["id"], first.record["answer"])
    assert first.file == f"NIAH/{next((folder / 'mmlb_data/NIAH').iterdir()).name}"
    assert first.tokens.total == first.record["length"]
    assert list(first.prompt.images) == first.record["ctxs"]
    assert (first.evidence, first.facets["answer"]) == (None, [first.answer])


def test_examples_are_read_one_at_a_time(folder: Path, tmp_path: Path) -> None:
    copy = copied(folder, tmp_path)
    (file,) = (copy / "mmlb_data/NIAH").iterdir()
    first, second, *_ = file.read_text("utf-8").splitlines()
    file.write_text(f"{first}\nno JSON\n", "utf-8")
    examples = mm.open_release(copy).examples("vh_single", "8K")
    assert next(examples).record == json.loads(first)
    with pytest.raises(mm.ReleaseError, match="line 2: expected one JSON object"):
        next(examples)
    for said, fault in (
        ({"tokens": None}, "line 1: tokens: expected the numbers `text` and `image`, found None"),
        (
            {"tokens": {"text": True, "image": 1}},
            "line 1: tokens: expected the numbers `text` and `image`, found {'text'",
        ),
        ({"id": None}, "line 1: id: expected a text or a whole number, found None"),
        ({"ctxs": 3}, r"builder 'visual_haystack' .*, line 1: "),
    ):
        file.write_text(json.dumps({**json.loads(second), **said}), "utf-8")
        with pytest.raises((mm.ReleaseError, mm.DraftError), match=fault):
            next(mm.open_release(copy).examples("vh_single", "8K"))
    file.unlink()
    with pytest.raises(mm.ReleaseError, match="cannot be read: No such file"):
        next(mm.open_release(copy).examples("vh_single", "8K"))
    os.mkfifo(file)
    with pytest.raises(mm.ReleaseError, match="is no file; see `mmlongbench verify`"):
        next(mm.open_release(copy).examples("vh_single", "8K"))
    file.unlink()
    (tmp_path / "elsewhere.jsonl").write_text(first, "utf-8")
    file.symlink_to(tmp_path / "elsewhere.jsonl")
    with pytest.raises(mm.ReleaseError, match="is a link out of the release"):
        next(mm.open_release(copy).examples("vh_single", "8K"))


def test_a_release_stays_open_in_another_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    release = mm.open_release(folder.name)
    monkeypatch.chdir("/")
    assert next(release.examples("vh_single", "8K")).id


def test_settings_take_paths_as_text_and_one_model_as_a_name() -> None:
    judge = mm.Judge("http://x/v1", "gpt", cache="answers.sqlite")  # type: ignore[arg-type]
    assert (judge.models, judge.cache) == (("gpt",), Path("answers.sqlite"))
    with pytest.raises(mm.ScoringError, match="models of a judge: expected names, found 3"):
        mm.Judge("http://x/v1", (3,))  # type: ignore[arg-type]
    settings = mm.Settings(documents="pdfs", judge_prompts="prompts")  # type: ignore[arg-type]
    assert (settings.documents, settings.judge_prompts, settings.images) == (Path("pdfs"), (Path("prompts"),), None)


def copied(release: Path, to: Path) -> Path:
    """Without images, which are not read."""
    for path in (path for path in release.rglob("*") if path.suffix in (".json", ".jsonl")):
        target = to / "copy" / path.relative_to(release)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    return to / "copy"


def test_what_a_release_does_not_have_is_named(folder: Path, tmp_path: Path) -> None:
    release = mm.open_release(folder)
    with pytest.raises(mm.ReleaseError, match="no dataset 'vh_singel'; there are vh_single; did you mean 'vh_single'"):
        release.examples("vh_singel", "8K")
    with pytest.raises(mm.ReleaseError, match="vh_single has no examples of 16K; lengths: 8K"):
        release.examples("vh_single", "16K")
    with pytest.raises(mm.ManifestError, match="length"):
        release.examples("vh_single", "long")
    with pytest.raises(mm.ReleaseError, match="this is no release of mmlongbench"):
        mm.open_release(tmp_path)


def test_releases_are_counted_checked_and_compared(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (line,) = mm.audit(folder, models=["qwen2.5-vl"], windows={"qwen2.5-vl": "128K"})
    assert (line.dataset, line.examples, line.problems, list(line.models)) == ("vh_single", 6, [], ["qwen2.5-vl"])
    assert mm.audit([folder / "mmlb_data"], images=folder / "mmlb_image")[0].examples == 6
    assert mm.verify(folder).problems == ()
    assert mm.diff(folder, str(folder)).is_same
    with pytest.raises(mm.ReleaseError, match="qwen-99"):
        mm.audit(folder, models="qwen-99")
    with pytest.raises(mm.ReleaseError, match="text tokenizer 'nowhere/at/all': there is no such file"):
        mm.audit(folder, models="qwen2.5-vl", text_tokenizers={"qwen2.5-vl": "nowhere/at/all"})
    with pytest.raises(mm.ReleaseError, match="no release or public file is given"):
        mm.audit([])
    for call in (mm.verify, mm.open_release):
        with pytest.raises(mm.ReleaseError):
            call(folder / "nothing")
    assert capfd.readouterr() == ("", "")


def test_a_forecast_has_what_the_build_then_has(small: Options) -> None:
    (dataset,) = mm.plan("vh_single", **{**small, "lengths": 8192}).datasets
    (cell,) = dataset.cells
    assert (dataset.problem, dataset.questions, cell.length, cell.examples) == ("", 1, 8192, 6)
    (missing,) = mm.plan("vh_single", overrides={"source.questions": "nowhere"}, lengths="8K").datasets
    assert "nowhere" in missing.problem
    with pytest.raises(mm.ManifestError, match="probe 0: expected a whole number, at least 1"):
        mm.plan("vh_single", **small, probe=0)


def test_predictions_are_scored(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "a-model.jsonl"
    with file.open("w", encoding="utf-8") as lines:
        for example in mm.open_release(folder).examples("vh_single", "8K"):
            line = {"file": example.file, "id": example.id, "depth": example.record["depth"]}
            lines.write(json.dumps({**line, "prediction": str(example.answer)}) + "\n")
    scores = mm.score(folder, file)
    (cell,) = scores.cells
    assert (scores.model, scores.file, scores.problems) == ("a-model", None, ())
    assert (cell.metric, cell.dataset, cell.length) == ("binary_acc", "vh_single", 8192)
    assert (cell.score, cell.examples) == (1.0, 6)
    asked: dict[str, Any] = {"metrics": ["binary_acc"], "settings": mm.Settings(profile="ours")}
    ours = mm.score(folder, [file], **asked, out=tmp_path / "scores")
    assert ours.file is not None
    assert ours.file.relative_to(tmp_path) == Path("scores/a-model.binary_acc.ours.jsonl")
    assert len(ours.file.read_text("utf-8").splitlines()) == 6
    assert ours.profiles["binary_acc"].profile == "ours"
    file.write_text('{"file": "NIAH/none.jsonl", "id": "x", "prediction": "Yes"}\n', "utf-8")
    found = {problem.reason: problem.count for problem in mm.score(folder, file).problems}
    assert found == {"unknown-file": 1, "absent": 6}
    with pytest.raises(mm.ScoringError, match=r"nothing\.jsonl: no such file"):
        mm.score(folder, tmp_path / "nothing.jsonl")
    with pytest.raises(mm.ScoringError, match="no predictions are given"):
        mm.score(folder, [])
    with pytest.raises(mm.ScoringError, match="rouge: no dataset here declares it"):
        mm.score(folder, file, metrics="binary_acc,rouge")
    with pytest.raises(mm.ScoringError, match="metrics: expected at least one name"):
        mm.score(folder, file, metrics=[])
    with pytest.raises(mm.ScoringError, match="nowhere: no such folder of images"):
        mm.score(folder, file, images=tmp_path / "nowhere")


@pytest.mark.parametrize("url", ["s3://user:secret@bucket/x", Path("s3://user:secret@bucket/x")], ids=["text", "path"])
def test_a_url_is_refused_without_being_repeated(folder: Path, small: Options, url: Any) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: mm.open_release(url),
        lambda: mm.audit([folder, url]),
        lambda: mm.verify(url),
        lambda: mm.diff(folder, url),
        lambda: mm.score(url, folder),
        lambda: mm.score(folder, [url]),
        lambda: mm.build(url, folder),
        lambda: mm.plan("vh_single", overrides={"source": url}),
        lambda: mm.plan("vh_single", overrides={"source.questions": Path(url)}),
        lambda: mm.plan("vh_single", overrides={"source": {"questions": [Path(url)]}}),
        lambda: mm.plan("vh_single", overrides={"corpus": url}),
        lambda: mm.plan("vh_single", data=url),
        lambda: mm.plan("vh_single", overrides={"counter.tokenizer": url}),
        lambda: mm.plan("vh_single", overrides={"counter": {"tokenizer": url}}),
        lambda: mm.audit(folder, models="qwen2.5-vl", text_tokenizers={"qwen2.5-vl": url}),
        lambda: mm.audit(folder / "mmlb_data", images=url),
        lambda: mm.audit(folder, tokenizer=url),
        lambda: mm.score(folder, folder, images=url),
        lambda: mm.score(folder, folder, tokenizer=url),
        lambda: mm.score(folder, folder, out=url),
        lambda: mm.Settings(documents=url),
        lambda: mm.Settings(judge_prompts=url),
        lambda: mm.Judge("http://x/v1", ("m",), cache=url),
        lambda: mm.build("vh_single", Path(url), **small),
    )
    for call in calls:
        with pytest.raises(mm.MMLongBenchError, match=r"found a URL \(s3://…\); download it first$") as found:
            call()
        assert "secret" not in str(found.value)


def test_a_folder_may_have_a_colon(
    folder: Path, small: Options, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    built = mm.build("vh_single", "run:/rel", **small)
    assert mm.open_release(built.out).datasets == ("vh_single",)
    Path("run:/p.jsonl").write_text('{"file": "x", "id": "1", "prediction": "Yes"}\n', "utf-8")
    problems = mm.score("run:/rel", Path("run:/p.jsonl")).problems
    assert problems[0].reason == "unknown-file"
    assert mm.diff("run:/rel", folder).is_same
    for path in ("run:/rel", Path("run:/rel")):
        (dataset,) = load_manifest(find_manifest("vh_single"), {"source.images": path}).datasets
        assert isinstance(dataset.source, dict)
        assert dataset.source["images"] == (LocalPath(tmp_path / "run:/rel"),)


def test_a_url_in_a_manifest_is_refused_without_being_repeated(small: Options, tmp_path: Path) -> None:
    url = "s3://user:secret@bucket/x"
    for given in (
        {"source": url},
        {"corpus": [url]},
        {"counter": {"tokenizer": url}},
    ):
        dataset = {"name": "a", "builder": "visual_haystack", "reader": "photographs", "source": "sample", **given}
        (tmp_path / "own.yaml").write_text(json.dumps({"datasets": [dataset]}), "utf-8")
        with pytest.raises(mm.ManifestError, match=r"found a URL \(s3://…\)") as found:
            mm.plan(tmp_path / "own.yaml")
        assert "secret" not in str(found.value)
    with pytest.raises(mm.BuildError, match="--out nope://") as unknown:
        mm.build("vh_single", "nope://user:secret@bucket/x", **small)
    assert "secret" not in str(unknown.value)


def test_sources_are_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"data/train-00000-of-00001.parquet": b"PAR1", "documents/a.pdf": b"%PDF"}
    with hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        server.put("yubo2333/MMLongBench-Doc", files)
        done = mm.fetch("mmlongdoc", str(tmp_path / "data"), only="mmlongdoc")
    assert (done.is_complete, done.left, done.places[0].downloaded) == (True, (), 2)
    assert {str(path.relative_to(done.places[0].folder)) for path in done.places[0].folder.rglob("*.p*")} == {*files}
    for to in ("", "s3://user:secret@bucket/x"):
        with pytest.raises(mm.ManifestError, match="to: expected a") as refused:
            mm.fetch("mmlongdoc", to)
        assert "secret" not in str(refused.value)


def test_a_tokenizer_is_the_file_that_is_named(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("llama2").write_text("no tokenizer", "utf-8")
    assert mm.audit(folder, tokenizer="llama2")[0].problems == []
    with pytest.raises(mm.ReleaseError):
        mm.audit(folder, tokenizer="./llama2")


@pytest.mark.parametrize(
    "call",
    [
        lambda folder, small: mm.open_release(" "),
        lambda folder, small: mm.open_release(None),  # type: ignore[arg-type]
        lambda folder, small: mm.audit([folder, None]),  # type: ignore[list-item]
        lambda folder, small: mm.diff(folder, folder, limit=-1),
        lambda folder, small: mm.Settings(images=""),  # type: ignore[arg-type]
        lambda folder, small: mm.Judge("http://x/v1", ("m",), cache=""),  # type: ignore[arg-type]
        lambda folder, small: mm.audit(""),
        lambda folder, small: mm.verify(""),
        lambda folder, small: mm.diff(folder, ""),
        lambda folder, small: mm.score(folder, [""]),
        lambda folder, small: mm.build("vh_single", "", **small),
        lambda folder, small: mm.build("vh_single", folder.parent / "none", **small, workers=0),
        lambda folder, small: mm.plan("vh_single", **small, workers=0),
        lambda folder, small: mm.audit(folder, workers=0),
        lambda folder, small: mm.verify(folder, workers=0),
        lambda folder, small: mm.audit(folder, models="qwen2.5-vl", windows={"qwen2.5-vl": 0}),
    ],
)
def test_empty_paths_and_numbers_below_1_are_refused(
    folder: Path, small: Options, call: Callable[[Path, Options], object]
) -> None:
    with pytest.raises(mm.MMLongBenchError, match=r"found an empty text|found None|at least [01]$|expected tokens"):
        call(folder, small)


@pytest.mark.parametrize(
    ("manifest", "options", "said"),
    [
        ("vh_singel", {}, "no manifest 'vh_singel'.*did you mean 'vh_single'"),
        ("vh_single", {"overrides": {"sead": 7}}, "sead.*did you mean 'seed'"),
        ("vh_single", {"overrides": {"source.questions": Path("s3://b/x")}}, "overrides: source.questions: .*URL"),
        ("vh_single", {"data": "nowhere"}, "data: expected a folder, found none: nowhere"),
        ("vh_single", {"overrides": {"source.questions": ""}}, "overrides: source.questions: expected a path"),
        ("vh_single", {"overrides": {"source": {"images": ""}}}, "overrides: source.images: expected a path"),
        ("vh_single", {"overrides": {"vh_single.source.images": ""}}, "overrides: vh_single: source.images: expected"),
        ("vh_single", {"overrides": {7: 7}}, "the override 7: expected a text"),
        ("v" * 300, {}, "no manifest 'v{100}"),
        ("quickstart", {"overrides": {"seed": 7}}, "the override 'seed': must begin with the name of a dataset"),
        ("vh_single", {"lengths": []}, "lengths: expected at least one"),
        ("vh_single", {"lengths": ["8K", 1000]}, "length"),
        ("vh_single", {"limit": 0}, "limit 0: expected a whole number of questions, at least 1"),
        ("vh_single", {"limit": 1.5}, "limit 1.5: expected a whole number of questions, at least 1"),
        ("vh_single", {"limit": True}, "limit True: expected a whole number"),
    ],
)
def test_a_build_that_cannot_be_is_refused(manifest: str, options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(mm.ManifestError, match=said):
        mm.build(manifest, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_overrides_say_what_settings_of_the_command_line_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    paths = {"source.questions": Path("q"), "source.images": "i", "source.annotations": "a"}
    overrides = {**paths, "seed": 7, "vh_single.options.finish": "prefix"}
    typed = [f"{key}={value}" for key, value in overrides.items()]
    assert load_manifest(find_manifest("vh_single"), overrides) == load_manifest(find_manifest("vh_single"), typed)
    loaded = load_manifest(find_manifest("vh_single"), overrides)
    source = loaded.datasets[0].source
    assert isinstance(source, dict)
    assert (source["questions"], source["images"]) == ((LocalPath(tmp_path / "q"),), (LocalPath(tmp_path / "i"),))
    whole = {
        "source": {"questions": "q", "images": Path("i"), "annotations": "a"},
        "seed": 7,
        "options.finish": "prefix",
    }
    assert load_manifest(find_manifest("vh_single"), whole) == loaded
    assert (
        load_manifest(find_manifest("vh_single"), [*typed[3:], "source={questions: q, images: i, annotations: a}"])
        == loaded
    )
    with pytest.raises(mm.ManifestError, match="change the given Manifest object"):
        mm.plan(loaded, overrides=overrides)
