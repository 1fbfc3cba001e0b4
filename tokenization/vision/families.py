"""The rules of open-weight models. For each family of models: the formula, the published numbers and their sources.

The formulas are new implementations of what transformers, vLLM, NVlabs/VILA and the models' own processing code do.
Tokens include everything that the processor puts around an image and the markers of the chat template, but no newlines
between messages.
"""

from tokenization.vision.native import (
    broken_rows,
    long_side_tiles,
    native_grid,
    numbered_slices,
    patch_cells,
    sized_slices,
)
from tokenization.vision.rule import Crowd, Provenance, VisionRule, numbered
from tokenization.vision.services import fixed, pan_and_scan, quartered
from tokenization.vision.tiling import (
    anyres,
    canvas,
    canvas_states,
    closest_aspect,
    covering_grid,
    fitted_tiles,
    hd_crops,
    padded_crops,
)

CLASS = "class defaults of transformers"
HUB = "hub config"
CODE = "the repository's code"
MEMORY = "memory of the hub config, not looked up again"

_BOTH = "transformers 5.23.0 and 4.57.6, whole processor run: "
_NEW = "transformers 5.23.0, whole processor run: "
_VILA = "NVlabs/VILA b760c34, run"
_PHI = "image_processing_phi3_v.py of the model, run"

_BENCHMARK = {"patch": 14, "merge": 2, "min_pixels": 3136, "max_pixels": 12_845_056}
_UNLIMITED = {"patch": 14, "merge": 2, "min_pixels": 0, "max_pixels": 2**64}
_QWEN2 = {**_BENCHMARK, "max_aspect": 200, "markers": 2}
_QWEN3 = {**_QWEN2, "patch": 16, "min_pixels": 65_536, "max_pixels": 16_777_216}
_GLM = {**_QWEN2, "min_pixels": 12_544, "max_pixels": 9_633_792, "frames": 2, "min_side": 28}
_OVIS2 = {"tile": 448, "max_tiles": 9, "enough": 0.9, "per_tile": 257, "overview": 259}
_LLAVA = {"tile": 384, "per_side": 27, "max_per_side": 6, "max_area": 9}
_NVILA = {"tile": 448, "min_tiles": 9, "max_tiles": 12, "per_tile": 256, "overview": 1}
_NVILA_LITE = {"tile": 448, "max_tiles": 12, "per_tile": 123, "overview": 123}
_PHI3 = {"crop": 336, "max_crops": 16, "per_crop": 144, "per_row": 12}
_MINICPM = {"max_slices": 9, "resolution": 448, "slice_markers": 2, "markers": 5}

