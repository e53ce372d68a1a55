import os

import pytest

from gapwatch.settings import Settings, SettingsError, read_settings, unknown_variables
from parts import clean_environment


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch, tmp_path):
    for name in set(os.environ) - set(clean_environment()):
        monkeypatch.delenv(name)
    monkeypatch.setenv("GAPWATCH_DATA_DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("GAPWATCH_PORT", "many", "integer"),
        ("GAPWATCH_PORT", "70000", "65535"),
        ("GAPWATCH_DATABASE_URL", "sqlite:///x.db", "Postgres is the only database"),
        ("GAPWATCH_REDIS_URL", "http://redis", "redis://"),
        ("GAPWATCH_BASE_URL", "gapwatch.example.com", "https://"),
        ("GAPWATCH_SECRET_KEY", "short", "32"),
        ("GAPWATCH_LOG_FORMAT", "xml", "json"),
        ("GAPWATCH_WORKER_PROCESSES", "0", "greater than or equal to 1"),
    ],
)
def test_a_bad_value_is_named_in_a_sentence(monkeypatch, variable, value, words):
    monkeypatch.setenv(variable, value)
    with pytest.raises(SettingsError) as error:
        read_settings()
    assert str(error.value).startswith(f"{variable} is wrong: ")
    assert words in str(error.value)
    assert str(error.value).endswith(".")


def test_a_bad_secret_is_not_repeated(monkeypatch):
    monkeypatch.setenv("GAPWATCH_SECRET_KEY", "hunter2")
    with pytest.raises(SettingsError) as error:
        read_settings()
    assert "hunter2" not in str(error.value)


def test_a_value_may_come_from_a_file(monkeypatch, tmp_path):
    path = tmp_path / "url"
    path.write_text("postgresql://u:p@db/gapwatch\n")
    monkeypatch.setenv("GAPWATCH_DATABASE_URL_FILE", str(path))
    assert read_settings().database_url == "postgresql://u:p@db/gapwatch"


def test_a_file_that_cannot_be_read_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("GAPWATCH_SECRET_KEY_FILE", str(tmp_path / "absent"))
    with pytest.raises(SettingsError, match="GAPWATCH_SECRET_KEY_FILE cannot be read"):
        read_settings()


def test_a_value_and_its_file_together_are_refused(monkeypatch, tmp_path):
    monkeypatch.setenv("GAPWATCH_PORT", "1")
    monkeypatch.setenv("GAPWATCH_PORT_FILE", str(tmp_path / "port"))
    with pytest.raises(SettingsError, match="GAPWATCH_PORT and GAPWATCH_PORT_FILE are both set"):
        read_settings()


def test_an_unknown_variable_is_pointed_out():
    [warning] = unknown_variables({"GAPWATCH_PROT": "1", "GAPWATCH_PORT": "1", "GAPWATCH_URL": "x", "HOME": "/"})
    assert warning == "GAPWATCH_PROT is not a setting and is ignored; did you mean GAPWATCH_PORT?"


def test_the_server_secret_is_made_once_and_kept_to_its_owner(tmp_path):
    settings = Settings(data_dir=tmp_path / "data")
    first = settings.server_secret()
    assert len(first) >= 32
    assert Settings(data_dir=tmp_path / "data").server_secret() == first
    assert (tmp_path / "data" / "secret-key").stat().st_mode & 0o077 == 0
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secret-key"]


@pytest.mark.parametrize("value", ["everywhere", "10.0.0.1 10.0.0.2", "0.0.0.0/0", "*"])
def test_only_named_proxies_are_trusted(monkeypatch, value):
    monkeypatch.setenv("GAPWATCH_TRUSTED_PROXIES", value)
    with pytest.raises(SettingsError, match="GAPWATCH_TRUSTED_PROXIES is wrong"):
        read_settings()
    monkeypatch.setenv("GAPWATCH_TRUSTED_PROXIES", "10.0.0.1, 192.168.0.0/16, ::1")
    assert read_settings().trusted_proxies
