import httpx
import pytest

from parts import signed_in


@pytest.fixture
def browser(service):
    with httpx.Client(base_url=service.url, follow_redirects=True) as client:
        yield client


def test_whoever_is_not_signed_in_is_sent_to_the_sign_in_page(browser):
    page = browser.get("/")
    assert page.url.path == "/sign-in"
    assert 'name="email"' in page.text
    assert 'name="password"' in page.text


def test_signing_in_opens_the_fleet_and_signing_out_closes_it(browser, person, project):
    page = browser.post("/sign-in", data=person | {"to": "/"})
    assert page.status_code == 200
    assert f"{project.slug} · engineer" in page.text
    csrf = page.text.split('name="csrf" value="')[1].split('"')[0]
    assert browser.post("/sign-out", data={"csrf": csrf}).url.path == "/sign-in"
    assert browser.get("/").url.path == "/sign-in"


@pytest.mark.parametrize("password", ["wrong", "", "x" * 10_000])
def test_a_wrong_password_and_an_unknown_address_get_the_same_answer(browser, person, password):
    wrong = browser.post("/sign-in", data=person | {"password": password})
    unknown = browser.post("/sign-in", data={"email": "nobody@example.com", "password": password})
    assert wrong.status_code == unknown.status_code == 401
    assert wrong.text == unknown.text


def test_a_form_of_another_site_is_refused(browser, person):
    answer = browser.post("/sign-in", data=person, headers={"Origin": "https://evil.example"})
    assert answer.status_code == 403


def test_signing_out_needs_the_token_of_the_form(browser, person):
    browser.post("/sign-in", data=person)
    assert browser.post("/sign-out", data={"csrf": "guessed"}).status_code == 403
    assert browser.get("/").url.path == "/"


@pytest.mark.parametrize(
    "to", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_signing_in_never_leads_to_another_site(service, person, to):
    answer = httpx.post(f"{service.url}/sign-in", data=person | {"to": to})
    assert answer.status_code == 303
    assert answer.headers["location"] == "/"


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(service, person):
    answer = httpx.post(f"{service.url}/sign-in", data=person)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


def test_pages_carry_the_security_headers(browser):
    headers = browser.get("/sign-in").headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe-inline" not in headers["content-security-policy"].split("script-src")[1].split(";")[0]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "same-origin"


def test_static_files_may_be_kept_for_ever(browser):
    page = browser.get("/sign-in").text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    answer = browser.get(address)
    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]


def test_guessing_at_an_account_is_stopped_and_says_how_long(browser, person):
    for _ in range(10):
        assert browser.post("/sign-in", data=person | {"password": "guess"}).status_code == 401
    refused = browser.post("/sign-in", data=person | {"password": "guess"})
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "900"
    # The right password does not get through either, or guessing would go on.
    assert browser.post("/sign-in", data=person).status_code == 429


def test_an_unknown_account_is_stopped_alike(browser, project):
    nobody = {"email": f"nobody-{project.slug}@example.com", "password": "guess"}
    for _ in range(10):
        assert browser.post("/sign-in", data=nobody).status_code == 401
    assert browser.post("/sign-in", data=nobody).status_code == 429


def test_the_right_password_forgives_earlier_failures(browser, person):
    for _ in range(3):
        for _ in range(8):
            assert browser.post("/sign-in", data=person | {"password": "guess"}).status_code == 401
        assert browser.post("/sign-in", data=person).status_code == 200


def test_what_was_typed_as_an_address_is_not_kept_in_clear(browser, project):
    typed = f"my-secret-{project.slug}"
    browser.post("/sign-in", data={"email": typed, "password": "x"})
    assert project.value("SELECT count(*) FROM sign_in_attempts") > 0
    found = project.rows("SELECT encode(subject, 'escape') FROM sign_in_attempts")
    assert all(typed not in row[0] for row in found)


@pytest.mark.parametrize(
    "change", ["seen_at = now() - interval '15 days'", "created_at = now() - interval '91 days'"]
)
def test_a_session_that_is_idle_or_old_is_over(browser, person, project, change):
    browser.post("/sign-in", data=person)
    assert browser.get("/").url.path == "/"
    project.rows(
        f"UPDATE browser_sessions s SET {change} FROM users u "
        "WHERE u.id = s.user_id AND u.email = :email RETURNING 1",
        email=person["email"],
    )
    assert browser.get("/").url.path == "/sign-in"


def test_signing_in_makes_a_new_token_and_signing_out_kills_it(service, person):
    with httpx.Client(base_url=service.url) as client:
        first = client.post("/sign-in", data=person).cookies["gapwatch"]
        second = client.post("/sign-in", data=person).cookies["gapwatch"]
        assert first != second
    with httpx.Client(base_url=service.url, cookies={"gapwatch": second}, follow_redirects=True) as client:
        page = client.get("/").text
        csrf = page.split('name="csrf" value="')[1].split('"')[0]
        client.post("/sign-out", data={"csrf": csrf})
    with httpx.Client(base_url=service.url, cookies={"gapwatch": second}, follow_redirects=True) as client:
        assert client.get("/").url.path == "/sign-in"


def test_a_new_password_signs_every_other_browser_out(service, person):
    fresh = "a different lamp altogether"
    with signed_in(service, person) as here, signed_in(service, person) as there:
        csrf = here.get("/account").text.split('name="csrf" value="')[1].split('"')[0]
        fields = {"csrf": csrf, "project": "", "current": person["password"], "password": fresh}
        assert here.post("/account", data=fields | {"current": "wrong"}).status_code == 401
        assert here.post("/account", data=fields | {"password": "12345678"}).status_code == 422
        assert here.post("/account", data=fields).url.path == "/"
        assert there.get("/").url.path == "/sign-in"
    with signed_in(service, person | {"password": fresh}) as again:
        assert again.get("/").url.path == "/"


def test_a_page_leads_back_to_itself_after_signing_in(browser, person, project):
    asked = browser.get("/episodes?outcome=failure&condition=lighting%3Adim")
    to = asked.text.split('name="to" value="')[1].split('"')[0].replace("&amp;", "&")
    page = browser.post("/sign-in", data=person | {"to": to})
    assert str(page.url).endswith("/episodes?outcome=failure&condition=lighting%3Adim")
