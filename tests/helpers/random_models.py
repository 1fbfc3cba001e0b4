"""A CLIP of random weights in the form of sentence-transformers, to test that image models are loaded."""

import json
from importlib import import_module
from pathlib import Path


def write_random_clip(folder: Path) -> None:
    """Write a tiny model with a vocabulary of letters."""
    st, tf = import_module("sentence_transformers"), import_module("transformers")
    modules = import_module("sentence_transformers.sentence_transformer.modules")

    kept = folder.with_name("parts")
    kept.mkdir()
    letters = [chr(code) for code in range(97, 123)]
    words = ["<|startoftext|>", "<|endoftext|>", *letters, *(f"{letter}</w>" for letter in letters)]
    (kept / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}), "utf-8")
    (kept / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    tokenizer = tf.CLIPTokenizer(str(kept / "vocab.json"), str(kept / "merges.txt"), model_max_length=16)
    pictures = tf.CLIPImageProcessor(size={"shortest_edge": 16}, crop_size={"height": 16, "width": 16})
    small = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**small, "vocab_size": len(words), "max_position_embeddings": 16, "bos_token_id": 0, "eos_token_id": 1}
    config = tf.CLIPConfig(
        text_config=text, vision_config={**small, "image_size": 16, "patch_size": 8}, projection_dim=8
    )
    tf.CLIPModel(config).save_pretrained(kept)
    tf.CLIPProcessor(image_processor=pictures, tokenizer=tokenizer).save_pretrained(kept)
    st.SentenceTransformer(modules=[modules.CLIPModel(str(kept))]).save(str(folder))
