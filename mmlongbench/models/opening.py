"""Opens a run: the release, the chosen examples, and the client of the endpoint."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from mmlongbench.errors import ReleaseError
from mmlongbench.models.asking import Asking
from mmlongbench.models.client import ModelClient
from mmlongbench.models.pace import Backoff
from mmlongbench.models.prediction_lines import predictions_file
from mmlongbench.models.settings import Caller, EndpointSettings, RunOptions
from mmlongbench.release.release import Release
from mmlongbench.release.selection import Selection, select

_CALLER = Caller("model", "--")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@contextmanager
def opened_run(
    release: Release,
    selection: Selection,
    options: RunOptions,
    settings: EndpointSettings,
    *,
    remote_files: bool = False,
) -> Iterator[tuple[Asking, ModelClient]]:
    """Open an endpoint for a release; yield what is asked, and the client.

    Args:
        release: the release.
        selection: the examples.
        options: how the model is asked.
        settings: the endpoint.
        remote_files: whether paths of images may be sent to another host.

    Raises:
        ReleaseError: the release cannot be read, or the options do not fit each other.
        EndpointError: the settings make no sense, or the file of answers cannot be used.

    """
    asking = Asking(release, select(release, selection), options)
    with closing(ModelClient(settings, Backoff(), _CALLER)) as client:
        host = urlsplit(settings.url).hostname or ""
        if options.images in ("path", "file-url") and host not in _LOOPBACK and not remote_files:
            raise ReleaseError(
                f"images {options.images!r}: {host} is another host, which does not see the files here; use data-uri "
                "or a URL, or --remote-files if it does"
            )
        yield asking, client


def calls_file(out: Path, model: str) -> Path:
    """Return the path of the file that keeps a model's answers, beside its predictions."""
    return out.parent / f"{predictions_file(model).stem}.calls.sqlite"
