"""What each field of a record of MM-NIAH means."""

from collections.abc import Mapping

RECORD_FIELDS: Mapping[str, str] = {
    "id": "The id of the question, the same at every length and placement.",
    "question": (
        "The question as it is asked; when counting over pictures, it has one `<image>` for each picture "
        "of needle_image_list."
    ),
    "question_source": "The question of the source; only if it names pictures by ordinals, such as `the second image`.",
    "ordinal": (
        "The place, from 1, that the question names, or null if the ordinal is left out; only with question_source."
    ),
    "ordinal_source": (
        "The place, from 1, that the question of the source names; a list if it names several; only with "
        "question_source."
    ),
    "answer": (
        "A text; the index of the right choice in choices_image; or counts: one for each needle of text in "
        "the order of the prompt, or one for each picture of the context."
    ),
    "answer_total": "The sum of the counts of the needles; only when counting over pictures.",
    "answer_needles": "The counts of the needles alone, in the order of the prompt; only when counting over pictures.",
    "ctxs": (
        "The units of the context in the order of the prompt: text (`<image>` for a picture), type (text "
        "or image), len (tokens of its text), and has_answer or has_ans (whether it is or contains a "
        "needle)."
    ),
    "positive_ctxs": (
        "The needles in the order of the prompt, with the keys of ctxs; a picture also has image (its path "
        "below `mmlb_image/mm-niah/`) and nid (the needle's id)."
    ),
    "category": "The category in the public files, such as find-text or count-image.",
    "image_list": "The paths of the pictures of the context below `mmlb_image/`, in the order of the prompt.",
    "choices_image": (
        "The paths of the pictures to choose from, in the order of the letters; only with needles that are "
        "pictures, except when counting."
    ),
    "needle_image_list": (
        "The path of the right choice or, when counting, the paths of the pictures beside the question; "
        "only with needles that are pictures."
    ),
}
