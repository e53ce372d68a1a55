"""Takes the README's pictures from a demo of its own, in Chromium: `make screenshots`."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from playwright.sync_api import Browser, Page, sync_playwright

HERE = Path(__file__).parent
WIDE, PHONE = 1440, 390
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
# austin-pack-2 tells its story in one day: a release in the morning, a page in the evening.
DEPLOYMENT, RELEASES = "austin-pack-2", ("bag-pack@2.0.3", "bag-pack@2.1.0")


def main() -> None:
    chromium = shutil.which("chromium")
    if chromium is None:
        sys.exit("The pictures need Chromium. On Debian: apt-get install chromium")
    with demo() as (url, sign_in), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        for scheme in ("light", "dark"):
            page = signed_in(browser, url, sign_in, WIDE, scheme)
            take(page, "/", f"fleet-{scheme}", 900)
            take(page, f"/deployments/{DEPLOYMENT}", f"deployment-{scheme}", 1300)
        page = signed_in(browser, url, sign_in, WIDE, "light")
        page.goto(f"/alerts?deployment={DEPLOYMENT}")
        alert = page.locator("tr", has_text="success-below-sim").locator("th a").get_attribute("href")
        take(page, str(alert), "alert", 940)
        take(page, f"/compare?policy={RELEASES[0]}&policy={RELEASES[1]}", "compare", 760)
        take(page, "/compare/simulators", "trust", 940)
        take(signed_in(browser, url, sign_in, PHONE, "dark"), "/", "phone", 844)
        browser.close()


@contextmanager
def demo() -> Iterator[tuple[str, dict[str, str]]]:
    """A whole `gapwatch demo`, when all of its history is in the numbers and every rule has looked at it."""
    # Open to the account that Postgres runs as.
    with tempfile.TemporaryDirectory(prefix="gapwatch-pictures-") as directory:
        Path(directory).chmod(0o711)
        data_dir, log_path = Path(directory) / "demo", Path(directory) / "log"
        command = [sys.executable, "-m", "gapwatch", "demo", "--port", "0", "--data-dir", str(data_dir)]
        with log_path.open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            said = wait_for(log_path.read_text, lambda text: "demo fleet: " in text, "the demo's history")
            database_url = json.loads((data_dir / "running.json").read_text())["database_url"]
            with psycopg.connect(database_url, autocommit=True) as connection:

                def due() -> Any:
                    counts = "SELECT (SELECT count(*) FROM work) + (SELECT count(*) FROM watch_due)"
                    return (connection.execute(counts).fetchone() or [0])[0]

                wait_for(due, lambda left: left == 0, "the numbers and the alerts")
            [url] = re.findall(r"Gapwatch is ready: (\S+)", said)
            [email], [password] = re.findall(r"Sign in with +(\S+)", said), re.findall(r"password +(\S+)", said)
            yield url, {"email": email, "password": password}
        finally:
            process.terminate()
            process.wait(60)


def wait_for(look: Callable[[], Any], is_there: Callable[[Any], bool], what: str, within_s: float = 180) -> Any:
    deadline = time.monotonic() + within_s
    while not is_there(found := look()):
        if time.monotonic() > deadline:
            sys.exit(f"{what} did not come within {within_s:.0f} s")
        time.sleep(0.5)
    return found


def signed_in(browser: Browser, url: str, sign_in: dict[str, str], width: int, scheme: Any) -> Page:
    page = browser.new_page(
        base_url=url, viewport={"width": width, "height": 900}, color_scheme=scheme, timezone_id="UTC"
    )
    page.goto("/sign-in")
    for name, value in sign_in.items():
        page.fill(f"input[name={name}]", value)
    page.click("main button[type=submit]")
    page.wait_for_url("**/")
    return page


def take(page: Page, address: str, name: str, height: int) -> None:
    """The top of a page, with every figure on it drawn."""
    assert page.viewport_size is not None  # noqa: S101 - it was given
    width = page.viewport_size["width"]
    page.set_viewport_size({"width": width, "height": height})
    page.goto(address)
    for figure in page.locator("[data-chart]").all():
        box = figure.bounding_box()
        if box is not None and box["y"] < height:
            page.wait_for_selector(f"[data-chart={figure.get_attribute('data-chart')}][data-state=drawn]")
    page.evaluate("document.activeElement.blur()")
    file = HERE / f"{name}.png"
    file.write_bytes(packed(page.screenshot()))
    print(f"{file.name} {file.stat().st_size // 1000} kB")  # noqa: T201 - a command's own words


def packed(png: bytes) -> bytes:
    """The same pixels: Chromium packs its pictures quickly, not well."""
    signature, rest = png[:8], png[8:]
    kept, pixels = [], b""
    while rest:
        [length] = struct.unpack(">I", rest[:4])
        kind, body, rest = rest[4:8], rest[8 : 8 + length], rest[12 + length :]
        if kind == b"IDAT":
            pixels += body
        else:
            kept.append((kind, body))
    kept.insert(-1, (b"IDAT", zlib.compress(zlib.decompress(pixels), 9)))
    chunks = (struct.pack(">I", len(b)) + k + b + struct.pack(">I", zlib.crc32(k + b)) for k, b in kept)
    return signature + b"".join(chunks)


if __name__ == "__main__":
    main()
