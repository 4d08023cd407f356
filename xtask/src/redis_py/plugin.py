"""Loaded by pytest beside redis-py's own tests.

The tests of client-side caching ask for redis 7.4, although redis 7.0 has everything that they use; so they would run
nowhere here. Tests that ask for a limit of time by a thread get the same limit by signal: the thread would end all of pytest,
and no test of the run would be known to have ended. Nothing else is changed, and the order of the tests is the order of the
files.
"""

import pytest
import redis.connection

redis.connection.CacheProxyConnection.MIN_ALLOWED_VERSION = "7.0.0"


def is_about_version(mark):
    return mark.name == "skipif" and "version" in str(mark.kwargs.get("reason", ""))


def by_signal(mark):
    if mark.name != "timeout" or mark.kwargs.get("method") != "thread":
        return mark
    return pytest.mark.timeout(*mark.args, **{**mark.kwargs, "method": "signal"}).mark


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        for node in item.listchain():
            node.own_markers = [by_signal(mark) for mark in node.own_markers]
        if item.path.name == "test_cache.py":
            for node in item.listchain():
                node.own_markers = [mark for mark in node.own_markers if not is_about_version(mark)]
