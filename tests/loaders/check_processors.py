"""Counts whole prompts as the processors of transformers do: `python check_processors.py [RELEASE OUT]`, where
transformers can be imported.

For each family the whole processor is built from its class, with a tokenizer that is trained here and owns the special
tokens, and a chat template in the form of the family's own; nothing is downloaded. Prompts with several turns, long
texts, newlines beside images and images of many sizes run through it, and the tokens of its `input_ids` are compared
with those of `CrossModalCounter.prompt`. With `--vectors FILE` the tokens of single images are written instead.
"""

import argparse
import functools
import itertools
import json
import logging
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from PIL import Image
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from mmlongbench.draws import Draws
from tokenization import ChatTemplate, CrossModalCounter, load_tokenizer, vision_rule
from tokenization.template import Turns

OPERATORS: list[object] = []
SIZES = (
    *((20, 20), (56, 56), (90, 400), (100, 50), (224, 224), (300, 300), (333, 777), (448, 448), (500, 375)),
    *((512, 512), (600, 2000), (640, 427), (640, 480), (480, 640), (800, 800), (896, 896), (1000, 1000)),
    *((1024, 768), (1080, 1920), (1224, 1584), (1280, 720), (1654, 2339), (2000, 150), (2481, 3508), (4000, 3000)),
)
HERE = Path(__file__).parent
BASIC = ("bos_token", "eos_token")
"""The special tokens that a tokenizer of transformers takes by its own arguments."""
TURN = "{{ '<|im_start|>' + m.role + '\\n' }}PARTS{{ '<|im_end|>\\n' }}"
OPENING = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"


def parts_of(image: str, text: str = "c.text") -> str:
    """The part of a template that writes the parts of a message one after the other."""
    shown = f"{{% if c.type == 'image' %}}{{{{ {image!r} }}}}{{% else %}}{{{{ {text} }}}}{{% endif %}}"
    return f"{{% for c in m.content %}}{shown}{{% endfor %}}"


def chatml(image: str, before: str = "") -> str:
    """A template with the turns of Qwen, and `image` for an image."""
    return f"{before}{{% for m in messages %}}{TURN.replace('PARTS', parts_of(image))}{{% endfor %}}{OPENING}"


QWEN = chatml(
    "<|vision_start|><|image_pad|><|vision_end|>",
    "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}",
)
GLM = (
    "[gMASK]<sop>\n{% for m in messages %}{{ '<|' + m.role + '|>\\n' }}"
    + parts_of("<|begin_of_image|><|image|><|end_of_image|>")
    + "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\\n' }}PARTS{{ '<end_of_turn>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)
PIXTRAL = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}{{ '[INST]' }}"
    + parts_of("[IMG]")
    + "{{ '[/INST]' }}"
    "{% else %}" + parts_of("[IMG]") + "{{ eos_token }}{% endif %}{% endfor %}"
)
LLAMA = (
    "{{ bos_token }}{% for m in messages %}{{ '<|header_start|>' + m.role + '<|header_end|>\\n\\n' }}"
    + parts_of("<|image|>")
    + "{{ '<|eot|>' }}{% endfor %}{% if add_generation_prompt %}{{ '<|header_start|>assistant<|header_end|>\\n\\n' }}"
    "{% endif %}"
)


@dataclass(frozen=True)
class Family:
    """A family of models, and its processor."""

    rule: str
    """The name of its rule."""
    template: str
    special: tuple[str, ...]
    """The special tokens of its tokenizer."""
    named: dict[str, str]
    """Those among them that the processor looks for by name."""
    build: Callable[[Any, Any], Any]
    """Makes the processor from the module `transformers` and the tokenizer."""


def qwen(name: str, **limits: int) -> Callable[[Any, Any], Any]:
    def build(hf: Any, tokenizer: Any) -> Any:
        images = hf.Qwen2VLImageProcessor(**limits)
        video = hf.Qwen3VLVideoProcessor() if "3" in name else hf.Qwen2VLVideoProcessor()
        return getattr(hf, name)(image_processor=images, tokenizer=tokenizer, video_processor=video)

    return build


def glm(hf: Any, tokenizer: Any) -> Any:
    images = hf.Glm46VImageProcessor(size={"shortest_edge": 12544, "longest_edge": 9_633_792})
    return hf.Glm46VProcessor(image_processor=images, tokenizer=tokenizer, video_processor=hf.Glm46VVideoProcessor())


def gemma4(hf: Any, tokenizer: Any) -> Any:
    return hf.Gemma4Processor(
        feature_extractor=hf.Gemma4AudioFeatureExtractor(),
        image_processor=hf.Gemma4ImageProcessor(),
        tokenizer=tokenizer,
        video_processor=hf.Gemma4VideoProcessor(),
    )


def internvl(hf: Any, tokenizer: Any) -> Any:
    images = hf.GotOcr2ImageProcessor(
        size={"height": 448, "width": 448}, crop_to_patches=True, min_patches=1, max_patches=12
    )
    video = hf.InternVLVideoProcessor()
    return hf.InternVLProcessor(
        image_processor=images, tokenizer=tokenizer, video_processor=video, image_seq_length=256
    )


