"""Runs a model over the tiny release, against a server that a script answers for."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from counting_server import RULE, is_probe
from model_server import QUICK, Request, Script, serving

from mmlongbench.io.progress import Progress
from mmlongbench.models.run import Run, RunResult
from mmlongbench.models.settings import EndpointSettings, RunOptions
from mmlongbench.release.release import open_release
from mmlongbench.release.selection import Selection

OPTIONS = RunOptions("m", count_as=RULE.name)
TINY = Selection(lengths=("2K",))
NUMBER = 6
"""The examples of the tiny release at 2K."""


def asked(
    release: Path, out: Path, script: Script, options: RunOptions = OPTIONS, selection: Selection = TINY, **changes: Any
) -> tuple[RunResult, list[Request], Run]:
    """Run once; return the result, the requests without probes, and the run."""
    with serving(script) as server:
        server.window = changes.pop("window", None)
        settings = replace(EndpointSettings(server.url, out.with_suffix(".sqlite"), timeout=30.0), **changes)
        with closing(Run(open_release(release), selection, options, settings, out, backoff=QUICK)) as run:
            run.prepare()
            result = run.ask(Progress(False))
        return result, [each for each in server.requests if not is_probe(each)], run


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
