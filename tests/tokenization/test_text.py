"""Loading by name, path and hub id, with tokenizers that the tests build."""

import hashlib
import pickle
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from tokenization import TokenizationError, load_tokenizer


@pytest.fixture(scope="module")
def byte_level(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A byte-level tokenizer that merges newlines, with everything on that would change a count."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, initial_alphabet=alphabet, show_progress=False, special_tokens=["<|end|>"]
    )
    tokenizer.train_from_iterator(["needle\n\n\n\nhaystack\n\n"] * 4, trainer)
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=50, pad_token="<|end|>")
    path = tmp_path_factory.mktemp("hub") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def test_loads_by_path(byte_level: Path) -> None:
    loaded = load_tokenizer(str(byte_level))
    assert (loaded.name, loaded.additive) == (str(byte_level), False)
    assert loaded.sha256 == hashlib.sha256(byte_level.read_bytes()).hexdigest()
    assert (loaded.count(""), loaded.count("needle"), loaded.count("xyz")) == (0, 1, 3)
    assert pickle.loads(pickle.dumps(loaded)) == loaded


def test_newlines_of_byte_level_tokenizers_merge(byte_level: Path) -> None:
    loaded = load_tokenizer(str(byte_level))
    assert (loaded.count("\n"), loaded.count("\n\n")) == (1, 1)
    assert loaded.price("\n") == 0
    assert loaded.price("x") == 1


def test_special_tokens_in_a_text_are_text(byte_level: Path) -> None:
    loaded = load_tokenizer(str(byte_level))
    assert loaded.count("<|end|>") == len("<|end|>")
    assert 0 not in loaded.encode("needle<|end|>needle")


def test_pickle_of_a_file_that_changed(byte_level: Path, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(byte_level.read_bytes())
    pickled = pickle.dumps(load_tokenizer(str(path)))
    path.write_bytes(byte_level.read_bytes() + b"\n")
    with pytest.raises(TokenizationError, match=r"SHA-256.*expected.*it changed since it was pickled"):
        pickle.loads(pickled)


def test_hub_id(byte_level: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")
    asked: list[tuple[str, str]] = []

    def download(owner_and_name: str, file: str) -> str:
        asked.append((owner_and_name, file))
        return str(byte_level)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    loaded = load_tokenizer("owner/model-1.5")
    assert asked == [("owner/model-1.5", "tokenizer.json")]
    assert (loaded.name, loaded.additive, loaded.count("needle")) == ("owner/model-1.5", False, 1)


@pytest.mark.parametrize("failure", [ConnectionError("offline"), FileNotFoundError("not in the cache"), RuntimeError()])
def test_hub_out_of_reach(failure: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub")

    def download(owner_and_name: str, file: str) -> str:
        raise failure

    monkeypatch.setattr(hub, "hf_hub_download", download)
    with pytest.raises(TokenizationError, match=f"'owner/name'.*{type(failure).__name__}.*give a path"):
        load_tokenizer("owner/name")


def test_hub_client_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(TokenizationError, match="'owner/name' is a hub id: install huggingface_hub, or give a path"):
        load_tokenizer("owner/name")


@pytest.mark.parametrize("name", ["lama2", "Llama-2", "LLAMA2"])
def test_near_name(name: str) -> None:
    with pytest.raises(
        TokenizationError, match=f"no tokenizer '{name}': did you mean 'llama2'.*tokenizer.json.*owner/name"
    ):
        load_tokenizer(name)


@pytest.mark.parametrize("name", ["cl100k", "", "\0", "größe"])
def test_unknown_name(name: str) -> None:
    with pytest.raises(
        TokenizationError, match=r"There are 'llama2' \(embedded\).*tokenizer\.json.*'owner/name'"
    ) as caught:
        load_tokenizer(name)
    assert f"no tokenizer {name!r}" in str(caught.value)
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["none.json", "./none", "a/b/c", "owner/none.json", "../none"])
def test_missing_path(name: str) -> None:
    with pytest.raises(TokenizationError, match=r"there is no such file; give the path of a tokenizer\.json") as caught:
        load_tokenizer(name)
    assert f"tokenizer {name!r}" in str(caught.value)


def test_path_too_long() -> None:
    with pytest.raises(TokenizationError, match="cannot be read"):
        load_tokenizer("x" * 10_000)


def test_folder(tmp_path: Path) -> None:
    with pytest.raises(TokenizationError, match=r"is a folder: give the path of the tokenizer\.json in it"):
        load_tokenizer(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff", b'{"model": {"type": "none"}}', b"[1, 2]"])
def test_not_a_tokenizer(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(TokenizationError, match=r"is not a tokenizer\.json that can be used:") as caught:
        load_tokenizer(str(path))
    assert repr(str(path)) in str(caught.value)
