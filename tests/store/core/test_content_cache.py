"""Interned contents are cached by database and project, and no more of them than were asked for."""

from types import SimpleNamespace

from gapwatch.store.core.content_cache import ContentCache


def test_contents_are_kept_apart_by_database_and_project():
    cache: ContentCache[int, str] = ContentCache(10)
    here, there = SimpleNamespace(engine=object()), SimpleNamespace(engine=object())
    cache.put(here, 1, {7: "seven", 8: "eight"})
    assert cache.get(here, 1, [7, 9]) == {7: "seven"}
    assert cache.get(here, 2, [7]) == {}
    assert cache.get(there, 1, [7]) == {}


def test_the_oldest_goes_when_the_cache_is_full():
    cache: ContentCache[int, int] = ContentCache(3)
    here = SimpleNamespace(engine=object())
    for number in range(5):
        cache.put(here, 1, {number: number})
        cache.get(here, 1, [0])
    assert cache.get(here, 1, range(5)) == {2: 2, 3: 3, 4: 4}
