"""Calls models over any endpoint that speaks OpenAI's protocol. Tasks, judges and commands are not known here.

A `ModelCall` says what a model is asked and how its reply is read. A `ModelClient` returns the answer from the file of
answers, or makes the call in a limited number of attempts, at a rate and with a concurrency that the endpoint allows.
"""

from mmlongbench.models.calls import ModelCall, Unusable
from mmlongbench.models.client import Failed, ModelClient
from mmlongbench.models.json_call import JsonCall
from mmlongbench.models.pace import Backoff
from mmlongbench.models.settings import Caller, EndpointError, EndpointSettings

__all__ = [
    "Backoff",
    "Caller",
    "EndpointError",
    "EndpointSettings",
    "Failed",
    "JsonCall",
    "ModelCall",
    "ModelClient",
    "Unusable",
]
