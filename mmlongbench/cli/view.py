"""The subcommand `view`: pages of a release, served on this machine or written as files."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from mmlongbench.cli.console import say, say_notes
from mmlongbench.cli.options import COUNT, NEW_PATH, PATH, bars, quiet_option, with_tasks
from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.example_cost import models_of

if TYPE_CHECKING:
    from mmlongbench.web.viewer.site import Site


_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@click.command()
@click.argument("release", type=PATH)
@click.option("--predictions", multiple=True, type=PATH, metavar="PATH", help="Answers of a model. Repeatable.")
@click.option("--scores", multiple=True, type=PATH, metavar="PATH", help="Scores that `score` wrote. Repeatable.")
@click.option("--models", default="", metavar="A,B|all", help="Models by whose rules the ruler can be drawn.")
@click.option("--window", "windows", multiple=True, metavar="MODEL=TOKENS", help="The window of a model, such as 128K.")
@click.option("--shortcuts", type=PATH, metavar="FILE", help="The output of `shortcuts --json`, to show its findings.")
@click.option("--against", type=PATH, metavar="RELEASE", help="Another release, to show the differences.")
@click.option("--suspects", type=PATH, metavar="FILE", help="The output of `doctor --json`, to review its suspects.")
@click.option("--review", type=PATH, metavar="FOLDER", help="A folder of `questions`, to review its questions.")
@click.option("--images", type=PATH, help="The folder of images, if it is not in RELEASE.")
@click.option("--static", type=NEW_PATH, metavar="DIR", help="Write the pages as files, and end.")
@click.option("--limit", type=COUNT, help="With --static, the examples of each file; 20 by default.")
@click.option("--port", type=click.IntRange(0, 65535), default=7870, show_default=True, help="0 takes a free port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on; others need --token.")
@click.option("--token", metavar="TEXT", help="Who opens the pages must have this; at least 16 characters.")
@quiet_option("Print only errors and the address.")
@with_tasks
def view(
    release: Path,
    predictions: tuple[Path, ...],
    scores: tuple[Path, ...],
    models: str,
    windows: tuple[str, ...],
    shortcuts: Path | None,
    against: Path | None,
    suspects: Path | None,
    review: Path | None,
    images: Path | None,
    static: Path | None,
    limit: int | None,
    port: int,
    host: str,
    token: str | None,
    quiet: bool,
    tasks: TaskFiles,
) -> None:
    """Look at RELEASE in a browser: its datasets, every example as a model gets it, and what models answered.

    RELEASE is a folder that this engine built, or public files that others made. The pages are served on this machine
    alone and read only; with --static they are written as files that open from disk.
    """
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise ReleaseError(f'view needs {name}: pip install "mmlongbench[view]"')
    from mmlongbench.web.viewer.opening import Given, open_site
    from mmlongbench.web.viewer.static_site import LIMIT, write_site

    if limit and not static:
        raise click.UsageError("--limit is for --static: a server shows all examples")
    if host not in _LOOPBACK and not token and not static:
        raise click.UsageError(f"--host {host}: others could read the release; give a --token of 16 characters or more")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise click.UsageError("--token: has a character that no cookie can hold; use printable ASCII characters")
    if token is not None and len(token) < 16:
        raise click.UsageError(f"--token: {len(token)} characters, expected at least 16")
    if suspects and review:
        raise click.UsageError("--suspects and --review: give one")
    asked = models_of(models, windows)
    given = Given(predictions, scores, asked, shortcuts, against, images, tasks, suspects, review)
    site = open_site(release, given, bars(is_quiet=quiet))
    say_notes(site.answers.notes)
    if static:
        done = write_site(site, static, limit or LIMIT, bars(is_quiet=quiet))
        if not quiet:
            left = f"; {done.left_out:,} more have no page (--limit)" if done.left_out else ""
            counts = f"{done.pages:,} examples, {done.files:,} files, {done.bytes:,} bytes{left}"
            say(f"{static}: {counts}; open {static}/index.html")
    else:
        _serve(site, host, port, token or "")


def _serve(site: "Site", host: str, port: int, token: str) -> None:
    from mmlongbench.web.viewer.app import application
    from mmlongbench.web.viewer.guard import Door
    from mmlongbench.web.viewer.serving import serve

    shown = f"[{host}]" if ":" in host else host

    def ready(found: int) -> None:
        query = f"?token={quote(token, safe='')}" if token else ""
        line = f"http://{shown}:{found}/{query} shows {site.viewed.name}; press Ctrl-C to end"
        say(line, has_secret=True)

    serve(application(site, Door(host, token)), host, port, ready)
