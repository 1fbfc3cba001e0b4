"""The errors of the usual servers, in their own words."""

import pytest

from mmlongbench.models.refusals import REFUSALS, SKIPS, name_of
from mmlongbench.scoring.predictions import SKIPPED


@pytest.mark.parametrize(
    ("status", "message", "name"),
    [
        (400, "This model's maximum context length is 32768 tokens. However, you requested 40000", "context-length"),
        (400, "The decoder prompt (length 9001) is longer than the maximum model length of 8192", "context-length"),
        (400, "The input (40 tokens) is longer than the model's context length (32 tokens).", "context-length"),
        (400, "Requested token count exceeds the model's maximum context length", "context-length"),
        (400, "the request exceeds the available context size. try increasing it", "context-length"),
        (400, "At most 16 image(s) may be provided in one prompt.", "image-limit"),
        (400, "Image count 30 exceeds limit 16", "image-limit"),
        (413, "", "request-size"),
        (400, "raise VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES", "decode-budget"),
        (400, "an item of 20000 tokens exceeds the encoder cache size 16384", "encoder-cache"),
        (500, "Cannot load local files without `--allowed-local-media-path`.", "file-not-allowed"),
        (500, "[Errno 2] No such file or directory: '/x.jpg'", "missing-file"),
        (429, "slow down", "overloaded"),
        (429, "Too many tokens, please wait before trying again.", "overloaded"),
        (429, "Request too large for gpt on tokens per min (TPM)", "overloaded"),
        (400, "the number of images does not match the number of placeholders", "bad-request"),
        (500, "the request exceeds the available context size", "context-length"),
        (502, "at most 8 images", "server-error"),
        (422, "maximum context length is 8192", "context-length"),
        (400, "The number of images in the prompt exceeds the limit of 10", "image-limit"),
        (503, "", "overloaded"),
        (504, "", "timeout"),
        (422, "extra fields not permitted", "unknown-field"),
        (500, "Internal Server Error", "server-error"),
        (400, "something", "bad-request"),
    ],
)
def test_a_refusal_has_a_name(status: int, message: str, name: str) -> None:
    assert name_of(status, message) == name
    assert REFUSALS[name].advice


def test_what_a_model_cannot_take_is_skipped_with_a_reason_that_score_knows() -> None:
    assert set(SKIPS) <= set(REFUSALS)
    assert SKIPS == SKIPPED
