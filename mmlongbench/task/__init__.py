"""What task authors import: the classes that they subclass and the values that they receive.

Use `import mmlongbench.task as mt`, or import a few names with `from mmlongbench.task import Fault, Row`. Builders,
readers and samples import nothing else of the engine; modules of the engine import each name from the module that
defines it. To build, read and score releases, use `import mmlongbench as mm`. This package knows no manifest and no
build.
"""

from mmlongbench.answers import (
    ANSWER_FORMATS,
    NOT_ANSWERABLE,
    AnswerFormat,
    format_of,
    is_not_answerable,
    literal_list,
    number_format,
)
from mmlongbench.corpus.corpus import Passage
from mmlongbench.corpus.retrieval.bm25 import rank_texts
from mmlongbench.corpus.retrieval.negatives import Facts, Query
from mmlongbench.corpus.retrieval.numbers import numbers_in
from mmlongbench.corpus.retrieval.pages import MAX_RANKED, PageId, PageQuery, PageRanking
from mmlongbench.corpus.retrieval.search import SearchedCorpus
from mmlongbench.corpus.retrieval.spellings import number_spellings, ordinal_words
from mmlongbench.corpus.retrieval.text import contains, holder, normalise
from mmlongbench.documents.joined_pages import MAX_JOINED_PIXELS, JoinPages
from mmlongbench.documents.names import LABEL_WIDTH, label
from mmlongbench.documents.pages import PageImages, Pages
from mmlongbench.documents.pdf import has_words
from mmlongbench.documents.pictures import Picture, PictureBytes
from mmlongbench.documents.pixels import PICTURE_ENDINGS, PictureFile, is_like_any
from mmlongbench.draft import Closing, Draft, Question, Rendering, Role, TakeOrder, Unit, Wording
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Fault, Rejected, ReleaseError, ScoringError, SourceError, nearest
from mmlongbench.field_texts import with_field_texts
from mmlongbench.io.files import file_inside, pdfs_by_name, read_whole, text_lines, two_of_one_name, visible_files
from mmlongbench.io.json_lines import json_line_at, json_lines, json_object, load_json
from mmlongbench.io.tables import Columns, columns_of, id_in, parquet_file, table_rows
from mmlongbench.packing.pack import PackedExample, PlacedNeedle, assemble
from mmlongbench.packing.place import DEPTHS, Depth, Permutation
from mmlongbench.prompt import MARKER, Image, Part, Prompt, Turn, escape_markers
from mmlongbench.sentences import sentences
from mmlongbench.task.builder import Builder, Choices, ExaminingBuilder, SharedContextBuilder
from mmlongbench.task.file_formats import FileFormat, FilePattern, JsonLines
from mmlongbench.task.metric import (
    Details,
    Evidence,
    Judge,
    Metric,
    MetricWithTotals,
    Profile,
    Provenance,
    RuleMetric,
    Score,
    ScoringInput,
    Settings,
)
from mmlongbench.task.reader import Reader, SampleFiles, SampleFunction
from mmlongbench.task.rows import RawRow, Record, Row, RowFault, SourcePaths, Suspect, raw_row
from mmlongbench.task.sources import (
    Crop,
    Document,
    Documents,
    ImageClass,
    ImageClasses,
    Images,
    Page,
    Sources,
    WebPages,
)
from mmlongbench.task.spec import Bundle, FullPrompt, Options, Placements, Remark, TaskSpec
from mmlongbench.task.take_orders import Chain, InOrder, Rounds, alternate_sides, by_divisor, inside_out, spread
from mmlongbench.task.task import Folder, Pdfs, SourceForm, Table, Task

# Tasks, their readers and metrics.
__all__ = ["Builder", "Bundle", "Choices", "Details", "Evidence", "ExaminingBuilder", "FileFormat", "FilePattern"]
__all__ += ["Folder", "FullPrompt", "JsonLines", "Judge", "Metric", "MetricWithTotals", "Options", "Pdfs", "Placements"]
__all__ += ["Profile", "Provenance", "Reader", "Remark", "RuleMetric", "SampleFiles", "SampleFunction", "Score"]
__all__ += ["ScoringInput", "Settings", "SharedContextBuilder", "SourceForm", "Table", "Task", "TaskSpec"]
# Rows, and the sources that drafts are made from.
__all__ += ["MAX_RANKED", "Crop", "Document", "Documents", "Facts", "ImageClass", "ImageClasses", "Images", "Page"]
__all__ += ["PageId", "PageImages", "PageQuery", "PageRanking", "Pages", "Passage", "Picture", "PictureBytes"]
__all__ += ["PictureFile", "Query", "RawRow", "Record", "Row", "RowFault", "SearchedCorpus", "SourcePaths", "Sources"]
__all__ += ["Suspect", "WebPages", "raw_row"]
# Answers.
__all__ += ["ANSWER_FORMATS", "NOT_ANSWERABLE", "AnswerFormat", "format_of", "is_not_answerable", "literal_list"]
__all__ += ["number_format"]
# Drafts, prompts and packed examples.
__all__ += ["DEPTHS", "LABEL_WIDTH", "MARKER", "MAX_JOINED_PIXELS", "Chain", "Closing", "Depth", "Draft", "Draws"]
__all__ += ["Image", "InOrder", "JoinPages", "PackedExample", "Part", "Permutation", "PlacedNeedle", "Prompt"]
__all__ += ["Question", "Rendering", "Role", "Rounds", "TakeOrder", "Turn", "Unit", "Wording", "alternate_sides"]
__all__ += ["assemble", "by_divisor", "escape_markers", "inside_out", "label", "spread"]
# Reading files, comparing texts and pictures.
__all__ += ["PICTURE_ENDINGS", "Columns", "columns_of", "contains", "file_inside", "has_words", "holder", "id_in"]
__all__ += ["is_like_any", "json_line_at", "json_lines", "json_object", "load_json", "nearest", "normalise"]
__all__ += ["number_spellings", "numbers_in", "ordinal_words", "parquet_file", "pdfs_by_name", "rank_texts"]
__all__ += ["read_whole", "sentences", "table_rows", "text_lines", "two_of_one_name", "visible_files"]
# Errors.
__all__ += ["DraftError", "Fault", "Rejected", "ReleaseError", "ScoringError", "SourceError"]

for _name in __all__:
    if isinstance(_type := globals()[_name], type):
        with_field_texts(_type)
