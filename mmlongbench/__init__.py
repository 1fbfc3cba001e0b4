"""The construction engine for long-context vision-language benchmarks.

These names are what a builder or reader needs; everything else is the engine's own.
"""

from mmlongbench.documents.names import LABEL_WIDTH, label
from mmlongbench.documents.page_images import PageImages
from mmlongbench.documents.page_store import Pages
from mmlongbench.documents.pdf import has_words
from mmlongbench.documents.pictures import Picture
from mmlongbench.documents.pixels import PictureFile, is_like_any
from mmlongbench.documents.same_bytes import PictureBytes
from mmlongbench.draft import Closing, Draft, Question, Retelling, Role, Supply, Unit, Wording
from mmlongbench.draws import Draws
from mmlongbench.errata import read_rows
from mmlongbench.errors import DraftError, Fault, Rejected, ReleaseError, SourceError
from mmlongbench.formats import FileFormat, FilePattern, JsonLines
from mmlongbench.packing.pack import Example, StandingNeedle, assemble
from mmlongbench.packing.placing import DEPTHS, Depth, Permutation
from mmlongbench.passages.info import Passage
from mmlongbench.passages.splitting import sentences
from mmlongbench.policies import Chain, InOrder, Rounds, alternate_sides, by_divisor, inside_out
from mmlongbench.prompt import Image, Part, Prompt, escape_markers
from mmlongbench.retrieval.library import Query
from mmlongbench.retrieval.negatives import Facts
from mmlongbench.retrieval.numbers import numbers_in
from mmlongbench.retrieval.ordinals import ordinal_words
from mmlongbench.retrieval.small import rank_texts
from mmlongbench.retrieval.spellings import number_spellings
from mmlongbench.retrieval.text import contains, holder, normalise
from mmlongbench.sources import (
    file_inside,
    json_line_at,
    json_lines,
    json_object,
    load_json,
    pdfs_by_name,
    two_of_one_name,
    visible_files,
)
from mmlongbench.task import (
    Builder,
    Bundle,
    FullPrompt,
    Options,
    Placements,
    RawRow,
    Reader,
    Record,
    Remark,
    Row,
    RowFault,
    Sources,
    Suspect,
    TaskSpec,
    at_place,
)
from mmlongbench.world import Document, ImageClass, ImageClasses, Page, World

__all__ = [
    "DEPTHS",
    "LABEL_WIDTH",
    "Builder",
    "Bundle",
    "Chain",
    "Closing",
    "Depth",
    "Document",
    "Draft",
    "DraftError",
    "Draws",
    "Example",
    "Facts",
    "Fault",
    "FileFormat",
    "FilePattern",
    "FullPrompt",
    "Image",
    "ImageClass",
    "ImageClasses",
    "InOrder",
    "JsonLines",
    "Options",
    "Page",
    "PageImages",
    "Pages",
    "Part",
    "Passage",
    "Permutation",
    "Picture",
    "PictureBytes",
    "PictureFile",
    "Placements",
    "Prompt",
    "Query",
    "Question",
    "RawRow",
    "Reader",
    "Record",
    "Rejected",
    "ReleaseError",
    "Remark",
    "Retelling",
    "Role",
    "Rounds",
    "Row",
    "RowFault",
    "SourceError",
    "Sources",
    "StandingNeedle",
    "Supply",
    "Suspect",
    "TaskSpec",
    "Unit",
    "Wording",
    "World",
    "alternate_sides",
    "assemble",
    "at_place",
    "by_divisor",
    "contains",
    "escape_markers",
    "file_inside",
    "has_words",
    "holder",
    "inside_out",
    "is_like_any",
    "json_line_at",
    "json_lines",
    "json_object",
    "label",
    "load_json",
    "normalise",
    "number_spellings",
    "numbers_in",
    "ordinal_words",
    "pdfs_by_name",
    "rank_texts",
    "read_rows",
    "sentences",
    "two_of_one_name",
    "visible_files",
]
