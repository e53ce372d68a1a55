"""A configuration of every kind of channel, made of secrets that are easy to find again."""

SECRETS = {
    "alertmanager": {"bearer": "bearer-7f3a9c1e5b"},
    "discord": {"url": "{base}/api/webhooks/123456/discord-7f3a9c1e5b"},
    "email": {"password": "smtp-7f3a9c1e5b"},
    "mattermost": {"url": "{base}/hooks/mattermost-7f3a9c1e5b"},
    "ntfy": {"topic": "topic-7f3a9c1e5b", "token": "tk_7f3a9c1e5b"},
    "opsgenie": {"api_key": "genie-7f3a9c1e5b"},
    "pagerduty": {"routing_key": "routing-7f3a9c1e5b"},
    "pushover": {"token": "tokentokentokentoken7f3a9c1e5b", "user": "useruseruseruseruser7f3a9c1e5b"},
    "slack": {"url": "{base}/services/T/B/slack-7f3a9c1e5b"},
    "teams": {"url": "{base}/workflows/wf/triggers/manual?sig=teams-7f3a9c1e5b"},
    "telegram": {"token": "123456:telegram-7f3a9c1e5b"},
    "webhook": {"secret": "hmac-7f3a9c1e5b"},
}
SHOWN = {
    "alertmanager": {"url": "{base}"},
    "email": {
        "to": ["ann@example.com"],
        "sender": "gapwatch@example.com",
        "host": "smtp.example.com",
        "username": "gapwatch",
    },
    "ntfy": {"url": "{base}"},
    "opsgenie": {"url": "{base}"},
    "pagerduty": {"url": "{base}/v2/enqueue"},
    "pushover": {"url": "{base}/1/messages.json"},
    "telegram": {"chat_id": "-1001234", "url": "{base}"},
    "webhook": {"url": "{base}/hook"},
}
MARK = "7f3a9c1e5b"


def _at(base, values):
    return {
        name: value.replace("{base}", base) if isinstance(value, str) else value for name, value in values.items()
    }


def secrets_of(kind, base):
    return _at(base, SECRETS[kind])


def shown_of(kind, base):
    return _at(base, SHOWN.get(kind, {}))


def config_of(kind, base):
    return {**shown_of(kind, base), **secrets_of(kind, base)}
