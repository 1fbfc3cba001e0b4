"""Downloads files of datasets of the Hugging Face hub to the hub's own cache."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.folders import visible_files
from mmlongbench.io.locations import HubFiles
from mmlongbench.io.printable import without_secrets


def downloaded(location: HubFiles, path: str, patterns: Sequence[str], field: str, *, is_shown: bool = False) -> Path:
    """Return a file or a folder of a dataset, after downloading it if necessary.

    Args:
        location: the dataset.
        path: a file or a folder of it; empty for the whole dataset.
        patterns: the files that are needed of the whole dataset, such as `*.parquet`. If there are none, a path must be
            given, because a dataset may be larger than a disk.
        field: the source as messages name it, such as `source.data`.
        is_shown: whether the hub's client shows bars.

    Raises:
        SourceError: the dataset cannot be downloaded, or has no such file; the message says why.

    """
    wanted = [path, f"{path}/**"] if path else list(patterns)
    if not wanted:
        todo = "name the file or folder that is needed, or download it and give its path"
        raise SourceError(
            Fault("unknown-source", f"hub:{location.repository}/<path>", f"{location}", "", "", field, todo)
        )
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars, enable_progress_bars

    (enable_progress_bars if is_shown else disable_progress_bars)()
    try:
        found = snapshot_download(
            location.repository,
            repo_type="dataset",
            revision=location.revision or None,
            allow_patterns=wanted,
        )
    except Exception as error:  # the errors of the hub's client have no common base
        what = without_secrets(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
        todo = "download it and give its path, or check its name and the network"
        raise SourceError(
            Fault("unreachable-dataset", "a dataset of the hub that can be read", what, field=field, todo=todo)
        ) from error
    folder = Path(found) / path if path else Path(found)
    if not folder.exists():
        todo = "correct the path; the page of the dataset lists its files"
        raise SourceError(Fault("missing-source", f"{path!r:.120} in it", "none", "", "", f"{field}: {location}", todo))
    return folder


def matching_files(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return the visible files of a downloaded dataset that match one of the patterns. The hub's cache may hold others,
    which an earlier download has left there.
    """
    names = {file: file.relative_to(folder).as_posix() for file in visible_files(folder)}
    return [file for file, name in names.items() if any(fnmatchcase(name, pattern) for pattern in patterns)]
