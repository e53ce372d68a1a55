"""`.env.example` is the list of settings that operators read, so it names every one and no other."""

import re

from gapwatch.settings import PREFIX, ROOT, Settings

LINE = re.compile(r"^(# )?(GAPWATCH_\w+)=(.*)$", re.MULTILINE)
EXAMPLE = {
    name: (bool(hidden), value) for hidden, name, value in LINE.findall((ROOT / ".env.example").read_text())
}


def test_the_example_names_every_setting_and_nothing_else():
    assert set(EXAMPLE) == {PREFIX + name.upper() for name in Settings.model_fields}


def test_the_example_shows_each_default_and_hides_settings_without_one():
    for name, field in Settings.model_fields.items():
        hidden, value = EXAMPLE[PREFIX + name.upper()]
        if field.default_factory is not None or field.default is None:
            assert hidden, name
        else:
            assert (hidden, value) == (False, str(field.default)), name