FAMILIES = (
    # Native resolution
    VisionRule(
        "mmlongbench",
        patch_cells,
        _BENCHMARK,
        Provenance(
            _BOTH + "Qwen2_5_VLProcessor, less the two markers",
            "the benchmark's README, Vision Token Counting",
            "the one rounding that Table 3 of the paper allows; an aspect ratio over 200 is counted, not refused",
        ),
    ),
    VisionRule(
        "mmlongbench-ceil",
        patch_cells,
        {**_UNLIMITED, "rounding": "ceil"},
        Provenance("nothing", "made up for comparison", "Table 3 of the paper rules it out"),
        variant_of="mmlongbench",
    ),
    VisionRule(
        "mmlongbench-floor",
        patch_cells,
        {**_UNLIMITED, "rounding": "floor"},
        Provenance("nothing", "made up for comparison", "Table 3 of the paper rules it out; 0 for a side under 28"),
        variant_of="mmlongbench",
    ),
    VisionRule("qwen2-vl", native_grid, _QWEN2, Provenance(_BOTH + "Qwen2VLProcessor", HUB)),
    VisionRule(
        "qwen2-vl-class-defaults",
        native_grid,
        {**_QWEN2, "max_pixels": 1_003_520},
        Provenance(_BOTH + "Qwen2VLProcessor", CLASS, "what a processor built without the hub config counts"),
        variant_of="qwen2-vl",
    ),
    VisionRule("qwen2.5-vl", native_grid, _QWEN2, Provenance(_BOTH + "Qwen2_5_VLProcessor", HUB)),
    VisionRule(
        "qwen3-vl",
        native_grid,
        _QWEN3,
        Provenance(_BOTH + "Qwen3VLProcessor", HUB, "qwen-vl-utils 0.0.14 enlarges small images less"),
    ),
    VisionRule(
        "glm-4.1v",
        native_grid,
        _GLM,
        Provenance(_NEW + "Glm4vProcessor", HUB, "4.57.6 refuses a side under 28 pixels, otherwise the same"),
    ),
    VisionRule(
        "glm-4.1v-max-47040000",
        native_grid,
        {**_GLM, "max_pixels": 47_040_000},
        Provenance(_NEW + "Glm4vProcessor", "vLLM's examples"),
        variant_of="glm-4.1v",
    ),
    VisionRule(
        "pixtral-12b",
        broken_rows,
        {"patch": 16, "merge": 1, "max_side": 1024},
        Provenance(_BOTH + "PixtralProcessor; mistral-common 1.13.1", CLASS),
    ),
    VisionRule(
        "mistral-small-3.1",
        broken_rows,
        {"patch": 14, "merge": 2, "max_side": 1540},
        Provenance(_BOTH + "PixtralProcessor; mistral-common 1.13.1", CLASS),
    ),
    # The grid of the closest aspect ratio
    VisionRule(
        "internvl",
        closest_aspect,
        {"tile": 448, "max_tiles": 12, "per_tile": 256, "overview": 258},
        Provenance(
            _BOTH + "InternVLProcessor; OpenGVLab's code as in vLLM 0.33.0",
            f"{CLASS}; {CODE}",
            "InternVL2, 2.5 and 3; the model cards advise fewer tiles for several images",
        ),
    ),
    VisionRule(
        "aya-vision",
        closest_aspect,
        {"tile": 364, "max_tiles": 12, "per_tile": 170, "overview": 172},
        Provenance(_BOTH + "AyaVisionProcessor", CLASS),
    ),
    VisionRule(
        "nvila",
        closest_aspect,
        _NVILA,
        Provenance(_VILA + " (the merge in the model is only read)", CODE, "tiles only for an image that is alone"),
        among=Crowd(over=1, tokens=257),
    ),
    VisionRule(
        "nvila-multi-image", fixed, {"tokens": 257}, Provenance("NVlabs/VILA b760c34, read", CODE), variant_of="nvila"
    ),
    VisionRule(
        "nvila-lite",
        closest_aspect,
        _NVILA_LITE,
        Provenance(_VILA, CODE, "tiles only for an image that is alone"),
        among=Crowd(over=1, tokens=122),
    ),
    VisionRule(
        "nvila-lite-multi-image",
        fixed,
        {"tokens": 122},
        Provenance("NVlabs/VILA b760c34, read", CODE),
        variant_of="nvila-lite",
    ),
    VisionRule(
        "phi-4-multimodal",
        padded_crops,
        {"crop": 448, "max_crops": 36, "patch": 14, "per_crop": 256, "min_side": 10, "markers": 17},
        Provenance(_BOTH + "Phi4MultimodalProcessor", CLASS),
    ),
    # The canvas that the image fills best
    VisionRule(
        "llama-3.2-vision",
        fixed,
        {"tokens": 4 * 1601},
        Provenance(
            "Table 11 of the benchmark's paper: 2,358K tokens for 368.2 images",
            CLASS,
            "cross-attention states of four tiles of 1601, to which every image is padded; the prompt itself holds one",
        ),
    ),
    VisionRule(
        "llama-3.2-vision-cross-attention",
        canvas_states,
        {"tile": 560, "max_tiles": 4, "per_tile": 1601},
        Provenance(_BOTH + "MllamaImageProcessor, tiles", CLASS, "without the tiles that only pad to four"),
        variant_of="llama-3.2-vision",
    ),
    VisionRule(
        "llama-3.2-vision-prompt",
        fixed,
        {"tokens": 1},
        Provenance(_NEW + "MllamaProcessor", CLASS, "what the prompt holds; the image goes to cross-attention"),
        variant_of="llama-3.2-vision",
    ),
    VisionRule(
        "llama-4",
        canvas,
        {"tile": 336, "max_tiles": 16, "per_tile": 145, "overview": 147, "single_precision": True},
        Provenance(_BOTH + "Llama4Processor", CLASS),
    ),
    VisionRule(
        "cohere2-vision",
        canvas,
        {"tile": 512, "max_tiles": 12, "per_tile": 257, "overview": 259},
        Provenance(_BOTH + "Cohere2VisionProcessor", CLASS),
    ),
    # The best-fitting resolution
    VisionRule(
        "llava-onevision",
        anyres,
        _LLAVA,
        Provenance(
            _BOTH + "LlavaOnevisionProcessor; Table 11 of the benchmark's paper: 996K tokens for 368.2 images",
            CLASS,
            "one image, or a flat list of them",
        ),
    ),
    VisionRule(
        "llava-onevision-nested",
        anyres,
        _LLAVA,
        Provenance(_BOTH + "LlavaOnevisionProcessor", CLASS, "images given as one nested list, images=[[a, b]]"),
        among=Crowd(over=1, tokens=730),
        variant_of="llava-onevision",
    ),
    VisionRule(
        "llava-onevision-nested-multi-image",
        fixed,
        {"tokens": 730},
        Provenance(_BOTH + "LlavaOnevisionProcessor", CLASS, "each of several images given as one nested list"),
        variant_of="llava-onevision",
    ),
    VisionRule(
        "deepseek-vl2",
        fitted_tiles,
        {"tile": 384, "per_side": 14, "max_tiles": 9},
        Provenance("DeepseekVLV2Processor of vLLM 0.33.0, run", MEMORY, "tiles only where there are at most 2 images"),
        among=Crowd(over=2, tokens=421),
    ),
    VisionRule(
        "deepseek-vl2-3-or-more-images",
        fixed,
        {"tokens": 421},
        Provenance("DeepseekVLV2Processor of vLLM 0.33.0, run", CODE),
        variant_of="deepseek-vl2",
    ),
    # Other ways to cut
    VisionRule(
        "ovis2",
        covering_grid,
        _OVIS2,
        Provenance(_BOTH + "Ovis2Processor(crop_to_patches=True)", CODE, "the class default does not crop: 259"),
    ),
    VisionRule(
        "ovis2-max12",
        covering_grid,
        {**_OVIS2, "max_tiles": 12},
        Provenance(_BOTH + "Ovis2Processor(crop_to_patches=True, max_patches=12)", CODE),
        variant_of="ovis2",
    ),
    VisionRule(
        "idefics3-8b",
        long_side_tiles,
        {"long_side": 1456, "tile": 364, "per_tile": 169},
        Provenance(_BOTH + "Idefics3Processor", CLASS, "an icon is enlarged like everything"),
    ),
    VisionRule(
        "smolvlm-2b",
        long_side_tiles,
        {"long_side": 1536, "tile": 384, "per_tile": 81},
        Provenance(_BOTH + "SmolVLMProcessor", HUB, "SmolVLM and SmolVLM2 of 2.2B"),
    ),
    VisionRule(
        "smolvlm-256m-500m",
        long_side_tiles,
        {"long_side": 2048, "tile": 512, "per_tile": 64},
        Provenance(_BOTH + "SmolVLMProcessor", MEMORY),
    ),
    VisionRule("phi-3-vision", hd_crops, _PHI3, Provenance(_PHI, MEMORY, "the class default is one crop")),
    VisionRule("phi-3.5-vision", hd_crops, {**_PHI3, "max_crops": 4}, Provenance(_PHI, MEMORY)),
    VisionRule(
        "minicpm-v-2.6",
        numbered_slices,
        {**_MINICPM, "per_slice": 64},
        Provenance(
            "MiniCPMVImageProcessor of the model, run",
            f"{CODE}; use_image_id from {MEMORY}",
            "MiniCPM-V 4.0, 4.5 and MiniCPM-o 2.6 lay out the same; the model card advises fewer slices for several",
        ),
        among=numbered,
        by_place=True,
    ),
    VisionRule(
        "minicpm-v-4.6",
        sized_slices,
        {**_MINICPM, "cell": 56},
        Provenance(_NEW + "MiniCPMV4_6Processor", CLASS),
        among=numbered,
        by_place=True,
    ),
    # The same for every size, or nearly
    VisionRule(
        "gemma3",
        fixed,
        {"tokens": 260},
        Provenance(_BOTH + "Gemma3Processor", CLASS, "256, two markers, and two newlines twice, each pair one token"),
    ),
    VisionRule(
        "gemma3-pan-and-scan",
        pan_and_scan,
        {"per_crop": 260, "min_crop": 256, "max_crops": 4, "min_ratio": 1.2},
        Provenance(
            _BOTH + "Gemma3Processor(do_pan_and_scan=True)",
            CLASS,
            "without the English sentence around crops, about 17 tokens and one for each further crop",
        ),
        variant_of="gemma3",
    ),
    VisionRule(
        "idefics2",
        quartered,
        {"per_crop": 64, "crops": 5},
        Provenance(_BOTH + "Idefics2Processor(do_image_splitting=True)", MEMORY, "the class default does not split"),
        shared=1,
    ),
    VisionRule(
        "idefics2-nosplit",
        fixed,
        {"tokens": 66},
        Provenance(_BOTH + "Idefics2Processor(do_image_splitting=False)", CLASS),
        shared=1,
        variant_of="idefics2",
    ),
)
