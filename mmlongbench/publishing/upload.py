"""Uploads a published folder to the Hub, after checking that it is what was made. Nothing else here sends anything."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import ReleaseError
from mmlongbench.io.printable import without_secrets
from mmlongbench.release.published_folder import unlike_checksums

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What was uploaded."""

    repository: str
    """The dataset on the Hub, as `owner/name`."""
    commit: str
    """The commit that has the files."""
    url: str
    """The page of the commit."""


def repository_of(to: str) -> str:
    """Return the name of a dataset on the Hub.

    Raises:
        ReleaseError: `to` does not name one.

    >>> repository_of("hub:owner/name")
    'owner/name'

    """
    kind, _, name = to.partition(":")
    if kind != "hub" or not _REPOSITORY.fullmatch(name):
        raise ReleaseError(f"--to {to!r:.200}: expected hub:owner/name")
    return name


def upload(folder: Path, repository: str, *, is_public: bool = False) -> Uploaded:
    """Upload a published folder, and remove files of the dataset that the folder does not have.

    Files that the dataset already has are not sent again. The login is that of the Hub's own client.

    Args:
        folder: a folder that `publish` made.
        repository: the dataset, as `owner/name`; it is made if it does not exist.
        is_public: whether a dataset that is made here can be seen by everybody.

    Raises:
        ReleaseError: the folder has changed since it was made, or the Hub refuses it.

    """
    check_folder(folder)
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        api.create_repo(repository, repo_type="dataset", private=not is_public, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=folder,
            commit_message="Publish a release",
            delete_patterns="*",
        )
    except Exception as error:  # the errors of the hub's client have no common base
        what = without_secrets(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
        raise ReleaseError(
            f"hub:{repository}: cannot be uploaded: {what}; check the name, the login (`hf auth login`) and the "
            "network; the same command continues"
        ) from error
    return Uploaded(repository, done.oid, done.commit_url)


def check_folder(folder: Path) -> None:
    """Compare a folder with its checksums.

    Raises:
        ReleaseError: a file is missing, has changed, or is not in the list.

    """
    if found := next(unlike_checksums(folder), None):
        raise ReleaseError(f"{folder}: {found[0]}: {found[1]}; publish the release again")
