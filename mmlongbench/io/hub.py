"""Downloads files of datasets of the Hugging Face hub to the hub's own cache."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.errors import Fault, FetchError, SourceError
from mmlongbench.io.downloads import WORTH, AgainError, HttpRefusal, Remote, Transfer, retry_after
from mmlongbench.io.folders import visible_files
from mmlongbench.io.locations import HubFiles
from mmlongbench.io.printable import without_secrets

if TYPE_CHECKING:
    from huggingface_hub.hf_api import DatasetInfo

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_SECONDS = 60.0
"""The seconds that the hub has for a listing."""


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a dataset, as the hub lists it; its path may be anything."""

    path: str
    size: int | None
    sha256: str
    """Empty for a small file, which has a git id instead."""
    git: str


@dataclass(frozen=True, slots=True)
class HubListing:
    """The files of a dataset at one commit."""

    name: str
    commit: str
    files: tuple[HubFile, ...]


class NoAccessError(FetchError):
    """The hub does not give a dataset to this user."""


class UnreachableError(FetchError):
    """The hub does not answer."""


class NoRevisionError(FetchError):
    """The hub has no such revision of a dataset."""


def hub_address() -> str:
    """Return the address of the hub: the variable HF_ENDPOINT, or the public one."""
    from huggingface_hub import constants

    return (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")


def list_dataset(name: str, revision: str, transfer: Transfer) -> HubListing:
    """Return the files of a dataset at a branch, a tag or a commit.

    Raises:
        NoAccessError: the hub asks for an agreement or a login first, or has no such dataset.
        NoRevisionError: the dataset has no such revision.
        FetchError: the hub cannot be reached, or its answer cannot be used.

    """
    from huggingface_hub import HfApi

    api = HfApi(endpoint=hub_address(), library_name="mmlongbench")
    found = _asked(
        f"hub:{name}",
        lambda: api.dataset_info(name, revision=revision, files_metadata=True, timeout=_SECONDS),
        transfer,
    )
    if not _COMMIT.fullmatch(found.sha or ""):
        raise FetchError(f"hub:{name}: the hub names no commit for {revision!r}; check HF_ENDPOINT")
    files = []
    for each in found.siblings or ():
        sha256 = each.lfs.sha256 if each.lfs else ""
        git = "" if each.lfs else each.blob_id or ""
        size = each.size if isinstance(each.size, int) and each.size >= 0 else None
        files.append(
            HubFile(
                str(each.rfilename),
                size,
                sha256 if _SHA256.fullmatch(sha256) else "",
                git if _COMMIT.fullmatch(git) else "",
            )
        )
    return HubListing(name, str(found.sha), tuple(files))


def remote_of(listing: HubListing, file: HubFile) -> Remote:
    """Return where the bytes of a file are; the token of the user, if there is one, is sent to the hub alone."""
    from huggingface_hub import hf_hub_url
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]  # it is documented

    url = hf_hub_url(listing.name, file.path, repo_type="dataset", revision=listing.commit, endpoint=hub_address())
    headers = build_hf_headers(library_name="mmlongbench")
    return Remote(url, headers, file.size, file.sha256, file.git)


def no_access(name: str, status: int, agree: str) -> NoAccessError:
    """Return the error for a dataset that the hub does not give to this user, with what to do."""
    page = without_secrets(f"{hub_address()}/datasets/{name}")
    first = f"agree to {agree} at {page}" if agree else f"check the name, or ask for access at {page}"
    login = "log in with `hf auth login` or set HF_TOKEN, and run the same command"
    what = "the hub has no such dataset for you" if status == 404 else "the hub refuses access"
    return NoAccessError(f"hub:{name}: {what} ({status}); {first}, {login}")


def _asked(what: str, ask: "Callable[[], DatasetInfo]", transfer: Transfer) -> "DatasetInfo":
    """Return what the hub answers, in bounded attempts."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RevisionNotFoundError

    attempt = 0
    while True:
        try:
            return ask()
        except RevisionNotFoundError as error:
            raise NoRevisionError(f"{what}: the hub has no such revision") from error
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status not in WORTH:
                raise HttpRefusal(status, f"{what}: the hub answered {status}") from error
            again = AgainError(f"the hub answered {status}", retry_after(error.response.headers))
        except OfflineModeIsEnabled as error:
            raise UnreachableError(f"{what}: HF_HUB_OFFLINE forbids to ask the hub; unset it to download") from error
        except httpx2.TransportError as error:
            again = AgainError(f"the hub cannot be reached ({type(error).__name__})", is_unreachable=True)
        except Exception as error:  # the errors of the hub's client have no common base
            said = without_secrets(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
            raise FetchError(f"{what}: the hub's answer cannot be used ({said}); check HF_ENDPOINT") from error
        try:
            transfer.again(what, attempt, again)
        except FetchError as error:
            raise UnreachableError(str(error)) from error
        attempt += 1


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
