"""Texts that models read as commands are released in a form that no tokenizer reads as special."""

import json
from pathlib import Path

import pytest
from tiny import command, draw_pdf, write_manifest, write_rows
from tiny import row as question
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from mmlongbench.prompt import commands_in, escape_markers

LITERAL = {
    "any loader": ["<image>", "<video>", "<audio>"],
    "Qwen-VL": ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|video_pad|>", "<|endoftext|>"],
    "Llama": ["<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|image|>", "<s>", "</s>", "<unk>"],
    "Pixtral": ["[IMG]", "[IMG_BREAK]", "[IMG_END]", "[INST]", "[/INST]", "[TOOL_CALLS]", "[AVAILABLE_TOOLS]"],
    "Gemma": ["<start_of_image>", "<end_of_image>", "<image_soft_token>", "<start_of_turn>", "<end_of_turn>", "<eos>"],
    "InternVL": ["<img>", "</img>", "<IMG_CONTEXT>", "<ref>", "</box>"],
    "MiniCPM-V": ["<slice>", "</slice>", "</image>", "<image_id>"],
    "SmolVLM": ["<fake_token_around_image>", "<global-img>", "<row_1_col_12>", "<end_of_utterance>"],
    "GLM": ["[gMASK]", "<sop>", "<|begin_of_image|>", "<|observation|>"],
    "Kimi-VL": ["<|media_pad|>", "<|im_middle|>"],
    "DeepSeek": ["<｜begin▁of▁sentence｜>", "<|ref|>", "<|/ref|>"],
    "Phi": ["<|image_1|>", "<|assistant|>", "<|end|>"],
    "Molmo": ["<im_patch>", "<im_col>"],
    "Qwen3": ["<think>", "</think>", "<tool_call>", "</tool_response>"],
    "Voxtral": ["[AUDIO]", "[BEGIN_AUDIO]", "[THINK]", "[ARGS]", "[CALL_ID]"],
    "Llama 2": ["<<SYS>>", "<</SYS>>"],
    "Gemma 4": ["<|tool_call>", "<tool_call|>", "<|turn>", "<turn|>"],
    "GPT": ["<|start|>", "<|channel|>", "<|message|>", "<|endofprompt|>"],
}
PLAIN = ["a < b and c > d", "<b>bold</b>", "[1]", "[IMG", "x <| y |> z", "f<int>", "|im_end|", "< |im_end| >"]


@pytest.mark.parametrize(("family", "texts"), LITERAL.items())
def test_no_special_token_of_a_family_is_left_in_a_text(family: str, texts: list[str]) -> None:
    """The library that the families' tokenizers are made with finds each literal, and none in what is released."""
    tokenizer = Tokenizer(WordLevel({"[U]": 0}, unk_token="[U]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(texts)
    for text in texts:
        inside = f"see{text}here {text}"
        special = tokenizer.token_to_id(text)
        assert special in tokenizer.encode(inside).ids
        assert commands_in(inside) == (text,)
        released = escape_markers(inside)
        assert set(tokenizer.encode(released).ids) == {0}
        assert (commands_in(released), escape_markers(released)) == ((), released)
        assert released.replace(" ", "") == inside.replace(" ", "")


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_stay_as_they_are(text: str) -> None:
    assert escape_markers(text) == text


def test_a_release_has_none_and_the_audit_remarks_on_those_of_others(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    draw_pdf(tmp_path / "documents/ash.pdf", 2)
    write_rows(tmp_path, (question("ash.pdf", "Is <|im_end|> or [IMG] on it?", "hard", "[1]"),))
    out = tmp_path / "release"
    assert command("build", write_manifest(tmp_path / "own.yaml"), "--out", out).code == 0
    file = out / "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    assert json.loads(file.read_text("utf-8"))["question"] == "Is < |im_end| > or [ IMG ] on it?"
    assert "read as commands" not in command("audit", out).out
    file.write_text(file.read_text("utf-8").replace("< |im_end| >", "<|im_end|>"), "utf-8")
    said = command("audit", out).out
    assert "texts that models read as commands" in said
    assert "with <|im_end|>" in said
