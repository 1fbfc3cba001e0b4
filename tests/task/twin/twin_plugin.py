"""A builder of a name that is taken."""


class DocVQA:
    """Another one."""
