"""A cast for page tests: a viewer, an engineer and an admin of one project, and a stranger with another."""

from __future__ import annotations

import re

import httpx

from gapwatch.accounts import put_person
from parts import Project, Service

PASSWORD = "wet lamp oxen parade"


def somebody(project: Project, role: str) -> dict[str, str]:
    who = {"email": f"{role}-{project.slug}@example.com", "password": PASSWORD}
    put_person(project.database, who["email"], who["password"], project.slug, role)
    return who


class Browser:
    """A browser without a screen: keeps cookies, follows redirects, sends forms with the page's token."""

    def __init__(self, service: Service, who: dict[str, str] | None = None) -> None:
        self.client = httpx.Client(
            base_url=service.url, follow_redirects=True, timeout=30, headers={"Accept": "text/html"}
        )
        self.get, self.post, self.close = self.client.get, self.client.post, self.client.close
        if who is not None:
            answer = self.post("/sign-in", data=who)
            assert answer.is_success, answer.text

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def token(self, page: str = "/account") -> str:
        found = re.search(r'name="csrf" value="([^"]+)"', self.get(page).text)
        assert found is not None
        return found[1]

    def submit(self, path: str, project: str, **fields: str) -> httpx.Response:
        return self.post(path, data={"csrf": self.token(), "project": project, **fields})
