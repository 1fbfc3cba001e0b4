"""Vision rules by name: spellings, hub ids, what is unknown, and the rules of other packages."""

import math
import re
import tomllib
from collections.abc import Mapping
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

import tokenization
from tokenization import TokenizationError, vision_rule, vision_rules
from tokenization.errors import UnknownRuleError
from tokenization.vision import VisionRules
from tokenization.vision import registry as registry_module
from tokenization.vision.registry import FORMULAS, built_in, fold

RULES = vision_rules()
TABLES = tomllib.loads((Path(tokenization.__file__).parent / "vision/models.toml").read_text("utf-8"))
WRITTEN = [*RULES, *(alias for table in TABLES.values() for alias in table.get("aliases", ()))]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Qwen/Qwen2.5-VL-7B-Instruct", "qwen2.5-vl"),
        ("qwen2.5-vl-7b-instruct", "qwen2.5-vl"),
        ("Qwen2_5_VL-72B-Instruct-AWQ", "qwen2.5-vl"),
        ("qwen2.5vl:7b", "qwen2.5-vl"),
        ("Qwen/Qwen2-VL-2B-Instruct-GPTQ-Int4", "qwen2-vl"),
        ("Qwen/Qwen3-VL-235B-A22B-Thinking-FP8", "qwen3-vl"),
        ("OpenGVLab/InternVL2_5-8B-MPO", "internvl"),
        ("internvl3-8b", "internvl"),
        ("google/gemma-3-27b-it", "gemma3"),
        ("HuggingFaceM4/Idefics3-8B-Llama3", "idefics3-8b"),
        ("idefics2-8b", "idefics2"),
        ("HuggingFaceTB/SmolVLM2-2.2B-Instruct", "smolvlm-2b"),
        ("SmolVLM-Instruct", "smolvlm-2b"),
        ("SmolVLM2-500M-Video-Instruct", "smolvlm-256m-500m"),
        ("microsoft/Phi-3-vision-128k-instruct", "phi-3-vision"),
        ("Phi-3.5-vision-instruct", "phi-3.5-vision"),
        ("microsoft/Phi-4-multimodal-instruct", "phi-4-multimodal"),
        ("mistralai/Pixtral-12B-2409", "pixtral-12b"),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", "mistral-small-3.1"),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", "llama-3.2-vision"),
        ("llama-3.2-vision", "llama-3.2-vision"),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama-4"),
        ("llava-hf/llava-onevision-qwen2-0.5b-ov-hf", "llava-onevision"),
        ("lmms-lab/llava-onevision-qwen2-7b-ov-chat", "llava-onevision"),
        ("AIDC-AI/Ovis2-8B", "ovis2"),
        ("deepseek-ai/deepseek-vl2-tiny", "deepseek-vl2"),
        ("openbmb/MiniCPM-V-2_6", "minicpm-v-2.6"),
        ("openbmb/MiniCPM-V-4_5", "minicpm-v-2.6"),
        ("Efficient-Large-Model/NVILA-Lite-8B", "nvila-lite"),
        ("CohereForAI/aya-vision-8b", "aya-vision"),
        ("CohereLabs/command-a-vision-07-2025", "cohere2-vision"),
        ("zai-org/GLM-4.5V-FP8", "glm-4.1v"),
        ("THUDM/GLM-4.1V-9B-Thinking", "glm-4.1v"),
        ("zai-org/GLM-4.6V-Flash", "glm-4.6v"),
        ("Qwen/Qwen3.5-35B-A3B-FP8", "qwen3.5-vl"),
        ("qwen3.6-27b", "qwen3.6-vl"),
        ("OpenGVLab/InternVL3_5-8B-HF", "internvl3.5"),
        ("google/gemma-4-E4B-it", "gemma4"),
        ("google/gemma-4-26B-A4B-it", "gemma4"),
        ("moonshotai/Kimi-VL-A3B-Instruct", "kimi-vl"),
        ("moonshotai/Kimi-VL-A3B-Thinking-2506", "kimi-vl-a3b-thinking-2506"),
        ("mPLUG/mPLUG-Owl3-7B-240728", "mplug-owl3"),
        ("gpt-4o", "gpt-4o"),
        ("gpt-5.4-mini", "gpt-5-mini"),
        ("gpt-5.6-sol", "gpt-5.6"),
        ("claude-fable-5", "claude-high-resolution"),
        ("claude-haiku-4-5-20251001", "claude"),
        ("gemini-2.5-pro", "gemini-2.5"),
        ("gemini-3.5-flash", "gemini-3"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4.1", "gpt-4o"),
        ("gpt-4.1-mini-2025-04-14", "gpt-4.1-mini"),
        ("o1-2024-12-17", "o3"),
        ("claude", "claude"),
        ("anthropic/claude-3.5-sonnet", "claude"),
        ("claude-3-7-sonnet-20250219", "claude"),
        ("claude-3-7-sonnet@20250219", "claude"),
        ("claude-opus-4-20250514", "claude"),
        ("claude-opus-4-7", "claude-high-resolution"),
        ("gemini-2.0-flash-001", "gemini-2"),
        ("gemini-3-pro-preview", "gemini-3"),
        ("MMLongBench", "mmlongbench"),
        ("./models/Qwen2.5-VL-7B-Instruct/", "qwen2.5-vl"),
    ],
)
def test_names_of_models(written: str, name: str) -> None:
    assert RULES[written].name == name
    assert vision_rule(written) is RULES[name]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_spelling(name: str) -> None:
    for separator in "-._":
        spelled = re.sub(r"[-._]", separator, name)
        assert RULES[spelled] is RULES[spelled.upper()] is RULES[name]


