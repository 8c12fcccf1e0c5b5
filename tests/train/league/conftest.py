import pytest

from .commands import TINY, Commands


@pytest.fixture
def commands(capsys):
    return Commands(capsys)


@pytest.fixture
def tiny(tmp_path):
    """The file of a scenario."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path
