"""A scripted model server over real HTTP on this machine: correct, slow, broken, rate-limiting, hanging or wrong."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from mmlongbench.metrics.judge.judged import judge_client
from mmlongbench.models.client import Backoff, ModelClient
from mmlongbench.models.settings import EndpointSettings
from mmlongbench.task.metric import Judge

QUICK = Backoff(first=0.001, most=0.002, asked=1.0)
Request: TypeAlias = dict[str, Any]


class Grade(BaseModel):
    """A verdict that a request may ask for."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
    reason: str
    score: int = Field(ge=1, le=5)


@dataclass(frozen=True)
class Said:
    """How the server answers a request."""

    words: str = ""
    status: int = 200
    body: bytes | None = None
    """Sent in place of a chat completion."""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    """Seconds before anything is sent."""
    hangs: bool = False
    """Never answers."""
    breaks_off: bool = False
    """Sends half of its body."""
    drips: float = 0.0
    """Seconds between two bytes."""
    raw: bytes | None = None
    """Sent in place of a response, status, headers and all."""
    finish_reason: str = "stop"
    until: threading.Event | None = None
    """Nothing is sent before it."""
    prompt_tokens: int | None = 10
    """The tokens of the prompt in `usage`; None: there is no `usage`."""
    message: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the message."""


Script: TypeAlias = Callable[[Request], Said]


def good(**verdict: Any) -> Said:
    """Return a verdict that fits the schema."""
    return Said(json.dumps(verdict))


def form_of(request: Request) -> str:
    """Which verdict is asked for."""
    name = request["response_format"]["json_schema"]["name"]
    assert isinstance(name, str)
    return name


KEYS = {
    "sentence_count": "precision",
    "recall": "recall",
    "fluency": "fluency",
    "covered_count": "list",
    "answer_score": "answer",
}
"""Keys of replies. A prompt without a schema is recognised by the key that it names."""


def question_of(request: Request) -> str:
    """Which verdict is asked for, in words or by the name of a schema."""
    if "response_format" in request:
        return form_of(request)
    return next(name for key, name in KEYS.items() if f'"{key}"' in text_of(request))


def replies(words: Mapping[str, str]) -> Script:
    """Return a judge that answers each question with the value under its name."""
    return lambda request: Said(words[question_of(request)])


def text_of(request: Request) -> str:
    """The material of a request, without its pictures."""
    content = request["messages"][-1]["content"]
    text = content if isinstance(content, str) else content[-1]["text"]
    assert isinstance(text, str)
    return text


def pictures_of(request: Request) -> list[str]:
    """The data URLs of a request."""
    content = request["messages"][-1]["content"]
    return [] if isinstance(content, str) else [part["image_url"]["url"] for part in content[:-1]]


class ModelServer(ThreadingHTTPServer):
    """Counts what comes in and what was answered."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.requests: list[Request] = []
        self.answered: Counter[str] = Counter()
        """Material of requests whose answer was sent whole, with status 200 and words."""
        self.under_way = 0
        self.waiting = 0
        """Clients whose answer is not on its way: one that has it may ask again while `under_way` still counts it."""
        self.most_waiting = 0
        self.abandoned = 0
        """Responses that a client did not wait for."""
        self.guard = threading.Lock()
        self.window: int | None = None
        """What the list of models says about the window of every model."""
        self.stopped = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that closed its connection; tests do this on purpose."""
        with self.guard:
            self.abandoned += 1


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        listed = [{"id": "m", "max_model_len": self.server.window}] if self.server.window else []
        body = json.dumps({"object": "list", "data": listed}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.guard:
            server.requests.append({**request, "path": self.path})
            server.under_way += 1
            server.waiting += 1
            server.most_waiting = max(server.most_waiting, server.waiting)
            said = server.script(request)
        try:
            if said.hangs or server.stopped.wait(said.delay):
                server.stopped.wait(60)
                self.close_connection = True
                return
            if said.until:
                said.until.wait(60)
            with server.guard:
                server.waiting -= 1
            self._say(said)
            if said.status == 200 and said.words:
                with server.guard:
                    server.answered[f"{request['model']}: {text_of(request)}"] += 1
        finally:
            with server.guard:
                server.under_way -= 1

    def _say(self, said: Said) -> None:
        body = said.body
        if body is None:
            body = completion(said.words, said.finish_reason, said.prompt_tokens, **said.message)
        if said.raw is not None:
            self._drip(said.raw, said.drips)
            return
        self.send_response(said.status)
        for name, value in {"content-type": "application/json", **said.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if said.breaks_off:
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        elif said.drips:
            self._drip(body, said.drips)
        else:
            self.wfile.write(body)

    def _drip(self, sent: bytes, seconds: float) -> None:
        for byte in sent:
            self.wfile.write(bytes([byte]))
            if self.server.stopped.wait(seconds):
                break

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""


def completion(words: str | None, finish_reason: str = "stop", prompt_tokens: int | None = 10, **message: Any) -> bytes:
    """Return a response in the form of the protocol."""
    said = {"role": "assistant", "content": words, **message}
    choice = {"index": 0, "message": said, "finish_reason": finish_reason}
    if prompt_tokens is None:
        return json.dumps({"choices": [choice]}).encode()
    usage = {"prompt_tokens": prompt_tokens, "completion_tokens": 3, "total_tokens": prompt_tokens + 3}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


@contextmanager
def serving(script: Script) -> Iterator[ModelServer]:
    """A model that listens until the block ends."""
    with ModelServer(script) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stopped.set()
            server.shutdown()
            thread.join()


@contextmanager
def client_of(server: ModelServer, **changes: Any) -> Iterator[ModelClient]:
    """A client whose waits are short."""
    with closing(ModelClient(replace(EndpointSettings(server.url, timeout=30.0), **changes), QUICK)) as opened:
        yield opened


@contextmanager
def judge_of(server: ModelServer, **changes: Any) -> Iterator[ModelClient]:
    """A client for judges whose waits are short."""
    with closing(judge_client(replace(Judge(server.url, ("m",), timeout=30.0), **changes), QUICK)) as opened:
        yield opened


def in_turn(*said: Said) -> Script:
    """Return a script: one answer for each request in turn; the last answer repeats."""
    left = list(said)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]
