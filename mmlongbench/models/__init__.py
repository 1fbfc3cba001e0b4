"""Calls models over any endpoint that speaks OpenAI's protocol. Tasks, judges and commands are not known here.

A `Call` says what a model is asked and how its reply is read. A `ModelClient` returns the answer from the file of
answers, or makes the call. It limits attempts and concurrent calls, and waits as long as the endpoint asks.
"""
