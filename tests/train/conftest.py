from pathlib import Path

import pytest
from rich.console import Console

from echelon_train.league.store.registry import League
from echelon_train.runs.training import train
from support.tiny import TINY
from train.league.commands import Commands
from train.league.leagues import small_league
from train.small import small_run


@pytest.fixture
def quiet() -> Console:
    return Console(quiet=True)


@pytest.fixture(autouse=True)
def no_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw no plots, which take longer than the rest of a short run; only `finished_run` has them."""
    monkeypatch.setattr("echelon_train.runs.run.save_run_curves", lambda folder: None)


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a short run; tests must not change it."""
    out = tmp_path_factory.mktemp("runs") / "finished"
    train(small_run(eval_every=32), out, console=Console(quiet=True))
    return out


@pytest.fixture
def commands(capsys: pytest.CaptureFixture[str]) -> Commands:
    return Commands(capsys)


@pytest.fixture
def league(tmp_path: Path) -> League:
    return small_league(tmp_path / "league")


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """The file of a tiny scenario."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path
