"""A conversation of 200 turns with 40 pictures: packed, counted, shown, exported, read back, and asked."""

import importlib.util
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import needs
import pytest
from conversations import PICTURES, RESERVE, TURNS, byte_pairs, draw_conversation, templated
from model_server import QUICK, serving
from own_model import write_own
from tiny import command

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.io.progress import Progress
from mmlongbench.models.run import Run
from mmlongbench.models.settings import EndpointSettings, RunOptions
from mmlongbench.release.changed_contexts import contextual
from mmlongbench.release.positions import showing
from mmlongbench.release.selection import Selection

LENGTHS = ["8K", pytest.param("64K", marks=pytest.mark.rare), pytest.param("256K", marks=pytest.mark.rare)]
EXAMPLES = 6
ROOT = Path(__file__).parents[2]
Message = dict[str, Any]


@dataclass(frozen=True)
class Talk:
    """A release of conversations."""

    length: str
    release: Path
    task: Path

    def examples(self) -> list[mm.Example]:
        return list(mm.open_release(self.release, tasks=self.task).examples("talk", self.length))

    def export(self, target: str, out: Path, **options: Any) -> Any:
        return mm.export(self.release, target, out, tasks=self.task, **options)


@pytest.fixture(scope="module", params=LENGTHS)
def talk(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Talk:
    folder = tmp_path_factory.mktemp("talk")
    manifest = draw_conversation(folder / "task", request.param)
    built = command("build", manifest, "--out", folder / "release", "--workers", "1")
    assert built.code == 0, built.err
    return Talk(request.param, folder / "release", folder / "task/talk.py")


def test_it_is_packed_whole_and_an_audit_and_verify_find_nothing(talk: Talk) -> None:
    audit = command("audit", talk.release, "--task", talk.task, "--json")
    assert audit.code == 0, audit.out + audit.err
    (line,) = map(json.loads, audit.out.splitlines())
    assert (line["examples"], line["problems"]) == (EXAMPLES, [])
    assert line["fill"]["min"] > 0.95
    assert command("verify", talk.release, "--task", talk.task).code == 0
    for example in talk.examples():
        roles = [turn.role for turn in example.prompt.turns]
        assert roles == ["user", "assistant"] * (TURNS // 2) + ["user"]
        assert len(example.prompt.images) == PICTURES
        assert abs(example.record["depth"] - example.record["depth_achieved"]) < 0.01


def test_another_tokenizer_of_the_same_vocabulary_counts_the_same_turn_by_turn(talk: Talk) -> None:
    import sentencepiece

    model = needs.shared("reference/llama2/tokenizer.model")
    counter = sentencepiece.SentencePieceProcessor(model_file=str(model))
    for example in talk.examples():
        counts = [
            len(counter.encode("".join(part for part in turn.parts if isinstance(part, str))))
            for turn in example.prompt.turns
        ]
        assert sum(counts) == example.tokens.text
        before = 0
        for turn, count in zip(example.prompt.turns, counts, strict=True):
            if any(isinstance(part, str) and f"Gate {example.id.split('-')[1]} " in part for part in turn.parts):
                break
            before += count + 49 * sum(isinstance(part, mm.Image) for part in turn.parts)
        opening = len(counter.encode("This is a talk.\n\n")) if example.record["depth"] == 0 else 0
        assert example.record["needle_start"] == before + opening


def test_speakers_are_shown(talk: Talk, tmp_path: Path) -> None:
    shown = command("show", talk.release, "--task", talk.task)
    assert "201 turns; a chat template has about 1,005 tokens for them" in " ".join(shown.out.split())
    assert len(re.findall(r"\b(user|assistant): ", shown.out)) > 5
    command("show", talk.release, "--task", talk.task, "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert re.findall(r'<p class="speaker">(\w+)</p>', page) == ["user", "assistant"] * (TURNS // 2) + ["user"]
    viewed = command("view", talk.release, "--task", talk.task, "--static", tmp_path / "site", "--limit", "1", "-q")
    assert viewed.code == 0, viewed.err
    rows = "".join(path.read_text("utf-8") for path in (tmp_path / "site").rglob("*rows*"))
    assert rows.count('"speaker":') == TURNS + 1


@pytest.mark.parametrize("is_counted", [False, True])
def test_a_reserve_for_the_chat_template_is_asked_for_only_if_it_is_not_counted(
    tmp_path: Path, is_counted: bool
) -> None:
    write_own(tmp_path / "model")
    counter = {"image": "qwen2.5-vl", "text": str(tmp_path / "model/tokenizer.json")}
    counter |= {"template": str(tmp_path / "model")} if is_counted else {}
    manifest, task = ROOT / "examples/chat/chat.yaml", ROOT / "examples/chat/chat.py"
    chosen = ("--lengths", "2K", "--limit", "1", "--set", "chat.reserve=64", "--set", f"chat.counter={counter}")
    built = command("build", manifest, "--out", tmp_path / "release", "--workers", "1", *chosen)
    assert built.code == 0, built.err
    shown = command("show", tmp_path / "release", "--task", task)
    audited = command("audit", tmp_path / "release", "--task", task)
    assert ("a chat template has about" in shown.out) is not is_counted
    assert ("less than the 5 tokens a turn" in audited.out) is not is_counted
    checked = " ".join(command("check", manifest, *chosen).out.split())
    assert ("a reserve of 64, less than the 5 tokens a turn" in checked) is not is_counted


def test_a_needle_is_all_its_turns_with_its_images() -> None:
    class Talks(mt.Task[mt.Row]):
        metric, in_turns, separator = "sub_em", True, " / "
        placements = mt.Placements(mt.Depth, (0,))

        def draft(self, row: mt.Row, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
            raise NotImplementedError

    def exchange(role: str, *said: object) -> dict[str, object]:
        reply = {"role": "assistant", "shown": ["A stock reply, the longest text of all."]}
        return {"role": role, "turns": [{"role": "user", "shown": [each]} for each in said] + [reply]}

    units = [exchange("padding", "Hello."), exchange("needle", "Look.", {"image": "a.jpg"}, "Red?")]
    record = {"question": "Which?", "units": [*units, exchange("padding", "Well.")]}
    task = Talks("talks", mt.Options())
    prompt, needles = task.prompt(record), task.needles(record)
    assert needles is not None
    assert needles == [("Look. / ", mm.Image("a.jpg"), " / Red?", "A stock reply, the longest text of all.")]
    assert prompt.outline is not None
    assert showing(prompt.outline.units, needles) == {1}


def test_every_target_keeps_the_turns_or_names_what_it_leaves_out(talk: Talk, tmp_path: Path) -> None:
    examples = talk.examples()
    wanted = {json.dumps(plain(messages_of(each))) for each in examples}

    def same(found: Iterator[list[Message]]) -> None:
        assert {json.dumps(plain(each)) for each in found} == wanted

    talk.export("openai", tmp_path / "openai", images="path")
    same(line["messages"] for line in lines(tmp_path / "openai"))
    talk.export("openai-batch", tmp_path / "batch", model="m")
    same_shape = [line["body"]["messages"] for line in lines(tmp_path / "batch", "batch-*.jsonl")]
    assert [[(m["role"], len(m["content"])) for m in each] for each in same_shape] == [
        [(m["role"], len(m["content"])) for m in messages_of(example)] for example in examples
    ]
    talk.export("vllm-batch", tmp_path / "vllm", model="m")
    same(line["body"]["messages"] for line in lines(tmp_path / "vllm", "batch.jsonl"))
    talk.export("inspect", tmp_path / "inspect")
    same(line["input"] for line in lines(tmp_path / "inspect/inspect"))
    talk.export("lmms-eval", tmp_path / "lmms")
    same(json.loads(line["messages"]) for line in lines(tmp_path / "lmms/data"))
    for form in ("openai", "sharegpt", "llava"):
        out = tmp_path / f"training-{form}"
        assert talk.export("training", out, form=form).examples == EXAMPLES
        if form == "openai":
            trained = [line["messages"] for line in lines(out, "train.jsonl")]
            same(iter([line[:-1] for line in trained]))
            assert {line[-1]["role"] for line in trained} == {"assistant"}
            continue
        read = lines(out, "train.jsonl") if form == "sharegpt" else json.loads((out / "train.json").read_text("utf-8"))
        for each in read:
            speakers = [turn["from"] for turn in each["conversations"]]
            assert speakers == ["human", "gpt"] * (TURNS // 2 + 1)
            texts = "".join(turn["value"] for turn in each["conversations"])
            assert texts.count("<image>") == len(each["images" if form == "sharegpt" else "image"]) == PICTURES
    done = mm.export(talk.release, "vlmevalkit", tmp_path / "vlmevalkit", tasks=talk.task)
    assert (done.examples, len(done.left_out)) == (0, EXAMPLES)
    assert all("several turns, and a row has one" in left for left in done.left_out)


def test_its_own_loader_reads_the_folder_of_images(talk: Talk, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    talk.export("hf", tmp_path / "hf")
    (split,) = datasets.load_dataset(str(tmp_path / "hf"), "talk", cache_dir=str(tmp_path / "cache")).values()
    found = {row["digest"]: row for row in split}
    for example in talk.examples():
        row = found[example.digest]
        turns = json.loads(row["parts"])
        assert [turn["role"] for turn in turns] == [turn.role for turn in example.prompt.turns]
        texts = [part for turn in turns for part in turn["content"] if isinstance(part, str)]
        assert "".join(texts) == example.prompt.text
        assert len(row["images"]) == PICTURES


def test_lmms_eval_gets_the_turns_as_messages(talk: Talk, tmp_path: Path) -> None:
    talk.export("lmms-eval", tmp_path / "out")
    spec = importlib.util.spec_from_file_location("utils", tmp_path / "out/mmlb/utils.py")
    assert spec is not None
    assert spec.loader is not None
    utils = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(utils)
    for line in lines(tmp_path / "out/data"):
        messages = utils.doc_to_messages(line)
        assert [message["role"] for message in messages] == ["user", "assistant"] * (TURNS // 2) + ["user"]


def test_receipts_of_a_template_are_exact(talk: Talk, tmp_path: Path) -> None:
    tokenizer = tmp_path / "tokenizer.json"
    byte_pairs().save(str(tokenizer))
    options = RunOptions("m", count_as="qwen2.5-vl", text_tokenizer=str(tokenizer), max_tokens=8)
    opened = mm.open_release(talk.release, tasks=talk.task)
    with serving(templated) as server:
        settings = EndpointSettings(server.url, tmp_path / "calls.sqlite", timeout=120.0)
        with closing(Run(opened, Selection(), options, settings, tmp_path / "out.jsonl", backoff=QUICK)) as run:
            run.prepare()
            result = run.ask(Progress(False))
    (calibration,) = run.calibrations.values()
    assert calibration.is_exact
    assert calibration.turn > 3
    (receipt,) = result.receipts
    assert (receipt.calls, receipt.tolerance, receipt.off) == (EXAMPLES, 0, ())
    written = lines(tmp_path, "out.jsonl")
    assert [line["usage"]["prompt_tokens"] - line["expected_tokens"] for line in written] == [0] * EXAMPLES
    scores = mm.score(talk.release, tmp_path / "out.jsonl", tasks=talk.task)
    assert [cell.score for cell in scores.cells] == [1.0]


def test_what_no_template_takes_is_refused(tmp_path: Path) -> None:
    manifest = draw_conversation(tmp_path / "task", "8K")
    task = tmp_path / "task/talk.py"
    text = task.read_text("utf-8")
    mistakes = {
        'mt.Turn("user", said), mt.Turn("assistant", (each.assistant,))': (
            'mt.Turn("assistant", (each.assistant,)), mt.Turn("user", said)',
            'instruction = ""',
            "a conversation begins and ends with the user; the first is the assistant's",
        ),
        "mt.Unit(each.id, ": ("mt.Unit(each.id, each.user, ", "", "has turns and other parts"),
        "(each.assistant,)": ("('',)", "", "has a turn without a text or an image"),
    }
    for number, (right, (wrong, more, said)) in enumerate(mistakes.items()):
        assert right in text
        changed = text.replace(right, wrong)
        task.write_text(changed.replace('instruction = "This is a talk.\\n\\n"', more) if more else changed, "utf-8")
        ran = command("build", manifest, "--out", tmp_path / f"out{number}", "--workers", "1", "-q")
        assert ran.code != 0
        assert said in " ".join(ran.err.split()), ran.err


def test_units_of_one_speaker_and_units_without_turns_stand_beside_exchanges(tmp_path: Path) -> None:
    manifest = draw_conversation(tmp_path / "task", "8K")
    task = tmp_path / "task/talk.py"
    mixed = """kind = sum(map(ord, each.id)) % 4
            if kind == 0:
                return mt.Unit(each.id, each.user)
            if kind == 1:
                return mt.Unit(each.id, turns=(mt.Turn("user", said),))
            if kind == 2:
                return mt.Unit(each.id, turns=(mt.Turn("assistant", (each.assistant,)), mt.Turn("user", said)))
            return mt.Unit("""
    task.write_text(task.read_text("utf-8").replace("return mt.Unit(", mixed), "utf-8")
    built = command("build", manifest, "--out", tmp_path / "out", "--workers", "1")
    assert built.code == 0, built.err
    audit = command("audit", tmp_path / "out", "--task", task, "--json")
    assert json.loads(audit.out)["problems"] == []
    (example, *_) = mm.open_release(tmp_path / "out", tasks=task).examples("talk", "8K")
    roles = [turn.role for turn in example.prompt.turns]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert example.record["question"] in example.prompt.texts[-1]
    assert "Answer:" not in example.prompt.text


def test_without_images_the_speakers_still_take_turns(tmp_path: Path) -> None:
    manifest = draw_conversation(tmp_path / "task", "8K")
    task = tmp_path / "task/talk.py"
    bare = "said = shown or (each.user,)\n            return mt.Unit("
    task.write_text(task.read_text("utf-8").replace("return mt.Unit(", bare), "utf-8")
    assert command("build", manifest, "--out", tmp_path / "out", "--workers", "1").code == 0
    release = mm.open_release(tmp_path / "out", tasks=task)
    for example, prompt in contextual(release, "talk", "text-only", release.examples("talk", "8K")):
        assert prompt
        roles = [turn.role for turn in prompt.turns]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        assert len(roles) < len(example.prompt.turns)
        assert prompt.text.replace("\n", "") == example.prompt.text.replace("\n", "")


def messages_of(example: mm.Example) -> list[Message]:
    return [dict(message) for message in example.messages("path")]


def plain(messages: list[Message]) -> list[list[Any]]:
    """The speakers, texts and names of images of messages in any form."""
    return [[message["role"], *(part_of(part) for part in message["content"])] for message in messages]


def part_of(part: dict[str, Any]) -> str:
    if part["type"] == "text":
        return str(part["text"])
    address = part["image"] if part["type"] == "image" else part["image_url"]["url"]
    return str(address).rsplit("/", 1)[-1]


def lines(folder: Path, pattern: str = "**/*.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob(pattern)) for line in path.read_text("utf-8").splitlines()]


def test_reserve_has_room_for_the_template() -> None:
    assert RESERVE > 5 * (TURNS + 1)
