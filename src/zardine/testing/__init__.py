"""Checks that extensions to zardine can run on themselves, with pytest.

:class:`zardine.testing.store.StoreConformance` checks stores. Nothing else of zardine imports this package.
"""
