"""Films of battles during a run."""

import dataclasses
import io
import json

import numpy as np
import pytest
from PIL import Image
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from echelon_env.engine.kernels import BackendError
from echelon_env.evaluate import evaluation_seed, validation_seed
from echelon_env.replays import ReplayError, read_replay
from echelon_train.config.schedules import Schedule
from echelon_train.runs import loggers
from echelon_train.runs import run as runs
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.training import resume, train
from train.small import small_run

STEPS = ("0000000000", "0000000032", "0000000064")


@pytest.fixture(scope="module")
def filmed(tmp_path_factory):
    out = tmp_path_factory.mktemp("films") / "run"
    fast = dataclasses.replace(small_run().ppo, learning_rate=Schedule.parse("0.1", ""))
    return train(small_run(film_every=32, ppo=fast), out, console=Console(quiet=True)), out


def test_battles_are_pages_and_films(filmed):
    _, out = filmed
    names = {f"{step}.{end}" for step in STEPS for end in ("gif", "html")}
    assert {path.name for path in (out / "battles").iterdir()} == names
    replays = [read_replay(out / "battles" / f"{step}.html") for step in STEPS]
    assert [replay.players[0] for replay in replays] == [f"policy after {n} decisions" for n in (0, 32, 64)]
    assert {replay.seed for replay in replays} == {evaluation_seed(validation_seed(0), 0)}
    assert all(replay.first_difference() is None for replay in replays)
    assert not np.array_equal(replays[0].actions, replays[2].actions)


def test_with_own_maps_the_first_is_filmed_and_all_are_played(tmp_path, monkeypatch):
    """The file is not needed afterwards: the run keeps its seeds."""
    file = tmp_path / "maps.txt"
    file.write_text("\n".join(str(evaluation_seed(9, index)) for index in range(3)))
    played, stock = [], runs.evaluate

    def evaluate(*arguments, **options):
        result = stock(*arguments, **options)
        played.append([battle.seed for battle in result.battles[::2]])
        return dataclasses.replace(result, maps_trained_on=len(played))

    monkeypatch.setattr(runs, "evaluate", evaluate)
    out = tmp_path / "run"
    train(small_run(film_every=64, eval_every=64, eval_seeds=str(file)), out, console=Console(quiet=True))
    seeds = [evaluation_seed(9, index) for index in range(3)]
    assert played == [seeds, seeds]
    assert {read_replay(path).seed for path in (out / "battles").glob("*.html")} == {seeds[0]}
    assert [line["eval/maps_trained_on"] for line in read_metrics(out) if "eval/maps_trained_on" in line] == [1, 2]
    file.unlink()
    assert json.loads((out / "run.json").read_text())["config"]["eval_seeds"] == seeds
    resume(out, console=Console(quiet=True), steps=96)
    assert played == [seeds] * 4


def test_tensorboard_has_the_films(filmed):
    _, out = filmed
    events = EventAccumulator(str(out / "tensorboard"))
    events.Reload()
    images = events.Images("battle/film")
    assert [image.step for image in images] == [32, 64, 64]  # with the next metrics that are written
    with Image.open(io.BytesIO(images[-1].encoded_image_string)) as picture:
        assert (picture.format, picture.size) == ("GIF", (images[-1].width, images[-1].height))
        assert picture.n_frames > 3


def test_a_film_that_cannot_be_written_is_reported(tmp_path, monkeypatch):
    error = ReplayError("too large")

    def refuse(*args):
        raise error

    monkeypatch.setattr("echelon_train.runs.run.write_film", refuse)
    text = io.StringIO()
    result = train(small_run(film_every=32), tmp_path / "run", console=Console(file=text, width=200))
    assert result.done
    assert text.getvalue().count(f"the battle cannot be filmed: {error}") == 3


def test_without_webassembly_there_is_a_replay(tmp_path, filmed, monkeypatch):
    def refuse(*args):
        raise BackendError("no WebAssembly module")

    replay = read_replay(filmed[1] / "battles" / f"{STEPS[0]}.html")
    monkeypatch.setattr(loggers, "write_page", refuse)
    film = loggers.write_film(tmp_path / "battles", "first", replay)
    assert film == tmp_path / "battles" / "first.gif" and not film.with_suffix(".html").exists()
    assert np.array_equal(read_replay(tmp_path / "battles" / "first.replay").actions, replay.actions)
