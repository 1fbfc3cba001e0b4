"""Manifests: the model, its checks, errata, the plug-in registry, and the manifests that come with the package."""
