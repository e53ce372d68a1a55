import pytest

from parts import wait_until


@pytest.fixture
def settled():
    """Wait until everything that a project was sent is folded."""

    def wait(project):
        wait_until(
            lambda: project.value("SELECT count(*) FROM work WHERE project_id = :p") == 0, 30, what="the fold"
        )

    return wait
