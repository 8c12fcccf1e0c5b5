"""``echelon league init``, ``add``, ``promote`` and ``retire``."""

import json
import shutil

import pytest

from echelon_env.cli import main
from echelon_env.config.skill import LEVELS
from echelon_env.evaluate import evaluation_seed
from echelon_env.storage.atomic import write_json
from echelon_train.checkpoints.checkpoint import load_checkpoint
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.registry import League
from train.league.leagues import played, saved

WIN, LOSS = (1, 1), (-1, -1)


def names(league):
    return [member.name for member in league.members()]


@pytest.mark.parametrize(
    ("options", "members"),
    [
        ([], ["novice", *(level for level in LEVELS if level != "novice")]),
        (["--scripted"], ["novice"]),
        (["--scripted", "idle", "expert", "idle", "novice"], ["novice", "idle", "expert"]),
        (["--scripted", "random", "all"], ["novice", "random", *(level for level in LEVELS if level != "novice")]),
    ],
)
def test_init(options, members, commands, tmp_path):
    path = tmp_path / "league"
    lines = commands.lines("init", path, *options)
    assert f"  echelon league play {path}         # rate all members" in lines
    league = League.open(path)
    assert league.settings == LeagueSettings()
    assert names(league) == members


def test_init_in_the_working_directory(commands, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands.json("init", ".")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["league.db", "members"]
    assert names(League.open(tmp_path))[0] == "novice"


def test_init_with_another_scale(commands, tmp_path):
    document = commands.json("init", tmp_path / "league", "--anchor", "expert", "--tau", "0.3", "--scripted", "novice")
    assert League.open(tmp_path / "league").settings == LeagueSettings(anchor="expert", tau=0.3)
    assert document["members"] == ["expert", "novice"]
    assert (document["anchor"], document["tau"]) == ("expert", 0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--anchor", "novic"], "novic"),
        (["--tau", "9"], "tau"),
        (["--tau", "x"], "expected a number above 0, got 'x'"),
        (["--scripted", "expart"], "did you mean 'expert'"),
    ],
)
def test_init_refuses_what_is_impossible(options, message, commands, tmp_path):
    assert message in commands.refusal("init", tmp_path / "league", *options)
    assert list(tmp_path.iterdir()) == []


def test_a_league_is_never_overwritten(commands, league):
    assert "is not an empty folder" in commands.refusal("init", league.path)
    assert names(league) == ["novice", "trivial", "expert"]


def test_add(commands, league, tmp_path):
    first = commands.json("add", league.path, saved(tmp_path / "one", 1, steps=1234))
    member = league.member(first["name"])
    assert (member.kind, member.age, member.weights_sha256) == ("past", 1234, first["weights_sha256"])
    options = ["--kind", "main_exploiter", "--name", "rogue", "--parent", member.name]
    lines = commands.lines("add", league.path, saved(tmp_path / "two", 2), *options)
    assert lines[0] == "rogue has joined (main_exploiter, trained on 100 decisions)."
    assert (league.member("rogue").kind, league.member("rogue").parent) == ("main_exploiter", member.name)
    assert commands.lines("add", league.path, "idle")[0] == "idle has joined (scripted)."
    assert league.member("idle").kind == "scripted"


def test_a_member_is_named_after_its_league(commands, league, tmp_path, capsys):
    commands.lines("add", league.path, saved(tmp_path / "one", 1), "--name", "one")
    other = League.create(tmp_path / "other")
    weights, name = league.member("one").weights_sha256, f"{league.path}/one"
    assert commands.json("add", other.path, name)["weights_sha256"] == weights
    assert main(["evaluate", name, "--opponent", "idle", "--battles", "2", "--actions", "mixed", "--json"]) == 0
    (player,) = json.loads(capsys.readouterr().out)["players"]
    assert (player["name"], player["action_mode"]) == (name, "mixed")
    assert player["identity"]["weights_sha256"] == weights
    assert main(["evaluate", f"{league.path}/ones"]) == 2
    assert "no member 'ones'; did you mean 'one'" in capsys.readouterr().err


