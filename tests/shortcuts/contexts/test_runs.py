"""From a scripted server over `run` to the table: a model that looks, and one that answers from the question alone."""

from pathlib import Path

import pytest
from counting_server import counting, parts_of
from model_server import Request, Said
from runs import NUMBER, OPTIONS, asked

from mmlongbench.io.progress import Progress
from mmlongbench.models.asking import RunOptions
from mmlongbench.shortcuts.contexts.audit import audit_contexts
