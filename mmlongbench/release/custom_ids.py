"""The name that an example has in a file of requests, and in the file of results that comes back."""

import hashlib
import json

from mmlongbench.release.opened import Example

LENGTH = 32
"""The number of characters. Servers accept at most 64."""


def custom_id(example: Example, sample: int | None = None) -> str:
    """Return the name of the request for an example. It depends on the example alone: on its file, id and placement,
    and on what a model is sent (see `Example.digest`). So results of another release are not taken for this one's.

    Args:
        example: the example.
        sample: the number of the sample, if an example is sent several times; None: it is sent once.

    Raises:
        ReleaseError: the lock does not have an image of the prompt.

    """
    numbered = {} if sample is None else {"sample": sample}
    named = {**example.key, **numbered, "digest": example.digest}
    return hashlib.sha256(json.dumps(named, sort_keys=True).encode()).hexdigest()[:LENGTH]