def test_the_best_checkpoint_of_a_run_is_a_player(finished_run, tmp_path, capsys):
    run = shutil.copytree(finished_run, tmp_path / "run")
    write_json(run / "best.json", {"checkpoint": "0000000032", "steps": 32})
    assert main(["evaluate", f"{run}/best", "--opponent", "idle", "--battles", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["players"][0]["identity"]["steps"] == 32


def test_add_refuses_what_is_impossible(commands, league, tmp_path):
    path = saved(tmp_path / "one", 1)
    before = names(league)
    assert "did you mean 'competent'" in commands.refusal("add", league.path, "competnt")
    assert "no such file or folder" in commands.refusal("add", league.path, tmp_path / "nowhere")
    assert "'expert' is a member already" in commands.refusal("add", league.path, "expert")
    assert "neither a checkpoint" in commands.refusal("add", league.path, tmp_path)
    assert "expected one of main, " in commands.refusal("add", league.path, path, "--kind", "mane")
    assert "--name: goes with the policy" in commands.refusal("add", league.path, "idle", "--name", "lazy")
    assert "no member 'absent'" in commands.refusal("add", league.path, path, "--parent", "absent")
    assert "expected 1 to 32" in commands.refusal("add", league.path, path, "--name", "A B")
    assert "is no league" in commands.refusal("add", tmp_path / "nowhere", path)
    assert names(league) == before
    commands.lines("add", league.path, path, "--name", "one")
    assert "its weights are those of the member 'one'" in commands.refusal("add", league.path, path, "--name", "two")


def test_the_first_champion_and_its_successor(commands, league, tmp_path, tiny):
    for seed, name in enumerate(["old", "young"], 1):
        commands.lines("add", league.path, saved(tmp_path / name, seed), "--name", name)
    league.record(played("old", "novice", (*WIN, *LOSS) * 20, 8))
    league.close_period()
    assert "'young' has no rating yet" in commands.refusal("promote", league.path, "young")
    document = commands.json("promote", league.path, "old")
    assert (document["promoted"], document["previous"], document["champion"]) == (True, None, "old")
    league.record(played("young", "novice", WIN * 40, 9))
    league.close_period()
    battle = ["--scenario", tiny, "--maps", 2]
    lines = commands.lines("promote", league.path, "young", *battle)
    assert lines[0].startswith("'young' is champion: its score of ")
    folder = lines[-1].removeprefix("champion: ")
    assert load_checkpoint(league.member_policy("young")).steps == load_checkpoint(tmp_path / "young").steps
    assert folder == str(league.member_policy("young"))
    document = commands.json("promote", league.path, "young", *battle)
    validation = league.match(document["validation"])
    assert (validation.match.first, validation.match.second) == ("young", "old")
    assert len(validation.match.battles) == 4 and validation.match.scenario == str(tiny)
    maps = {battle.seed for battle in validation.match.battles}
    assert maps.isdisjoint(evaluation_seed(0, index) for index in range(100)), "not on those of rating runs"
    assert (document["previous"], document["champion"]) == ("old", "young")
    refused = commands.json("promote", league.path, "old", *battle, code=1)
    assert (refused["promoted"], refused["champion"]) == (False, "young")
    assert refused["score"] < refused["previous_score"]
    assert " is refused: " in commands.lines("promote", league.path, "old", *battle, code=1)[0]


@pytest.mark.parametrize("k", ["-1", "nan", "inf"])
def test_promotion_refuses_what_is_impossible(k, commands, league):
    assert "--k: expected a number of at least 0" in commands.refusal("promote", league.path, "novice", "--k", k)
    assert "'novice' is scripted" in commands.refusal("promote", league.path, "novice")
    assert "did you mean 'novice'" in commands.refusal("promote", league.path, "novic")


def test_retire(commands, league):
    assert commands.lines("retire", league.path, "expert") == ["expert is retired."]
    assert league.member("expert").state == "retired"
    assert commands.json("retire", league.path, "trivial")["retired"] == ["trivial"]
    assert "is the anchor" in commands.refusal("retire", league.path, "novice")
    assert "did you mean 'expert'" in commands.refusal("retire", league.path, "expart")
