"""Loaded by pytest beside redis-py's own tests.

The tests of client-side caching ask for redis 7.4, although redis 7.0 has everything that they use; so they would run
nowhere here. Nothing else is changed, and the order of the tests is the order of the files.
"""

import pytest
import redis.connection

redis.connection.CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"


def is_about_version(mark):
    return mark.name == "skipif" and "version" in str(mark.kwargs.get("reason", ""))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name == "test_cache.py":
            for node in item.listchain():
                node.own_markers = [mark for mark in node.own_markers if not is_about_version(mark)]
