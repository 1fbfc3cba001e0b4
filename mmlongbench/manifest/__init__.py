"""Manifests: the model, its checks, errata, the plug-in registry, the manifests that come with the package, and
descriptions of all of these.
"""
