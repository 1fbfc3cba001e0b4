"""Calls models over any endpoint that speaks OpenAI's protocol. Tasks, judges and commands are not known here.

A `ModelCall` says what a model is asked and how its reply is read. A `ModelClient` returns the answer from the file of
answers, or makes the call. It limits attempts and concurrent calls, and waits as long as the endpoint asks.
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
