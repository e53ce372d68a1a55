from parts import episode, make_project, signed_in, wait_until


def test_an_empty_fleet_shows_how_to_send_the_first_episode(service, person, project):
    with signed_in(service, person) as browser:
        page = browser.get("/").text
    assert "No episodes yet" in page
    assert f"curl {service.url}/api/v1/episodes" in page


def test_each_deployment_shows_both_sides_with_interval_and_n(service, person, project):
    sim = {"domain": "sim", "deployment": None, "simulator": {"name": "mujoco", "version": "3.3.0"}}
    records = [episode(outcome="success" if n < 81 else "failure") for n in range(263)]
    records += [episode(**sim, outcome="success" if n < 15 else "failure") for n in range(148)]
    with project.client() as client:
        client.post("/episodes/batch", json=records).raise_for_status()
    with signed_in(service, person) as browser:
        page = wait_until(lambda: "263" in (text := browser.get("/").text) and "148" in text and text)
    # Newcombe 1998a, Table I.
    assert "30.8 %" in page
    assert "[25.5, 36.6] n 263" in page
    assert "[6.2, 16.0] n 148" in page


def test_one_project_never_shows_another(service, service_database, person, project):
    other = make_project(service, service_database)
    with other.client() as client:
        client.post("/episodes", json=episode(deployment="somebody-elses")).raise_for_status()
    with signed_in(service, person) as browser:
        assert "somebody-elses" not in browser.get("/").text
