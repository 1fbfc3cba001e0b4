"""Long answers, which token F1 leaves out, and several accepted answers, of which the best score counts."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import command

import mmlongbench as mm
import mmlongbench.task as mt
from builders.samples.docvqa.others import draw_own_documents
from mmlongbench.metrics.benchmark import DocumentAnswer
from mmlongbench.scoring.metric_calls import score_of
from mmlongbench.scoring.scores import read_scores
from mmlongbench.task.metric import Metric, Score, ScoringInput, Settings

pytestmark = pytest.mark.slow
WHY = "the answer has more than five words, for which token F1 says little; `--metrics judge` scores it"
FILE = "documentQA/reports_K8.jsonl"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    source = draw_own_documents(folder)
    name = sorted(source["documents"].iterdir())[0].name
    rows = f"{name},Why?,for it has always been so,1,\n{name},Who?,Tern Rock Ltd,1,TRL; Tern Rock Limited\n"
    source["questions"].write_text(f"doc,question,answer,pages,accepted\n{rows}", "utf-8")
    paths = {key: str(path) for key, path in source.items()}
    about = {"name": "reports", "builder": "docvqa", "reader": "own_documents", "source": paths, "lengths": ["8K"]}
    (folder / "m.yaml").write_text(json.dumps({"datasets": [about]}), "utf-8")
    mm.build(folder / "m.yaml", folder / "out")
    return folder / "out"


def predictions(folder: Path, *said: str) -> Path:
    lines = [{"file": FILE, "id": f"own_{at}", "prediction": text} for at, text in enumerate(said)]
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.mark.parametrize(("said", "score"), [("TRL", 1.0), ("Tern Rock Limited", 1.0), ("Tern Rock", 0.8), ("x", 0.0)])
def test_the_best_of_the_accepted_answers_counts_and_a_long_one_is_in_no_mean(
    said: str, score: float, release: Path, tmp_path: Path
) -> None:
    found = mm.score(release, predictions(tmp_path, "something else", said), out=tmp_path / "scores")
    (cell,) = found.cells
    assert cell.examples == 1
    assert cell.score == pytest.approx(score)
    assert f"doc_qa: 1 examples left out: {WHY}" in found.notes
    assert [(line.id, line.status) for line in read_scores(tmp_path / "scores")] == [
        ("own_0", "outside"),
        ("own_1", "scored"),
    ]
    told = command("report", tmp_path / "scores", "--json")
    assert f"doc_qa: 1 examples are left out of every mean of this metric: {WHY}" in json.loads(told.out)["notes"]
    scorer = mm.scorer(release)
    assert scorer.score({"file": FILE, "id": "own_1"}, said).score == pytest.approx(score)
    assert scorer.score({"file": FILE, "id": "own_0"}, said) == Score(None, failure=WHY)


def test_only_a_group_of_this_name_is_left_out() -> None:
    metric = DocumentAnswer(Settings())
    long: dict[str, Any] = {"gold": "one two three four five six", "prediction": "", "answer_format": "String"}
    assert metric.out_of_scope(mt.ScoringInput(FILE, "d", "q", **long)) == ""
    assert metric.out_of_scope(mt.ScoringInput(FILE, "d", "q", **long, facets={"answer length": ["short"]})) == ""
    assert metric.out_of_scope(mt.ScoringInput(FILE, "d", "q", **long, facets={"answer length": ["long"]})) == WHY


class Counting(Metric):
    """A metric that keeps the gold answers that it was called with."""

    name = "counting"

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.golds: list[object] = []

    def score(self, asked: ScoringInput) -> Score:
        self.golds.append(asked.gold)
        if asked.gold == "broken":
            return Score(None, failure="broken")
        return Score(float(asked.gold == asked.prediction))


@pytest.mark.parametrize(
    ("said", "golds", "score"),
    [("a", ["a"], 1.0), ("b", ["a", "broken", "b"], 1.0), ("d", ["a", "broken", "b", "c"], 0.0)],
)
def test_a_metric_is_called_until_one_answer_has_the_full_score(said: str, golds: list[str], score: float) -> None:
    metric = Counting(Settings())
    found = score_of(metric, ScoringInput(FILE, "d", "q", "a", said, accepted=("broken", "b", "c")))
    assert (metric.golds, found.score) == (golds, score)
