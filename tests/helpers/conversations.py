"""A conversation of 200 turns with 40 pictures, and a server that counts it by a chat template as Qwen2.5-VL does."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from counting_server import sizes_in
from jinja2 import Template
from model_server import Request, Said
from PIL import Image, ImageDraw
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from mmlongbench.draws import Draws
from tokenization import PatchRule, load_tokenizer

TURNS, PICTURES, RESERVE = 200, 40, 1280
SIDE, PICTURE_TOKENS = 196, 49
TASK = '''
"""Answer a question about a conversation."""

import mmlongbench.task as mt


class Exchange(mt.Row):
    """What a user says and the reply."""

    user: str
    assistant: str
    picture: str | None = None
    is_shown_first: bool = False
    question: str | None = None
    answer: str | None = None


class Talk(mt.Task[Exchange]):
    """One exchange, at a depth among others."""

    metric = "sub_em"
    instruction = "This is a talk.\\n\\n"
    in_turns = True
    reserve = 1280
    sources = {"exchanges": mt.Table, "pictures": mt.Folder}
    placements = mt.Placements(mt.Depth, (0.0, 0.5, 1.0))

    def selects(self, sources):
        return lambda row: bool(row.question)

    def draft(self, row, sources, draws):
        def unit(each):
            shown = (mt.Image(sources.images[each.picture].path),) if each.picture else ()
            said = (*shown, each.user) if each.is_shown_first else (each.user, *shown)
            return mt.Unit(each.id, turns=(mt.Turn("user", said), mt.Turn("assistant", (each.assistant,))))

        others = draws.order("others", self.others(row, sources), lambda other: other.id)
        return mt.Draft((unit(row),), mt.InOrder([unit(other) for other in others]))
'''
WORDS = ("harbour", "boat", "lantern", "market", "window", "garden", "letter", "winter", "river", "bridge", "ladder")
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>"]
TEMPLATE = Template(
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{% for p in m['content'] %}{% if p['type'] == 'image_url' %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ p['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n",
    keep_trailing_newline=True,
)


def draw_conversation(folder: Path, length: str) -> Path:
    """Write the task, its manifest, and as many exchanges as fill a length; return the manifest."""
    (folder / "pictures").mkdir(parents=True)
    tokens = (int(length[:-1]) * 1024 - RESERVE - PICTURES * PICTURE_TOKENS) // TURNS - 1
    rows = []
    for number in range(TURNS // 2):
        row: dict[str, Any] = {
            "id": f"exchange-{number}",
            "user": _text(f"user {number}", f"Gate {number} is open.", tokens),
            "assistant": _text(f"assistant {number}", f"I heard of it {number} times.", tokens),
        }
        if number % 5 < 2:
            row["picture"], row["is_shown_first"] = f"{number}.png", number % 5 == 1
            picture = Image.new("RGB", (SIDE, SIDE), "white")
            ImageDraw.Draw(picture).rectangle((9, 9, 9 + number, 150 - number), fill=(2 * number, 9, 250 - number))
            picture.save(folder / "pictures" / row["picture"])
        if number in (3, 51):  # of text, and with a picture before its text
            row |= {"question": f"What is said of gate {number}?", "answer": "open"}
        rows.append(row)
    (folder / "exchanges.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "talk.py").write_text(TASK, "utf-8")
    manifest = folder / "talk.yaml"
    source = "{exchanges: exchanges.jsonl, pictures: pictures}"
    manifest.write_text(
        f"datasets:\n  - name: talk\n    builder: talk.py:Talk\n    source: {source}\n    lengths: [{length}]\n"
        f"    admission_length: {length}\n    licence: Apache-2.0\n",
        "utf-8",
    )
    return manifest


def _text(name: str, first: str, tokens: int) -> str:
    """Return words that have about so many tokens; a blank line stands in some."""
    draws, said, count = Draws(("talk", name)), first, load_tokenizer("llama2").count
    used, number = count(said), 0
    while True:
        word = WORDS[int(draws.fraction(str(number)) * len(WORDS))]
        piece = f"\n\n{word.title()}" if number % 40 == 19 else f" {word}"
        used += count(piece) - 1  # without the mark that begins a text
        if used > tokens:
            return said
        said, number = said + piece, number + 1


@cache
def byte_pairs() -> Tokenizer:
    """A byte-level tokenizer with the special tokens of Qwen2.5-VL."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [f"Gate is open. user assistant What is said of gate? {' '.join(WORDS)}"] * 4
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def templated(request: Request) -> Said:
    """Answer a request, and count its prompt as the template and the tokenizer of the model make it."""
    text = TEMPLATE.render(messages=request["messages"])
    for width, height in sizes_in(request):
        text = text.replace("<|image_pad|>", "<|pad|>" * PatchRule().tokens(width, height), 1)
    ids = byte_pairs().encode(text.replace("<|pad|>", "<|image_pad|>"), add_special_tokens=False).ids
    return Said("open", prompt_tokens=len(ids))
