"""Plug-ins by name: those that ship can all be used."""

import pytest

from mmlongbench.manifest.registry import GROUPS, installed


@pytest.mark.parametrize("kind", GROUPS)
def test_every_plugin_that_ships_can_be_used(kind: str) -> None:
    found = installed(kind)
    assert found
    assert not [plugin.problem for plugin in found if plugin.problem]
