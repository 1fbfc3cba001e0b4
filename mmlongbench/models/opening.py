"""Opens a run: the release, the model's rule and tokenizer, and the client of the endpoint."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from mmlongbench.errors import ReleaseError
from mmlongbench.models.asking import Asking, RunOptions
from mmlongbench.models.client import ModelClient
from mmlongbench.models.pace import Backoff
from mmlongbench.models.settings import Caller, EndpointSettings
from mmlongbench.release.models import ModelOptions
from mmlongbench.release.opened import open_release
from mmlongbench.release.selecting import Selection, select
from tokenization import TextTokenizer, TokenizationError, VisionRule, vision_rule

NO_RULE = "none"
"""The value of `count_as` for a model whose tokens are not checked."""
FOLDER = "predictions"
"""The folder of predictions files, in the current folder."""
_CALLER = Caller("model", "--")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@contextmanager
def opened_run(
    release: Path, selection: Selection, options: RunOptions, settings: EndpointSettings, *, remote_files: bool = False
) -> Iterator[tuple[Asking, ModelClient]]:
    """Open a release and an endpoint; yield what is asked, and the client.

    Args:
        release: the folder of the release.
        selection: the examples.
        options: how the model is asked.
        settings: the endpoint.
        remote_files: whether paths of images may be sent to another host.

    Raises:
        ReleaseError: the release cannot be read, or the options do not fit each other.
        EndpointError: the settings make no sense, or the file of answers cannot be used.

    """
    host = urlsplit(settings.url).hostname or ""
    if options.images in ("path", "file-url") and host not in _LOOPBACK and not remote_files:
        raise ReleaseError(
            f"images {options.images!r}: {host or settings.url} is another host, which does not see the files here; "
            "use data-uri or a URL, or --remote-files if it does"
        )
    if options.samples > 1 and not options.temperature > 0:
        raise ReleaseError(f"{options.samples} samples: all answers would be the same; give a temperature above 0")
    opened = open_release(release)
    asking = Asking(opened, select(opened, selection), options)
    with closing(ModelClient(settings, Backoff(), _CALLER)) as client:
        yield asking, client


def counting(model: str, count_as: str | None, tokenizer: str | None) -> tuple[VisionRule | None, TextTokenizer | None]:
    """Return the rule and the tokenizer that count for a model.

    Args:
        model: the name of the model in requests.
        count_as: the name of a model with a rule; `none` for no rule; None: `model` itself.
        tokenizer: the path or hub id of the model's tokenizer; None: the counts of the release are scaled.

    Raises:
        ReleaseError: no rule has this name, or the tokenizer cannot be read.

    """
    if count_as == NO_RULE:
        return None, None
    try:
        rule = vision_rule(count_as or model)
    except TokenizationError as error:
        if count_as:
            raise ReleaseError(f"--count-as {count_as}: {error}") from error
        raise ReleaseError(
            f"model {model!r}: its name does not say how it counts images; give --count-as with the name of a model "
            f"that counts alike, or --count-as {NO_RULE} to run without receipts"
        ) from error
    opened = ModelOptions(rule.name, None, tokenizer).open()
    return opened.rule, opened.text


def predictions_file(model: str, context: str) -> Path:
    """Return the path of a model's predictions.

    >>> predictions_file("Qwen/Qwen2.5-VL-7B", "none").as_posix()
    'predictions/Qwen_Qwen2.5-VL-7B.none.jsonl'
    """
    name = model.replace("/", "_").lstrip(".")
    return Path(FOLDER) / f"{name}{f'.{context}' if context else ''}.jsonl"


def calls_file(out: Path, model: str) -> Path:
    """Return the path of the file that keeps a model's answers, beside its predictions."""
    return out.parent / f"{model.replace('/', '_').lstrip('.')}.calls.sqlite"
