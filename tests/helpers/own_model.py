"""The files of a model of one's own that count its text: a byte-level tokenizer, and a chat template."""

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

SPECIAL = ["<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"]
TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{% for p in m.content %}{% if p.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ p.text }}\
{% endif %}{% endfor %}<|im_end|>
{% endfor %}<|im_start|>assistant
"""
TEXTS = ["You are given a document with text and images, and a question. Answer: [answer]", "Document: ash, birch"]


def write_own(folder: Path) -> None:
    """Write `tokenizer.json` and `chat_template.jinja` into a folder."""
    folder.mkdir(exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
