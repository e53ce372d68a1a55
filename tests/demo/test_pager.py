import json

import httpx
import pytest

from gapwatch.demo.pager import FILE, allow_local_pager, start_pager
from gapwatch.settings import Settings


@pytest.mark.parametrize(("host", "allowed"), [("127.0.0.1", True), ("localhost", True), ("0.0.0.0", False)])
def test_private_targets_are_open_only_where_nobody_else_can_ask(host, allowed):
    assert allow_local_pager(Settings(host=host)).allow_private_targets is allowed


def test_every_page_is_one_line_of_the_file(tmp_path):
    address = start_pager(tmp_path / "demo")
    for number in range(3):
        page = json.dumps({"headline": f"page {number}"}, indent=1)
        assert httpx.post(address, content=page, trust_env=False).status_code == 204
    lines = (tmp_path / "demo" / FILE).read_text().splitlines()
    assert [json.loads(line)["headline"] for line in lines] == ["page 0", "page 1", "page 2"]
