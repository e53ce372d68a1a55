"""What numbers stand for. Interned contents never change, so a process caches them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

from cachetools import FIFOCache
from sqlalchemy import Connection, Engine

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ContentCache(Generic[K, V]):
    """A bounded cache by project, shared by all threads. Databases are told apart by their engine.

    First in, first out: a page looks up thousands of cells, and a hit must not reorder anything.
    """

    def __init__(self, maxsize: int) -> None:
        self._cache: FIFOCache[tuple[Engine, int, K], V] = FIFOCache(maxsize)
        self._lock = Lock()

    def get(self, connection: Connection, project_id: int, keys: Iterable[K]) -> dict[K, V]:
        """Return those that are cached."""
        engine, cache, hits = connection.engine, self._cache, {}
        for key in keys:
            try:
                hits[key] = cache[engine, project_id, key]
            except KeyError:
                continue
        return hits

    def put(self, connection: Connection, project_id: int, contents: Mapping[K, V]) -> None:
        engine = connection.engine
        with self._lock:
            for key, content in contents.items():
                self._cache[engine, project_id, key] = content
