import pytest
from answers.lab import Lab

from parts import Project


@pytest.fixture
def lab(project: Project) -> Lab:
    return Lab(project)
