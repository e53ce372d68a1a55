"""Static files from memory, compressed once at start, under addresses that carry their hash: a browser keeps them.

Our own files share one hash, so that a module finds its neighbour by a relative import. plotly.min.js is the one
inside the Python package: 4.8 MB, 1.5 MB compressed, asked for only by pages with figures.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from gapwatch.errors import NotFound

PLOTLY = "plotly.min.js"
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
FOR_EVER = "public, max-age=31536000, immutable"


@dataclass(frozen=True)
class _File:
    version: str
    media_type: str
    body: bytes
    packed: bytes


class Assets:
    def __init__(self, directory: Path) -> None:
        own = {
            path.relative_to(directory).as_posix(): path.read_bytes()
            for path in sorted(directory.rglob("*"))
            if path.suffix in MEDIA_TYPES
        }
        version = _hash(b"".join(name.encode() + body for name, body in own.items()))
        self._files = {name: _file(name, body, version) for name, body in own.items()}
        plotly = plotly_script()
        self._files[PLOTLY] = _file(PLOTLY, plotly, _hash(plotly))

    def url(self, name: str) -> str:
        return f"/static/{self._files[name].version}/{name}"

    def text(self, name: str) -> str:
        """For the report, which carries its style and script in itself."""
        return self._files[name].body.decode()

    def route(self) -> Route:
        return Route("/static/{version}/{name:path}", self._serve, methods=["GET"])

    async def _serve(self, request: Request) -> Response:
        file = self._files.get(request.path_params["name"])
        if file is None:
            raise NotFound("There is nothing at this address.")
        # A page of the release before may still be open; it gets what there is, and does not keep it.
        current = request.path_params["version"] == file.version
        headers = {"Cache-Control": FOR_EVER if current else "no-store", "Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, 200, headers | {"Content-Encoding": "gzip"}, file.media_type)
        return Response(file.body, 200, headers, file.media_type)


def plotly_script() -> bytes:
    """Read without importing the package, which takes a quarter of a second."""
    spec = find_spec("plotly")
    assert spec is not None and spec.origin is not None  # noqa: S101 - a dependency
    return (Path(spec.origin).parent / "package_data" / PLOTLY).read_bytes()


def _file(name: str, body: bytes, version: str) -> _File:
    return _File(version, MEDIA_TYPES[Path(name).suffix], body, gzip.compress(body, mtime=0))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
