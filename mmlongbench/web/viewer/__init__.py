"""The viewer: pages of a release on this machine, or as files. One module a page in `pages/`; all read one index."""
