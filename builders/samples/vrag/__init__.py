"""Samples of visual RAG: a drawn encyclopedia, pictures of its entities, and questions about them."""
