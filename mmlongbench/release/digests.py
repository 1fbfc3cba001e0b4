"""The digest of an example: a hash of everything that a prediction and its score depend on."""

import hashlib
import json
from collections.abc import Mapping

from mmlongbench.errors import ReleaseError
from mmlongbench.prompt import Part, Prompt
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import Lock


def example_digest(prompt: Prompt, gold: object, lock: Lock) -> str:
    """Return the SHA-256 of a prompt, of the bytes of its images, and of its answer.

    Two releases that show a model the same texts and the same images, whatever the images are called, and have the same
    answer, give the same digest.

    Raises:
        ReleaseError: the lock does not have an image of the prompt.

    """
    said = [[turn.role, [_said(part, lock) for part in turn.parts]] for turn in prompt.turns]
    whole = json.dumps([said, gold], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()


def _said(part: Part, lock: Lock) -> str | Mapping[str, str]:
    if isinstance(part, str):
        return part
    file = lock.files.get(f"{IMAGES}/{part.path}")
    if file is None:
        raise ReleaseError(f"image {part.path!r}: is not in the lock; see `mmlongbench verify`")
    return {"image": file.sha256}