def test_no_name_means_two_rules() -> None:
    assert len(set(map(fold, WRITTEN))) == len(WRITTEN) == len(built_in()[1])


def test_the_table_has_no_other_keys_and_every_formula_is_used() -> None:
    keys = {"formula", "numbers", "checked", "parameters", "note", "aliases", "crowd", "is_numbered", "shared"}
    for name, table in TABLES.items():
        assert name == "texts" or set(table) <= keys | {"max_images", "variant_of", "exact", "text", "around"}, name
    assert {table["formula"] for table in TABLES.values() if "formula" in table} == {*FORMULAS}


@pytest.mark.parametrize(
    "name",
    [
        *("Ovis2.5-9B", "GLM-4V-9B", "gemma-3n-E4B-it", "gpt-4o-audio-preview", "gemini-4-argon", "gpt-6.1-sol"),
        *("claude-opus-5", "gpt-6-luna"),
        *("Llama-3.3-70B-Instruct", "qwen2.5-7b-instruct", "MiniCPM-Llama3-V-2_5", "phi-4", "gpt", "", "/", "größe"),
        "\0",
    ],
)
def test_other_models_are_not_taken_for_known_ones(name: str) -> None:
    assert name not in RULES
    assert RULES.get(name) is None
    with pytest.raises(UnknownRuleError, match="vision_rules\\(\\) lists all") as caught:
        RULES[name]
    assert str(caught.value).startswith(f"no vision rule {name!r}: ")
    assert isinstance(caught.value, TokenizationError)


def test_unknown_name_lists_the_near_ones() -> None:
    with pytest.raises(TokenizationError, match=r"no vision rule 'qwen25-vl': did you mean .*'qwen2\.5-vl'"):
        vision_rule("qwen25-vl")
    with pytest.raises(TokenizationError, match="no vision rule 'xyz123': vision_rules"):
        vision_rule("xyz123")
    assert not RULES.__contains__(5)


def test_it_is_exported() -> None:
    assert {"VisionRule", "vision_rule", "vision_rules"} <= set(tokenization.__all__)
    assert len(RULES) == len(list(RULES))


# Rules of other packages

STRANGER = """
from tokenization.vision import Provenance, VisionRule

def area(width, height, per):
    return width * height // per

mine = VisionRule("mine-vl", area, {"per": 100}, Provenance("nothing", "made up"))
other = VisionRule("other-name", area, {"per": 100}, Provenance("nothing", "made up"))
number = 5
"""


def install(folder: Path, distribution: str, points: Mapping[str, str]) -> None:
    """Lay out an installed distribution with these entry points and one module."""
    information = folder / f"{distribution}-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (information / "entry_points.txt").write_text(f"[mmlongbench.vision_rules]\n{lines}")
    (folder / f"{distribution}_rules.py").write_text(STRANGER)


@pytest.fixture
def strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VisionRules:
    install(
        tmp_path,
        "stranger",
        {"mine-vl": "stranger_rules:mine", "qwen2_5_vl": "stranger_rules:mine", "claude-3.7": "stranger_rules:mine"}
        | {"gone": "stranger_rules:gone", "nowhere": "stranger_nowhere:rule", "number": "stranger_rules:number"}
        | {"unlike": "stranger_rules:other", "twice": "stranger_rules:mine"},
    )
    install(tmp_path, "another", {"Twice": "another_rules:mine"})
    monkeypatch.syspath_prepend(str(tmp_path))
    return VisionRules()


def test_a_strangers_rule(strangers: VisionRules) -> None:
    assert strangers["mine-vl"].tokens(100, 50) == 50
    assert strangers["Stranger/Mine_VL-7B-Instruct"] is strangers["mine-vl"]
    assert "mine-vl" not in RULES
    assert list(strangers)[: len(RULES)] == list(RULES)
    assert sorted(list(strangers)[len(RULES) :]) == ["Twice", "gone", "mine-vl", "nowhere", "number", "unlike"]
    assert len(strangers) == len(RULES) + 6
    with pytest.raises(TokenizationError, match="did you mean 'mine-vl'"):
        strangers["mine-v"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("qwen2.5-vl", r"'qwen2_5_vl' \(stranger_rules:mine of stranger\) hides 'qwen2.5-vl' of this package: rename"),
        ("claude-3.7-sonnet", r"'claude-3.7' \(stranger_rules:mine of stranger\) hides 'claude' of this package"),
        ("twice", r"'Twice' \(another_rules:mine of another\) and 'twice' \(stranger_rules.* have one name: uninstall"),
        ("gone", r"'gone' \(stranger_rules:gone of stranger\) is broken: AttributeError: .*no attribute 'gone'"),
        ("nowhere", r"'nowhere' \(stranger_nowhere:rule of stranger\) is broken: ModuleNotFoundError: .*stranger_nowh"),
        ("number", r"'number' \(stranger_rules:number of stranger\) is broken: it is 5, not a VisionRule"),
        (
            "unlike",
            r"'unlike' .* is broken: the entry point is named 'unlike', its rule 'other-name'; give both the same name",
        ),
    ],
)
def test_what_is_wrong_with_a_strangers_rule(strangers: VisionRules, name: str, message: str) -> None:
    assert name in strangers
    with pytest.raises(TokenizationError, match=message):
        strangers[name]
    assert strangers["claude"].name == "claude"


def test_an_entry_point_without_a_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("lone", "math:pi", "mmlongbench.vision_rules")
    monkeypatch.setattr(registry_module, "entry_points", lambda group: [point])
    with pytest.raises(TokenizationError, match=rf"math:pi of an unnamed distribution\) is broken: it is {math.pi}"):
        VisionRules()["lone"]
