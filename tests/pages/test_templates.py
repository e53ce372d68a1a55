import gc
import weakref

import pytest
from jinja2 import DictLoader

from gapwatch.pages.people.sign_in import SignInPage
from gapwatch.pages.static import Assets
from gapwatch.pages.templates import FRONTEND, Pages, make_environment

TEMPLATES = sorted(path.name for path in (FRONTEND / "templates").glob("*.html"))
WIDEST = 120
PAGES = [name for name in TEMPLATES if not name.startswith("_") and name != "base.html"]


@pytest.fixture(scope="module")
def environment():
    return make_environment(Assets(FRONTEND / "static"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_compiles(environment, name):
    environment.get_template(name)


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_line_of_a_template_can_be_read_without_scrolling(name):
    lines = (FRONTEND / "templates" / name).read_text().splitlines()
    assert [f"{name}:{number}" for number, line in enumerate(lines, start=1) if len(line) > WIDEST] == []


@pytest.mark.parametrize("name", PAGES)
def test_every_page_has_a_title(environment, name):
    assert "title" in environment.get_template(name).blocks


# The report is a file of its own, opened from a disk: nothing could be loaded there.
@pytest.mark.parametrize("name", [name for name in TEMPLATES if name != "report.html"])
def test_no_template_turns_escaping_off_or_runs_inline_script(name):
    text = (FRONTEND / "templates" / name).read_text()
    assert "| safe" not in text and "|safe" not in text and "autoescape" not in text
    for tag in text.split("<script")[1:]:
        opening = tag.split(">")[0]
        assert 'src="{{ asset(' in opening or 'type="application/json"' in opening, opening
    assert " onclick=" not in text and " onload=" not in text


def test_indentation_stays_in_the_template(environment):
    """What an expression says keeps its spaces."""
    template = environment.from_string(
        "<ul>\n  {% for one in all %}\n    <li>{{ one }}</li>\n  {% endfor %}\n</ul>"
    )
    assert template.render(all=["a", "  b\n  c"]) == "<ul>\n<li>a</li>\n<li>  b\n  c</li>\n</ul>"


def test_own_scripts_stay_small():
    lines = sum(len(path.read_text().splitlines()) for path in (FRONTEND / "static").glob("*.js"))
    assert lines < 1500


def test_what_a_page_shows_goes_with_it(environment):
    """Not when the garbage collector comes by: macros and their context refer to each other."""
    pages = Pages()
    pages._environment = environment.overlay(
        loader=DictLoader(
            {"one.html": "{% macro to() %}{{ page.to }}{% endmacro %}{{ to() }}{{ figures.ledger }}"}
        )
    )
    gc.disable()
    try:
        page = SignInPage("", "/alerts", True)
        kept = weakref.ref(page)
        assert pages.render("one.html", page=page, figures={"ledger": 7}).body == b"/alerts7"
        del page
        assert kept() is None
    finally:
        gc.enable()


def test_json_is_indented_where_it_is_to_be_read(environment):
    written = environment.from_string("{{ one | tojson }} {{ one | tojson(2) }}").render(one={"a": {"b": "<i>"}})
    assert written == '{"a":{"b":"\\u003ci\\u003e"}} {\n  "a": {\n    "b": "\\u003ci\\u003e"\n  }\n}'
