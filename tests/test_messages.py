"""Messages: turns, texts and images in reading order."""

from mmlongbench.messages import Messages, data_uri, messages
from mmlongbench.prompt import Image, Prompt

PROMPT = Prompt.of(["Page 1: ", Image("a b/é#1.jpg"), "\n\nWhy?"])


def test_texts_and_images_keep_their_order() -> None:
    assert messages(PROMPT, lambda path: f"at:{path}") == [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Page 1: "},
                {"type": "image_url", "image_url": {"url": "at:a b/é#1.jpg"}},
                {"type": "text", "text": "\n\nWhy?"},
            ],
        }
    ]


def test_each_turn_is_a_message_and_a_system_text_comes_first() -> None:
    session = Prompt.of_turns([("user", ["Hello ", "you", Image("x.png")]), ("assistant", ["Hi."]), ("user", ["Why?"])])
    said = messages(session, str, system="Be short.")
    assert [message["role"] for message in said] == ["system", "user", "assistant", "user"]
    assert said[0]["content"] == "Be short."
    assert said[1]["content"] == [
        {"type": "text", "text": "Hello you"},
        {"type": "image_url", "image_url": {"url": "x.png"}},
    ]
    assert session.text == "Hello youHi.Why?"
    assert session.images == ("x.png",)
    assert session.rendered() == "Hello you<image>Hi.Why?"


def test_no_part_is_empty() -> None:
    (message,) = messages(Prompt.of(["", "a", "", Image("x.png"), ""]), str)
    assert [part["type"] for part in message["content"] if isinstance(part, dict)] == ["text", "image_url"]


def test_a_prompt_of_units_equals_the_same_prompt_without_an_outline() -> None:
    made = Prompt.of_units(["Look.\n"], [["1: ", Image("x.png")], ["2"]], "\n", ["\nWhy?"])
    assert made == Prompt.of(["Look.\n1: ", Image("x.png"), "\n2\nWhy?"])
    assert hash(made) == hash(Prompt.of(made.parts))
    assert made.outline is not None
    assert made.outline.units == (("1: ", Image("x.png")), ("2",))
    assert Prompt.of_units(["Look."], [], "\n", ["Why?"]).parts == ("Look.Why?",)


def test_messages_are_a_list_that_says_what_was_made_smaller() -> None:
    made = Messages(messages(PROMPT, str), {"a.jpg": ((10, 10), (5, 5))})
    assert made == messages(PROMPT, str)
    assert made.shrunk == {"a.jpg": ((10, 10), (5, 5))}
    assert data_uri("image/png", b"\xff\x00") == "data:image/png;base64,/wA="
