import pytest

from gapwatch.pages.templates import FRONTEND, make_environment

TEMPLATES = sorted(path.name for path in (FRONTEND / "templates").glob("*.html"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_compiles(name):
    make_environment().get_template(name)


@pytest.mark.parametrize("name", [name for name in TEMPLATES if not name.startswith("_") and name != "base.html"])
def test_every_page_has_a_title(name):
    assert "title" in make_environment().get_template(name).blocks
