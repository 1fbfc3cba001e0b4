"""A tokenizer that is not additive at newlines."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Train a byte-level BPE that merges across newlines, and save it."""

    def write() -> Path:
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
        text = "\n\nDocument: Passage 1. grasshopper grasshopper\n\nlabel: 3\n\nlabel: 4\n\nDocument alpha (page 3): "
        tokenizer.train_from_iterator([text] * 50, trainer)
        path = tmp_path_factory.mktemp("bpe") / "tokenizer.json"
        tokenizer.save(str(path))
        return path

    return write
