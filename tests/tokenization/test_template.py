"""Chat templates: what they write, where the images stand, where they come from, and how special tokens count."""

import json
from pathlib import Path

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from tokenization import ChatTemplate, TokenizationError, load_template, load_tokenizer
from tokenization.template import Turns

TURNS: Turns = [("user", ["look\n", (640, 480), (20, 20), "\nwhat?"]), ("assistant", ["a cat"]), ("user", ["why?"])]
QWEN = """{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- for part in message.content %}
        {%- if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part.text }}{% endif %}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
IMAGES_FIRST = """{% for m in messages %}{{ m.role }}:
{% for c in m.content if c.type == 'image' %}<image>
{% endfor %}{% for c in m.content if c.type == 'text' %}{{ c.text }}{% endfor %}

{% endfor %}"""
STRINGS = "{{ bos_token }}{% for m in messages %}{{ '[' + m['role'] + '] ' + m['content'] + '\n' }}{% endfor %}"


def test_pieces() -> None:
    template = ChatTemplate("qwen", QWEN)
    assert template.placeholder == "<|vision_start|><|image_pad|><|vision_end|>"
    assert template.pieces(TURNS) == [
        "<|im_start|>user\nlook\n",
        "",
        "\nwhat?<|im_end|>\n<|im_start|>assistant\na cat<|im_end|>\n<|im_start|>user\nwhy?<|im_end|>\n"
        "<|im_start|>assistant\n",
    ]
    assert template.placeholder.join(template.pieces(TURNS)) == template.render(TURNS)


def test_pieces_of_images_that_stand_first_and_end_in_a_newline() -> None:
    template = ChatTemplate("images first", IMAGES_FIRST)
    assert template.placeholder == "<image>"
    assert template.pieces(TURNS[:1]) == ["user:\n", "\n", "\nlook\n\nwhat?\n"]


def test_pieces_of_a_template_of_strings() -> None:
    template = ChatTemplate("strings", "{% set bos_token = '<s>' %}\n" + STRINGS)
    assert template.pieces(TURNS) == ["<s>[user] look\n", "", "\nwhat?\n[assistant] a cat\n[user] why?\n"]


def test_pieces_of_parts_that_have_markers_of_their_own() -> None:
    text = """{% for m in messages %}{% for c in m.content %}
{% if c.type == 'image' %}<|patch|>{% else %}<|text|>{{ c.text }}
<|end|>{% endif %}
{% endfor %}{% endfor %}"""
    template = ChatTemplate("markers", text)
    assert template.placeholder == "<|patch|>"
    assert template.pieces(TURNS[:1]) == ["<|text|>look\n\n<|end|>", "", "<|text|>\nwhat?\n<|end|>"]


def test_pieces_of_a_template_that_writes_a_list_as_json() -> None:
    template = ChatTemplate("json", "{% for m in messages %}{{ m | tojson }}{% endfor %}")
    assert len(template.pieces(TURNS)) == 3
    assert '"type"' not in template.render(TURNS)


def test_settings_of_transformers() -> None:
    text = """{% for m in messages %}
    {% if loop.index > 1 %}{% break %}{% endif %}
{{ m.content[0].text | tojson }} {{ strftime_now('%d %b %Y') }}
{% generation %}x{% endgeneration %}
{% endfor %}"""
    assert ChatTemplate("settings", text).render([("user", ["<é>"])] * 2) == '"<é>" 01 Jan 2025\nx'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{{ raise_exception('roles must alternate') }}", "refuses the conversation: roles must alternate"),
        ("{{ messages.append(1) }}", "refuses the conversation"),
        ("{% for %}", "refuses the conversation"),
        ("nothing", "does not write the text of a message"),
        ("{% for m in messages %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}", "nothing for an image"),
        (QWEN + "<|vision_start|><|image_pad|><|vision_end|>", "3 times .* are written for 2 images"),
    ],
)
def test_what_cannot_be_written(text: str, reason: str) -> None:
    with pytest.raises(TokenizationError, match=f"chat template 'mine': .*{reason}"):
        ChatTemplate("mine", text).pieces(TURNS)


@pytest.mark.parametrize("shown", ["", "{% if c.type == 'image' %}{{ raise_exception('no images') }}{% endif %}"])
def test_a_template_that_knows_no_images_writes_texts(shown: str) -> None:
    text = f"{{% for m in messages %}}{{% for c in m.content %}}{shown}{{{{ c.text }}}}{{% endfor %}}{{% endfor %}}"
    assert ChatTemplate("text alone", text).pieces([("user", ["a", "b"])]) == ["ab"]


# Loading


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = {
        "bos_token": {"content": "<s>"},
        "eos_token": None,
        "add_bos_token": True,
        "chat_template": [{"name": "tool_use", "template": "no"}, {"name": "default", "template": STRINGS}],
        "image_token": "<image>",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return tmp_path


def test_the_first_file_of_a_folder_with_the_special_tokens(folder: Path) -> None:
    assert load_template(str(folder)).text == '{% set bos_token = "<s>" %}\n' + STRINGS
    assert load_template(str(folder / "tokenizer_config.json")).text == load_template(str(folder)).text
    (folder / "chat_template.json").write_text(json.dumps({"chat_template": "{{ image_token }}"}), "utf-8")
    assert load_template(str(folder)).text == '{% set image_token = "<image>" %}\n{{ image_token }}'
    (folder / "chat_template.jinja").write_text(QWEN, "utf-8")
    assert load_template(str(folder)).text == QWEN


def test_a_kept_template_is_the_same(folder: Path, tmp_path: Path) -> None:
    loaded = load_template(str(folder))
    (tmp_path / "kept").mkdir()
    kept = tmp_path / "kept" / f"{loaded.sha256}.jinja"
    kept.write_text(loaded.text, "utf-8")
    assert load_template(str(kept)).sha256 == loaded.sha256
    assert load_template(str(kept)).render(TURNS) == loaded.render(TURNS)


def test_hub_id(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub, errors = pytest.importorskip("huggingface_hub"), pytest.importorskip("huggingface_hub.errors")
    failure: Exception = errors.EntryNotFoundError()

    def download(name: str, file: str) -> str:
        if not (folder / file).exists():
            raise failure
        return str(folder / file)

    monkeypatch.setattr(hub, "hf_hub_download", download)
    assert load_template("owner/model").text == load_template(str(folder)).text
    failure = errors.LocalEntryNotFoundError("no connection")
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda name, file: hub._CACHED_NO_EXIST)
    assert load_template("owner/model").text == load_template(str(folder)).text
    monkeypatch.setattr(hub, "try_to_load_from_cache", lambda name, file: None)
    with pytest.raises(TokenizationError, match=r"LocalEntryNotFoundError.*the connection"):
        load_template("owner/model")  # a file that cannot be reached may have another template
    failure = ConnectionError()
    with pytest.raises(TokenizationError, match=r"ConnectionError.*the connection"):
        load_template("owner/model")
    failure = errors.EntryNotFoundError()
    (folder / "tokenizer_config.json").unlink()
    with pytest.raises(TokenizationError, match=r"'owner/model'.*no chat_template\.jinja or .* from the hub"):
        load_template("owner/model")


def test_a_template_with_carriage_returns_is_kept_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": QWEN.replace("\n", "\r\n")}), "utf-8")
    loaded = load_template(str(tmp_path))
    (tmp_path / "kept.jinja").write_bytes(loaded.text.encode())
    assert load_template(str(tmp_path / "kept.jinja")).sha256 == loaded.sha256
    assert loaded.pieces(TURNS) == ChatTemplate("qwen", QWEN).pieces(TURNS)


def test_special_tokens_that_nothing_gives_and_errors_of_syntax(tmp_path: Path) -> None:
    path = tmp_path / "mine.jinja"
    path.write_text(STRINGS, "utf-8")
    with pytest.raises(
        TokenizationError, match=r"nothing says what bos_token is: put .*tokenizer_config\.json beside it"
    ):
        load_template(str(path))
    path.write_text("{% set bos_token = '<s>' %}\n" + STRINGS, "utf-8")
    assert load_template(str(path)).render([("user", ["a"])]) == "<s>[user] a\n"
    path.write_text("{{ messages }}\n{% for %}", "utf-8")
    with pytest.raises(TokenizationError, match="line 2: Expected an expression"):
        load_template(str(path))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("tokenizer_config.json", "{}"),
        ("tokenizer_config.json", "[]"),
        ("chat_template.json", "{"),
        ("chat_template.json", '{"chat_template": [{}]}'),
        ("chat_template.jinja", "\udcff"),
        ("none.jinja", None),
    ],
)
def test_no_template(name: str, content: str | None, tmp_path: Path) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content, "utf-8", errors="surrogateescape")
    with pytest.raises(TokenizationError, match=f"chat template .*{name}"):
        load_template(str(path))


# Counting


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    """A tokenizer of bytes that has special tokens."""
    vocab = {each: at for at, each in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    model = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    model.decoder = decoders.ByteLevel()
    marks = ("<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>")
    model.add_special_tokens([AddedToken(mark, normalized=False) for mark in marks])
    model.save(str(tmp_path / "tokenizer.json"))
    return str(tmp_path / "tokenizer.json")


def test_special_tokens_count_as_one(tokenizer: str) -> None:
    text, template = load_tokenizer(tokenizer), ChatTemplate("qwen", QWEN)
    pieces = template.pieces(TURNS)
    words = "user\nlook\n" + "\nwhat?\nassistant\na cat\nuser\nwhy?\nassistant\n"
    assert text.count_pieces(pieces, template.placeholder) == len(words) + 3 * 2 + 1
    assert text.count(pieces[0]) == len(pieces[0])  # a text by itself has none
    assert text.count_pieces(pieces, "no token of it") == text.count_pieces(pieces, template.placeholder)
    assert text.count_pieces(["", ""], template.placeholder) == 0
    with pytest.raises(TokenizationError, match="lone surrogate"):
        text.count_pieces(["\ud800"], "")


def test_what_a_processor_puts_around_an_image_merges_with_the_text_beside_it(tmp_path: Path) -> None:
    vocab = {each: at for at, each in enumerate(("Ċ", "ĊĊ", "ĊĊĊ", "a", "<i>"))}
    model = Tokenizer(models.BPE(vocab=vocab, merges=[("Ċ", "Ċ"), ("ĊĊ", "Ċ")]))
    model.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    model.save(str(tmp_path / "plain.json"))
    model.add_special_tokens(["<i>"])
    model.save(str(tmp_path / "special.json"))
    special, plain = (load_tokenizer(str(tmp_path / f"{name}.json")) for name in ("special", "plain"))
    for text in (special, plain):
        assert text.count_pieces(["a", "a"], "<i>", "\n\n") == 2  # less the two that the image has
        assert text.count_pieces(["a\n", "\na"], "<i>", "\n\n") == 2  # three newlines are one token, too
        assert text.count_pieces(["a\n\n", "a"], "<i>", "\n\n") == 3  # three newlines and one
        assert text.count_pieces(["a\n\n"], "<i>", "\n\n") == 2
