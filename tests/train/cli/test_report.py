"""The commands `echelon report` and `echelon league report`."""

import argparse
import os

import pytest

from echelon_env.config.schema import ConfigError
from echelon_train.cli import report


def run(*arguments):
    parser = argparse.ArgumentParser()
    report.add_arguments(parser)
    return report.run(parser.parse_args([*map(str, arguments)]))


@pytest.fixture
def shown(finished_run, tmp_path):
    """A run's files that a report reads."""
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("run.json", "metrics.jsonl"):
        (folder / name).write_bytes((finished_run / name).read_bytes())
    return folder


@pytest.mark.long
def test_the_file_is_in_the_runs_folder_and_is_replaced(shown, capsys):
    for _ in range(2):
        assert run(shown, "--replays", 0) == 0
        file = shown / "report.html"
        assert capsys.readouterr().out == f"{file}: {file.stat().st_size / 1e6:.1f} MB\n"
    assert sorted(path.name for path in shown.iterdir()) == ["metrics.jsonl", "report.html", "run.json"]


def test_other_files_are_not_replaced(shown, tmp_path):
    mine = tmp_path / "mine.html"
    mine.write_text("<html>mine</html>")
    with pytest.raises(ConfigError, match="exists and is no report of echelon"):
        run(shown, "--out", mine)
    assert mine.read_text() == "<html>mine</html>"
    with pytest.raises(ConfigError, match=r"ends in \.html"):
        run(shown, "--out", tmp_path / "report.pdf")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(ConfigError, match="is no file"):
        run(shown, "--out", tmp_path / "folder.html")
    with pytest.raises(FileNotFoundError):
        run(shown, "--out", tmp_path / "missing" / "report.html")


def test_a_league_has_a_command_of_its_own(league):
    with pytest.raises(ConfigError, match="is a league: echelon league report"):
        run(league.path)


def test_the_command_of_a_league(league, commands):
    document = commands.json("report", league.path, "--replays", 0)
    assert document["bytes"] == (league.path / "report.html").stat().st_size
    (line,) = commands.lines("report", league.path, "--replays", 0, "--out", league.path / "other.html")
    assert line.startswith(str(league.path / "other.html"))
    assert "expected the name of a file that ends in .html" in commands.refusal("report", league.path, "--out", "x.png")


def test_a_folder_that_cannot_be_written_is_refused_before_the_report_is_made(shown, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != shown)
    monkeypatch.setattr("echelon_train.report.write_run_report", lambda *_, **__: pytest.fail("the report is computed"))
    with pytest.raises(PermissionError, match="is not writable, nothing can be written into it"):
        run(shown)
