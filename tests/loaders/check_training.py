"""Reads an export to `training` back: `python check_training.py RELEASE OUT [TASK …]`, where `datasets` and
transformers can be imported.

`datasets` loads the conversations of any form. Speakers, texts, images (bytes) and their order are compared with the
release, and the answers of the assistant are scored. Chat messages also go through a processor of transformers with its
chat template.
"""

import hashlib
import json
import logging
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

SPEAKERS = {"human": "user", "gpt": "assistant", "system": "system"}
IMAGE = "<|vision_start|><|image_pad|><|vision_end|>"
"""An image in the text of a template."""


def main() -> None:
    release, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": tempfile.mkdtemp()}
    logging.disable(logging.WARNING)
    import check_processors as processors

    processors.define_operators()  # before transformers is imported
    from datasets import load_dataset
    from loader_check import Truth, turns_of
    from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

    import mmlongbench as mm
    from mmlongbench.prompt import escape_markers

    started, truth, answers = time.monotonic(), Truth(release), list[str]()
    os.chdir(out)  # the paths of images start there
    family = next(family for family in processors.FAMILIES if family.rule == "qwen2.5-vl")
    processor = processors.hf_processor(family, Path(tempfile.mkdtemp()))
    processor.image_processor = Qwen2VLImageProcessorPil()  # reads files without the compiled parts of torchvision
    (file,) = (path for path in out.iterdir() if path.name in ("train.jsonl", "train.json"))
    rows = load_dataset("json", data_files=str(file), split="train")
    keys = map(json.loads, (out / "examples.jsonl").read_text("utf-8").splitlines())
    for row, key in zip(rows, keys, strict=True):
        example = truth.of(key)
        *turns, (speaker, (answer,)) = messages_of(row) if "messages" in row else conversation_of(row)
        truth.same("turns equal", example.name, turns, turns_of(example, truth.image, escape_markers))
        truth.same("answers of the assistant", example.name, speaker, "assistant")
        truth.same("digests equal", example.name, key["digest"], example.digest)
        truth.counts["turns"] += len(turns)
        truth.counts["images"] += len(example.prompt.images)
        answers.append(json.dumps({**example.key, "prediction": answer}) + "\n")
        if "messages" in row:
            check_template(truth, example.name, processor, row["messages"])
    with tempfile.TemporaryDirectory() as folder:
        predictions = Path(folder) / "answers.jsonl"
        predictions.write_text("".join(answers), "utf-8")
        scores = mm.score(release, predictions, only_answered=True, tasks=truth.tasks)
    for cell in scores.cells:
        truth.same("files whose answers score 1", f"{cell.dataset} {cell.length}", cell.score, 1.0)
    loaders = f"datasets {version('datasets')}, transformers {version('transformers')}"
    truth.end(f"{loaders}, {file.name} with {', '.join(rows.column_names)}", out, time.monotonic() - started)


def messages_of(row: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The speakers of chat messages, with texts and the hashes of images."""
    for message in row["messages"]:
        said = ((part.get("text"), part.get("image_url")) for part in message["content"])
        yield message["role"], [sha256(image["url"]) if image else text for text, image in said]


def conversation_of(row: dict[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The same of a conversation whose texts have markers."""
    images = iter(row.get("images") or row.get("image") or [])
    for turn in row["conversations"]:
        pieces = (piece for piece in re.split("(<image>)", turn["value"]) if piece)
        yield SPEAKERS[turn["from"]], [sha256(next(images)) if piece == "<image>" else piece for piece in pieces]
    if (spare := next(images, None)) is not None:
        raise ValueError(f"no marker for the image {spare}")


def sha256(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def check_template(truth: Any, where: str, processor: Any, messages: list[dict[str, Any]]) -> None:
    """Compare what a processor makes of chat messages with the form of its template."""
    found = processor.apply_chat_template(messages, tokenize=True, return_dict=True)
    text = processor.tokenizer.decode(found["input_ids"][0])
    said = ["<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"] if messages[0]["role"] != "system" else []
    for message in messages:
        parts = (IMAGE if part["type"] == "image_url" else part["text"] for part in message["content"])
        said.append(f"<|im_start|>{message['role']}\n{''.join(parts)}<|im_end|>\n")
    truth.same("texts of the template", where, re.sub(r"(<\|image_pad\|>)+", r"\1", text), "".join(said))
    shown = sum(part["type"] == "image_url" for message in messages for part in message["content"])
    truth.same("images that the processor took", where, len(found.get("image_grid_thw", ())), shown)


if __name__ == "__main__":
    main()
