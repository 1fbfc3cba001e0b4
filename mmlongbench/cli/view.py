"""The subcommand `view`: pages of a release, served on this machine or written as files."""

from importlib.util import find_spec
from pathlib import Path

import click

from mmlongbench.cli.console import say, say_notes
from mmlongbench.cli.options import COUNT, NEW_PATH, PATH, bars, fits_option, quiet_option, variant_option, with_tasks
from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.task_files import TaskFiles
from mmlongbench.release.example_cost import models_of


@click.command()
@click.argument("release", type=PATH)
@click.option("--predictions", multiple=True, type=PATH, metavar="PATH", help="Answers of a model. Repeatable.")
@click.option("--scores", multiple=True, type=PATH, metavar="PATH", help="Scores that `score` wrote. Repeatable.")
@click.option(
    "--count-as", "models", default="", metavar="A,B|all", help="Models by whose rules the ruler can be drawn."
)
@fits_option
@click.option("--shortcuts", type=PATH, metavar="FILE", help="The output of `shortcuts --json`, to show its findings.")
@click.option("--against", type=PATH, metavar="RELEASE", help="Another release, to show the differences.")
@click.option("--suspects", type=PATH, metavar="FILE", help="The output of `doctor --json`, to review its suspects.")
@click.option("--review", type=PATH, metavar="FOLDER", help="A folder of `questions`, to review its questions.")
@click.option("--images", type=PATH, help="The folder of images, if it is not in RELEASE.")
@variant_option("Show another form of the prompts that tasks offer, such as oracle (visual RAG).")
@click.option("--static", type=NEW_PATH, metavar="DIR", help="Write the pages as files, and end.")
@click.option("--limit", type=COUNT, help="With --static, the examples of each file; 20 by default.")
@click.option("--port", type=click.IntRange(0, 65535), default=7870, show_default=True, help="0 takes a free port.")
@quiet_option("Print only errors and the address.")
@with_tasks
def view(
    release: Path,
    predictions: tuple[Path, ...],
    scores: tuple[Path, ...],
    models: str,
    fits: tuple[str, ...],
    shortcuts: Path | None,
    against: Path | None,
    suspects: Path | None,
    review: Path | None,
    images: Path | None,
    variant: str,
    static: Path | None,
    limit: int | None,
    port: int,
    quiet: bool,
    tasks: TaskFiles,
) -> None:
    """Look at RELEASE in a browser: its datasets, every example as a model gets it, and what models answered.

    RELEASE is a folder that this engine built, or public files that others made. The pages are served on this machine
    alone, to whoever has the printed address, and read only; with --static they are written as files that open from
    disk.
    """
    for name in ("starlette", "uvicorn"):
        if find_spec(name) is None:
            raise ReleaseError(f'view needs {name}: pip install "mmlongbench[view]"')
    from mmlongbench.web.viewer.serve import LIMIT, serve, write_site
    from mmlongbench.web.viewer.site import open_site

    if limit and not static:
        raise click.UsageError("--limit is for --static: a server shows all examples")
    if suspects and review:
        raise click.UsageError("--suspects and --review: give one")
    site = open_site(
        release,
        bars(is_quiet=quiet),
        images=images,
        variant=variant,
        tasks=tasks,
        predictions=predictions,
        scores=scores,
        models=models_of(models, fits),
        shortcuts=shortcuts,
        against=against,
        suspects=suspects,
        review=review,
    )
    say_notes(site.answers.notes)
    if static:
        site.limit = limit or LIMIT
        shown, left_out, files, size = write_site(site, static, bars(is_quiet=quiet))
        if not quiet:
            left = f"; {left_out:,} more have no page (--limit)" if left_out else ""
            say(f"{static}: {shown:,} examples, {files:,} files, {size:,} bytes{left}; open {static}/index.html")
    else:
        serve(site, port, lambda address: say(f"{address} shows {site.viewed.name}; press Ctrl-C to end"))
