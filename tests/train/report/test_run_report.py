"""The report of one run."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from echelon_env import make_config
from echelon_env.evaluate import baseline, checkpoint_player, evaluation_seed
from echelon_env.evaluate.card import ablations, make_card, write_card
from echelon_env.replays import read_replay, write_page
from echelon_train.errors import RunFolderError
from echelon_train.report import write_run_report
from echelon_train.runs.folder import read_metrics
from echelon_train.runs.metrics import points
from train.report.parsed import Parsed

DUEL = make_config("duel-open", max_steps=4)
EVEN = ["50.0 [5.5, 94.5]", "0.0 [-44.5, 44.5]"]
HOSTILE = "<img src=x onerror=alert(1)>\"'&</script><script>document.title='broken'</script>$\\frac$"


@pytest.fixture
def run(finished_run, tmp_path):
    """A copy of a finished run, to be changed."""
    return shutil.copytree(finished_run, tmp_path / "copied")


def report(folder, tmp_path, **options):
    out = tmp_path / "report.html"
    write_run_report(folder, out, **{"replays": 0, **options})
    return Parsed(out)


def add_line(run, **values):
    """A line of metrics after the last one."""
    line = {**read_metrics(run)[-1], **values}
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


@pytest.mark.long
def test_the_numbers_are_those_of_the_run(finished_run, tmp_path):
    page = report(finished_run, tmp_path)
    metrics = read_metrics(finished_run)
    for title, metric, sign in (
        ("return", "battle/return", 1),
        ("entropy", "train/entropy_loss", -1),
        ("explained variance", "train/explained_variance", 1),
        ("processor time", "time/cpu_minutes", 1),
    ):
        steps, values = points(metrics, metric)
        ((x, y),) = page.lines(title).values()
        assert x == steps.tolist()
        np.testing.assert_allclose(y, sign * values, rtol=1e-5)
    rewards = page.lines("reward by component")
    assert rewards.keys() >= {"damage", "kill", "death", "outcome"}
    for component, (x, y) in rewards.items():
        steps, values = points(metrics, f"battle/reward/{component}")
        assert x == steps.tolist() and y == pytest.approx(values.tolist(), rel=1e-5)
    shown = page.lines("win rate")
    steps, values = points(metrics, "eval/win_rate")
    assert shown["evaluation, 95 % interval"] == (steps.tolist(), pytest.approx(values.tolist()))
    last = metrics[-1]
    (row,) = page.tables["evaluation"][1:]
    low, high = (100 * last[f"eval/win_rate_{end}"] for end in ("low", "high"))
    assert row[0] == "trivial" and row[1] == f"{100 * last['eval/win_rate']:.1f} [{low:.1f}, {high:.1f}]"
    assert f"{last['time/total_timesteps']:,}" in page.text
    document = json.loads((finished_run / "run.json").read_text())
    assert document["git_commit"] in page.text and document["packages"]["torch"] in page.text
    assert page.loaded == [] and "script-src 'sha256-" in page.policy


def test_a_card_in_the_folder_is_shown(run, tmp_path):
    assert "card" not in report(run, tmp_path).tables
    rows = [*ablations(DUEL)][:2]
    card = make_card(baseline("idle"), baseline("idle"), DUEL, [evaluation_seed(0, 0)], scenario=HOSTILE, rows=rows)
    write_card(run / "card.json", card)
    page = report(run, tmp_path)
    assert page.tables["card"][1:] == [[each.name, each.group, *EVEN] for each in rows]
    assert page.tables["card-battles"][1:][2] == ["battles that end by time limit", "100.0", "%"]
    assert HOSTILE in page.text and "the card of another policy" in page.text
    (run / "card.json").write_text("[]")
    assert "The card cannot be shown" in report(run, tmp_path).text


def test_the_exploitability_of_its_policy_is_shown(run, tmp_path):
    """One result is of the run's policy, the other of an earlier one."""
    assert "exploitability-table" not in report(run, tmp_path).tables
    sha256 = checkpoint_player(run).identity["weights_sha256"]
    score = {"estimate": 0.75, "low": 0.5, "high": 1.0}
    for folder, weights in (("exploit", sha256), ("exploit-trio", "0" * 64)):
        found = {"policy": HOSTILE, "weights_sha256": weights, "scenario": folder, "battles": 4, "exploitability": 0.25}
        (run / folder).mkdir()
        responses = [{"seed": 0, "steps": 64, "score": 0.75}]
        (run / folder / "exploitability.json").write_text(json.dumps({**found, "score": score, "responses": responses}))
    page = report(run, tmp_path)
    assert [row[:2] for row in page.tables["exploitability-table"][1:]] == [
        [HOSTILE, "exploit"],
        [HOSTILE, "exploit-trio"],
    ]
    assert page.text.count("the result of an earlier policy") == 1


@pytest.mark.long
def test_a_run_without_films_has_a_battle_of_its_newest_checkpoint(finished_run, tmp_path):
    page = report(finished_run, tmp_path, replays=2)
    (frame,) = page.frames
    assert frame["sandbox"] == "allow-scripts" and 'id="replay"' in frame["srcdoc"]
    assert page.policy.count("sha256-") == 2 and "wasm-unsafe-eval" in page.policy and "unsafe-inline'" in page.policy
    assert "script-src 'unsafe-inline'" not in page.policy
    (tmp_path / "frame.html").write_text(frame["srcdoc"])
    replay = read_replay(tmp_path / "frame.html")
    assert replay.players[1] == "trivial" and replay.first_difference() is None


