"""Attack: read another tenant's text, or a channel's secret, in the delivery log."""

import ast
import json
import threading

import pytest
from alerts.receivers import BadDay
from alerts.stage import SECRET
from attack.configs import MARK, config_of, secrets_of, shown_of
from channels.messages import EGRESS, message
from sqlalchemy import text

from gapwatch.access.sealing import Sealer
from gapwatch.alerts.outbox import Sender
from gapwatch.channels.cleaning import HIDDEN, cleaned
from gapwatch.channels.egress import SHOWN_ANSWER
from gapwatch.channels.kinds import CHANNEL_KINDS, read_config
from gapwatch.channels.message import Attempt
from gapwatch.settings import ROOT
from gapwatch.store.alerting import outbox
from gapwatch.watching import notification

DELIVERIES = 12


def make_tenant(database, slug, base):
    """A project with one webhook; `base` is a server that answers with the tenant's own text."""
    sealed = Sealer(SECRET).seal({"secret": f"secret-of-{slug}-{MARK}"})
    with database.transaction() as connection:
        project_id = connection.execute(
            text("INSERT INTO projects (slug, name) VALUES (:slug, :slug) RETURNING id"), {"slug": slug}
        ).scalar_one()
        channel_id = connection.execute(
            text(
                "INSERT INTO channels (project_id, name, kind, config, secret)"
                " VALUES (:p, 'hook', 'webhook', CAST(:config AS jsonb), :sealed) RETURNING id"
            ),
            {"p": project_id, "config": json.dumps({"url": f"{base}/{slug}"}), "sealed": sealed},
        ).scalar_one()
        for _ in range(DELIVERIES):
            outbox.enqueue(
                connection, project_id, channel_id, "test", notification.test_content(slug), incident_id=None
            )
    return project_id


def test_an_attempt_holds_its_own_tenants_text_alone_and_no_secret(database, receiver):
    """Two tenants at once, whose servers send back what they got, headers and all, with every kind of failure."""
    real = receiver.take

    def echo(got):
        real(got)
        slug = got.path.strip("/")
        said = {"tenant": slug, "headers": got.headers, "secret": f"secret-of-{slug}-{MARK}"}
        return (500 if got.body.count(b"a") % 2 else 200), json.dumps(said).encode()

    receiver.take = echo
    ids = {slug: make_tenant(database, slug, receiver.url) for slug in ("anna", "boris")}
    senders = [Sender(database, Sealer(SECRET), EGRESS, lambda _: "") for _ in range(2)]
    threads = [threading.Thread(target=sender.send_due) for sender in senders]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.transaction() as connection:
        rows = connection.execute(text("SELECT project_id, answer FROM delivery_attempts")).all()
    assert len(rows) == 2 * DELIVERIES
    for slug, project_id in ids.items():
        [other] = ids.keys() - {slug}
        answers = [answer for owner, answer in rows if owner == project_id]
        assert len(answers) == DELIVERIES
        assert all(slug in answer and other not in answer for answer in answers)
        assert all(MARK not in answer and HIDDEN in answer for answer in answers)
        assert all(len(answer) <= SHOWN_ANSWER for answer in answers)


@pytest.mark.parametrize("kind", sorted(CHANNEL_KINDS.keys() - {"email"}))
def test_no_kind_leaves_its_secrets_in_what_the_other_side_says(receiver, kind):
    """The other side sends everything back: path, headers and body, whole and cut off in the middle."""
    secrets, shown = secrets_of(kind, receiver.url), shown_of(kind, receiver.url)
    config = read_config(kind, shown, secrets)
    one = message("test" if kind == "alertmanager" else "trigger")
    CHANNEL_KINDS[kind].send(config, one, EGRESS)
    got = receiver.got[0]
    everything = f"{got.path} {json.dumps(got.headers)} ".encode() + got.body + b" " + json.dumps(secrets).encode()
    receiver.bad_days = [BadDay(400, body=everything)]
    attempt = CHANNEL_KINDS[kind].send(config, one, EGRESS)
    assert attempt.status == 400
    assert MARK not in cleaned(attempt, secrets, shown).answer
    for length in range(len(MARK), 60):
        cut = Attempt("refused", 400, everything.decode()[:length], 1)
        assert MARK not in cleaned(cut, secrets, shown).answer


def test_a_password_is_hidden_as_it_goes_over_the_wire():
    import base64

    shown, secrets = shown_of("email", ""), secrets_of("email", "")
    pairs = [f"gapwatch:{secrets['password']}", f"\0gapwatch\0{secrets['password']}", secrets["password"]]
    said = " ".join(base64.b64encode(pair.encode()).decode() for pair in pairs)
    assert cleaned(Attempt("refused", 535, said, 1), secrets, shown).answer == f"{HIDDEN} {HIDDEN} {HIDDEN}"


def test_a_secret_at_the_edge_of_what_is_kept_leaves_no_part_of_itself():
    secrets = {"secret": f"hmac-{MARK}"}
    answer = "x" * (SHOWN_ANSWER - 9) + secrets["secret"]
    kept = cleaned(Attempt("refused", 400, answer[:SHOWN_ANSWER], 1), secrets, {}).answer
    assert "hmac" not in kept


def test_nothing_but_the_logs_module_listens_to_logs():
    """A handler or capture belongs to the whole process: it hears every thread, of every tenant."""
    words = {"addHandler", "LogCapture", "StreamHandler", "captureWarnings", "redirect_stdout", "redirect_stderr"}
    for path in (ROOT / "backend" / "gapwatch").rglob("*.py"):
        names = {
            node.attr if isinstance(node, ast.Attribute) else node.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute | ast.Name)
        }
        assert path.name == "logs.py" or not names & words, path


def test_what_is_wrong_with_a_stored_configuration_is_said_without_its_secrets():
    for kind in CHANNEL_KINDS:
        config = {**config_of(kind, "https://example.com"), "unknown": MARK}
        with pytest.raises(ValueError) as refused:
            read_config(kind, {}, config)
        assert MARK not in str(refused.value)