def llama4(hf: Any, tokenizer: Any) -> Any:
    return hf.Llama4Processor(image_processor=hf.Llama4ImageProcessor(), tokenizer=tokenizer)


CHATML = ("<|im_start|>", "<|im_end|>")
QWEN_MARKS = (*CHATML, "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
QWEN_NAMED = {"image_token": "<|image_pad|>", "video_token": "<|video_pad|>"} | {
    "vision_bos_token": "<|vision_start|>", "vision_eos_token": "<|vision_end|>"
}  # fmt: skip
GLM_MARKS = ("[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "<|system|>", "<|begin_of_image|>", "<|end_of_image|>")
QWEN3 = {"patch_size": 16, "min_pixels": 65536, "max_pixels": 16_777_216}
FAMILIES = (
    Family("qwen2.5-vl", QWEN, QWEN_MARKS, QWEN_NAMED,
           qwen("Qwen2_5_VLProcessor", min_pixels=3136, max_pixels=12_845_056)),
    Family("qwen3.5-vl", chatml("<|vision_start|><|image_pad|><|vision_end|>"), QWEN_MARKS, QWEN_NAMED,
           qwen("Qwen3VLProcessor", **QWEN3)),
    Family("glm-4.6v", GLM, (*GLM_MARKS, "<|image|>", "<|video|>"),
           {"image_token": "<|image|>", "video_token": "<|video|>"}, glm),
    Family("gemma3", GEMMA.replace("PARTS", parts_of("<start_of_image>", "c.text | trim")),
           ("<bos>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>", "<end_of_image>", "<image_soft_token>"),
           {"bos_token": "<bos>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>",
            "image_token": "<image_soft_token>"},
           lambda hf, tokenizer: hf.Gemma3Processor(image_processor=hf.Gemma3ImageProcessor(), tokenizer=tokenizer)),
    Family("gemma4", GEMMA.replace("PARTS", parts_of("<|image|>")),
           ("<bos>", "<start_of_turn>", "<end_of_turn>", "<|image>", "<image|>", "<|image|>", "<|audio>", "<audio|>",
            "<|audio|>"),
           {"bos_token": "<bos>", "boi_token": "<|image>", "eoi_token": "<image|>", "image_token": "<|image|>",
            "boa_token": "<|audio>", "eoa_token": "<audio|>", "audio_token": "<|audio|>"},
           gemma4),
    Family("internvl3.5", chatml("<IMG_CONTEXT>\n"), (*CHATML, "<img>", "</img>", "<IMG_CONTEXT>", "<video>"),
           {"start_image_token": "<img>", "end_image_token": "</img>", "context_image_token": "<IMG_CONTEXT>",
            "video_token": "<video>"},
           internvl),
    Family("pixtral-12b", PIXTRAL, ("<s>", "</s>", "[INST]", "[/INST]", "[IMG]", "[IMG_BREAK]", "[IMG_END]"),
           {"bos_token": "<s>", "eos_token": "</s>"},
           lambda hf, tokenizer: hf.PixtralProcessor(
               image_processor=hf.PixtralImageProcessor(size={"longest_edge": 1024}), tokenizer=tokenizer,
               patch_size=16, spatial_merge_size=1)),
    Family("llama-4", LLAMA,
           ("<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>", "<|image_start|>", "<|image_end|>",
            "<|image|>", "<|patch|>", "<|tile_x_separator|>", "<|tile_y_separator|>"),
           {"bos_token": "<|begin_of_text|>"}, llama4),
)  # fmt: skip


def define_operators() -> None:
    """Name the operators of torchvision. Its resizing is Python, but its import looks for operators that its builds for
    CPUs may lack.
    """
    import torch

    operators = torch.library.Library("torchvision", "FRAGMENT")
    OPERATORS.append(operators)  # they exist as long as the library does
    folder = Path(next(iter(find_spec("torchvision").submodule_search_locations)))  # type: ignore[union-attr,arg-type]
    listed = (folder / "_meta_registrations.py").read_text("utf-8")
    for name in sorted({*re.findall(r"(?:register_meta\(\"|torchvision::)(\w+)", listed)}):
        operators.define(f"{name}(Tensor x) -> Tensor")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", nargs="*", help="not used; tests/loaders/run.py gives them to every loader")
    parser.add_argument("--prompts", type=int, default=24, help="the number of prompts of each family")
    parser.add_argument("--vectors", type=Path, help="write the tokens of single images to this file")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    define_operators()
    vectors, different = {}, 0
    for family in FAMILIES:
        with tempfile.TemporaryDirectory() as folder:
            count, ours = processor(family, Path(folder))
            if chosen.vectors:
                written_newline = family.template.count("<IMG_CONTEXT>\\n")
                base = count([("user", ["x"])]) + written_newline
                vectors[family.rule] = [count([("user", ["x", size])]) - base for size in SIZES]
                continue
            prompts = [prompt(Draws((family.rule, number))) for number in range(chosen.prompts)]
            pairs = [(count(turns), ours.prompt(turns).total) for turns in prompts]
        differences = [found - expected for expected, found in pairs if found != expected]
        different += len(differences)
        images = sum(not isinstance(part, str) for turns in prompts for _, parts in turns for part in parts)
        print(  # noqa: T201
            f"{family.rule:12} prompts {len(pairs)}, images {images}, tokens {sum(first for first, _ in pairs):,}, "
            f"the longest {max(first for first, _ in pairs):,}, different {len(differences)} {differences[:5]}"
        )
    if chosen.vectors:
        chosen.vectors.write_text(json.dumps({"sizes": SIZES, "tokens": vectors}) + "\n", "utf-8")
    print(f"transformers {version('transformers')}, torch {version('torch')}: {different} different")  # noqa: T201
    sys.exit(different > 0)


def hf_processor(family: Family, folder: Path) -> Any:
    """Return the processor of a family, with a tokenizer that is trained here; `folder` gets its tokenizer.json."""
    import transformers

    file = folder / "tokenizer.json"
    file.write_text(trained(family.special), "utf-8")
    named = dict(family.named)
    basic = {key: named.pop(key) for key in BASIC if key in named}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(file), extra_special_tokens=named, **basic)
    tokenizer.pad_token = family.special[0]
    made = family.build(transformers, tokenizer)
    made.chat_template = made.tokenizer.chat_template = family.template
    made.tokenizer.backend_tokenizer.save(str(file))  # with the tokens that the processor adds
    return made


def processor(family: Family, folder: Path) -> tuple[Callable[[Turns], int], CrossModalCounter]:
    """Return what counts a prompt with the family's own processor, and with this project."""
    made = hf_processor(family, folder)

    def count(turns: Turns) -> int:
        messages = [
            {"role": role, "content": [{"type": "text", "text": part} if isinstance(part, str) else
                                       {"type": "image", "image": picture(part)} for part in parts]}
            for role, parts in turns
        ]  # fmt: skip
        found = made.apply_chat_template(messages, tokenize=True, add_generation_prompt=True, return_dict=True)
        return len(found["input_ids"][0])

    named = family.named
    set_tokens = "".join(f"{{% set {key} = {named[key]!r} %}}\n" for key in BASIC if key in named)
    template = ChatTemplate(family.rule, set_tokens + family.template)
    tokenizer = load_tokenizer(str(folder / "tokenizer.json"))
    return count, CrossModalCounter(tokenizer, vision_rule(family.rule), template)


@functools.cache
def picture(size: tuple[int, int]) -> Image.Image:
    return Image.new("RGB", size, (90, 120, 150))


@functools.cache
def written() -> str:
    """A text of many paragraphs: the pages of this repository."""
    return "\n\n".join(file.read_text("utf-8") for file in sorted((HERE.parents[1] / "docs").glob("*.md")))


@functools.cache
def trained(special: tuple[str, ...]) -> str:
    """Return a tokenizer of bytes with 3,000 tokens, among them runs of newlines, as JSON."""
    model = Tokenizer(models.BPE())
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model.decoder = decoders.ByteLevel()
    newlines = [" " + "\n" * count + "x" for count in range(1, 9)] * 500
    marks = [AddedToken(mark, normalized=False, special=True) for mark in special]
    trainer = trainers.BpeTrainer(
        vocab_size=3000, special_tokens=marks, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    model.train_from_iterator([written(), *newlines], trainer)
    return model.to_str()


def prompt(draws: Draws) -> Turns:
    """A conversation of one to four questions: texts, and images of drawn sizes, with newlines beside them."""
    edges = ("\n", "\n\n", "\n\n\n", " ", "  ", " \n", ":\n\n", "Page 3:\n", "", "")
    numbers = itertools.count()

    def pick(low: int, high: int) -> int:
        return draws.integer(str(next(numbers)), low, high)

    def passage(length: int) -> str:
        """Some text of the pages, mostly cut within a word, without what a template may write."""
        text = re.sub(r"[<>\[\]]", "|", written())
        start = pick(0, len(text) - length)
        return text[start : start + pick(1, length)] + ("", " 数 12é", "\n")[pick(0, 2)]

    turns: list[tuple[str, list[str | tuple[int, int]]]] = []
    for question in range(pick(1, 4)):
        if question:
            turns.append(("assistant", [passage(80)]))
        parts: list[str | tuple[int, int]] = [edges[pick(0, 7)] + passage(400)]
        for _ in range(pick(0, 6)):
            parts.append(SIZES[pick(0, len(SIZES) - 1)] if pick(0, 1) else (pick(60, 1500), pick(60, 1500)))
            if pick(1, 5) > 1:
                text = passage(6000 if pick(1, 10) == 1 else 200)
                parts.append(edges[pick(0, 9)] + text + edges[pick(0, 9)])
        turns.append(("user", parts))
    return turns


if __name__ == "__main__":
    main()
