"""Downloads datasets of the Hugging Face hub to the hub's own cache. The name of a dataset may include a revision."""

import re
from collections.abc import Sequence
from pathlib import Path

from mmlongbench.errors import Fault, SourceError

_NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")


def downloaded(name: str, patterns: Sequence[str], source: str) -> Path:
    """Return the folder with a dataset's files, after downloading them if necessary.

    Args:
        name: `owner/name`, or `owner/name@revision`.
        patterns: the files that are needed, such as `*.parquet`; empty: this source cannot come from the hub.
        source: the manifest's name of the source, for messages.

    Raises:
        SourceError: the dataset cannot be downloaded; the message says why.

    """
    field = f"source.{source}"
    parts = _NAME.fullmatch(name)
    if not patterns or parts is None:
        expected = "hub:owner/name[@revision]" if patterns else "a path: this source cannot come from the hub"
        raise SourceError(
            Fault(
                "unknown-source",
                expected,
                f"hub:{name}",
                field=field,
                todo="correct the name, or download the dataset and give its path",
            )
        )
    from huggingface_hub import snapshot_download

    try:
        found = snapshot_download(
            parts["name"], repo_type="dataset", revision=parts["revision"], allow_patterns=list(patterns)
        )
    except Exception as error:  # the errors of the hub's client have no common base
        what = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        todo = "download it and give its path, or check its name and the network"
        raise SourceError(
            Fault("unreachable-dataset", "a dataset of the hub that can be read", what, field=field, todo=todo)
        ) from error
    return Path(found)