@pytest.mark.long
def test_films_are_read_as_data(run, tmp_path):
    from echelon_train.report.run_report import read_run, record_newest

    replay = dataclasses.replace(record_newest(read_run(run)), players=(HOSTILE.replace("\\", "")[:60], "x"))
    (run / "battles").mkdir()
    for steps in (0, 32, 64):
        write_page(run / "battles" / f"{steps:010}.html", replay)
    altered = run / "battles" / "0000000064.html"
    altered.write_text(altered.read_text().replace("</body>", "<script>alert(1)</script></body>"))
    (run / "battles" / "0000000096.html").write_text("<script>alert(2)</script>")
    page = report(run, tmp_path, replays=3)
    assert len(page.frames) == 2 and "alert(" not in page.source.replace("onerror=alert(1)", "")
    assert "after 0 decisions" in page.text and "after 96 decisions: no replay" in page.text


def resumed(document, **changes):
    """A record of a resume, with what the start of the run has."""
    names = ("started", "command", "git_commit", "git_diff", "packages", "machine", "policies")
    return {name: document[name] for name in names} | {"steps": 3, **changes}


@pytest.mark.long
def test_texts_of_files_are_escaped(run, tmp_path):
    document = json.loads((run / "run.json").read_text())
    document["command"] = [HOSTILE]
    document["packages"][HOSTILE] = HOSTILE
    document["ancestry"] = [{HOSTILE: HOSTILE}]
    document["resumed"] = [resumed(document, command=[HOSTILE], started=HOSTILE)]
    (run / "run.json").write_text(json.dumps(document))
    add_line(run, **{f"opponent/{HOSTILE}/win_rate": 0.5, "opponent/_b/win_rate": 0.25, "curriculum/scenario": "a"})
    add_line(run, **{f"opponent/{HOSTILE}/win_rate": 0.75, "opponent/_b/win_rate": 0.5, "curriculum/scenario": HOSTILE})
    page = report(run, tmp_path)
    assert "img" not in page.tags and page.tags.count("script") == 1
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    assert page.text.count(HOSTILE[:28]) >= 5
    shown = page.lines("win rate in training, by opponent")
    assert len(shown) == 3 and shown["_b"][1] == [0.25, 0.5]


def test_a_run_without_metrics_or_checkpoints_says_so(run, tmp_path):
    for name in ("metrics.jsonl", "statistics.json"):
        (run / name).unlink()
    shutil.rmtree(run / "checkpoints")
    page = report(run, tmp_path, replays=1)
    assert "has logged no metrics yet" in page.text and "no replay" in page.text and page.charts == {}


def test_several_opponents_are_named_with_their_weights(run, tmp_path):
    document = json.loads((run / "run.json").read_text())
    document["config"]["opponent"] = {"expert@auto": 0.5, "novice": 1}
    (run / "run.json").write_text(json.dumps(document))
    assert "Trained against novice (1), expert@auto (0.5), seed" in report(run, tmp_path).text


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("run.json", None, "is no training run: it has no run.json"),
        ("run.json", '{"config": {"a": ' + "[" * 60 + "]" * 60 + "}}", "expected at most 50 nested values"),
        ("metrics.jsonl", '{"time/total_timesteps": 1.5}\n', "expected an integer 'time/total_timesteps'"),
    ],
)
def test_damaged_runs_are_refused_and_nothing_is_written(run, tmp_path, file, text, expected):
    (run / file).unlink() if text is None else (run / file).write_text(text)
    with pytest.raises(RunFolderError, match=expected.replace(".", r"\.")):
        report(run, tmp_path)
    assert not (tmp_path / "report.html").exists()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".report")]


@pytest.mark.parametrize("limit", ["runs.folder.MAX_BYTES", "runs.folder.MAX_METRICS_BYTES"])
def test_large_files_are_refused(run, tmp_path, monkeypatch, limit):
    monkeypatch.setattr(f"echelon_train.{limit}", 10)
    with pytest.raises(RunFolderError, match="larger than 10 bytes"):
        report(run, tmp_path)


@pytest.mark.long
def test_long_runs_stay_small(run, tmp_path):
    lines = read_metrics(run)
    with (run / "metrics.jsonl").open("w") as file:
        for number_of_line in range(3_000):
            line = {**lines[number_of_line % len(lines)], "time/total_timesteps": 64 * number_of_line}
            line |= {f"opponent/policy:{name}/win_rate": number_of_line % 7 / 7 for name in range(20)}
            file.write(json.dumps(line) + "\n")
    page = report(run, tmp_path, replays=1)
    assert len(page.source) < 2_000_000
    shown = page.lines("win rate in training, by opponent")
    assert len(shown) == 12 and all(len(x) <= 400 for x, _ in shown.values())


@pytest.mark.long
def test_odd_files_are_shown(run, tmp_path):
    document = json.loads((run / "run.json").read_text())
    document["ancestry"], document["resumed"] = [{"x": ["y" * 5000]}] * 100, [resumed(document)] * 100
    document |= {"machine": {f"name-{each}": each for each in range(3000)}, "git_diff": {"bytes": "x", "file": [3]}}
    (run / "run.json").write_text(json.dumps(document))
    add_line(run, **{"battle/return": -1e99, "curriculum/scenario": "a", "train/value_loss": 1e-99})
    add_line(run, **{"battle/return": 1e101, "curriculum/scenario": "\ud800\x00", "eval/win_rate": 7.5})
    add_line(run, **{f"opponent/{each}/win_rate": each for each in range(500)})
    add_line(run, **{"battle/return": 1e99, "curriculum/scenario": "b", "time/total_timesteps": 10**400})
    page = report(run, tmp_path, replays=1)
    assert "And 1," in page.text and page.text.count("And 50 more") == 2 and "the first 12 of 100" in page.text
    assert page.tables["evaluation"][1][1].startswith("750.0")
    ((_, y),) = page.lines("return").values()
    assert -1e99 in y and max(y) < 1e99
