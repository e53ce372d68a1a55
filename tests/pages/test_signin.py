import httpx
import pytest


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
