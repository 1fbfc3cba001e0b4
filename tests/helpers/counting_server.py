"""How a server of a vision-language model counts a request: Llama 2 text × a ratio, images by a rule, a template."""

import base64
import io
from collections.abc import Callable
from typing import Any

from model_server import Request, Said
from PIL import Image

from tokenization import load_tokenizer, vision_rule

TEMPLATE = 18
RATIO = 1.25
RULE = vision_rule("qwen2.5-vl")


def parts_of(request: Request) -> list[dict[str, Any]]:
    """All parts of a request, in order; a text without parts is one."""
    contents = [message["content"] for message in request["messages"]]
    as_parts = [[{"type": "text", "text": each}] if isinstance(each, str) else each for each in contents]
    return [part for parts in as_parts for part in parts]


def text_in(request: Request) -> str:
    return "".join(part["text"] for part in parts_of(request) if part["type"] == "text")


def sizes_in(request: Request) -> list[tuple[int, int]]:
    """The pixel sizes of the images of a request, from their bytes."""
    urls = [part["image_url"]["url"] for part in parts_of(request) if part["type"] == "image_url"]
    return [Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size for url in urls]


def tokens_of(request: Request, sizes: list[tuple[int, int]] | None = None) -> int:
    """The prompt tokens of a request; with `sizes`, of a request with images of these sizes."""
    shown = sizes_in(request) if sizes is None else sizes
    return TEMPLATE + round(RATIO * load_tokenizer("llama2").count(text_in(request))) + RULE.total(shown)


def counting(words: str = "hard", fault: Callable[[Request, int], int] = lambda request, tokens: tokens) -> Any:
    """A script that answers everything alike, and counts; `fault` changes the count of a request."""
    return lambda request: Said(words, prompt_tokens=fault(request, tokens_of(request)))


def is_probe(request: Request) -> bool:
    return bool(request.get("max_tokens") == 1)
