"""``echelon league init``, ``add``, ``promote`` and ``retire``."""

import json

import pytest

from echelon_env.cli import main
from echelon_env.config.skill import LEVELS
from echelon_env.evaluate import evaluation_seed
from echelon_train.league.store.periods import LeagueSettings
from echelon_train.league.store.registry import League
from train.league.leagues import played, saved

WIN, LOSS = (1, 1), (-1, -1)


def names(league):
    return [member.name for member in league.members()]


@pytest.mark.parametrize(
    ("options", "members", "settings"),
    [
        ([], ["novice", *(level for level in LEVELS if level != "novice")], {}),
        (["--scripted"], ["novice"], {}),
        (["--scripted", "idle", "expert", "idle", "novice"], ["novice", "idle", "expert"], {}),
        (["--scripted", "random", "all"], ["novice", "random", *(level for level in LEVELS if level != "novice")], {}),
        (
            ["--anchor", "expert", "--tau", "0.3", "--scripted", "novice"],
            ["expert", "novice"],
            {"anchor": "expert", "tau": 0.3},
        ),
    ],
)
def test_init(options, members, settings, commands, tmp_path, monkeypatch):
    path = tmp_path / "league"
    lines = commands.lines("init", path, *options)
    assert f"  echelon league play {path}         # rate all members" in lines
    league = League.open(path)
    assert league.settings == LeagueSettings(**settings)
    assert names(league) == members
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    document = commands.json("init", ".", *options)
    assert document == {"league": ".", "anchor": "novice", "tau": 0.5, "members": members, **settings}


def test_add(commands, league, tmp_path, capsys):
    first = commands.json("add", league.path, saved(tmp_path / "one", 1, steps=1234))
    member = league.member(first["name"])
    assert (member.kind, member.age, member.weights_sha256) == ("past", 1234, first["weights_sha256"])
    options = ["--kind", "exploiter", "--name", "rogue", "--parent", member.name]
    lines = commands.lines("add", league.path, saved(tmp_path / "two", 2), *options)
    assert lines[0] == "rogue has joined (exploiter, trained on 100 decisions)."
    assert (league.member("rogue").kind, league.member("rogue").parent) == ("exploiter", member.name)
    assert commands.lines("add", league.path, "idle")[0] == "idle has joined (scripted)."
    other, name = League.create(tmp_path / "other"), f"{league.path}/{member.name}"
    assert commands.json("add", other.path, name)["weights_sha256"] == member.weights_sha256
    assert main(["evaluate", name, "--opponent", "idle", "--battles", "2", "--actions", "deterministic", "--json"]) == 0
    (player,) = json.loads(capsys.readouterr().out)["players"]
    assert (player["name"], player["action_mode"]) == (name, "deterministic")
    assert player["identity"]["weights_sha256"] == member.weights_sha256


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("init {new} --anchor novic", "novic"),
        ("init {new} --tau 9", "tau"),
        ("init {new} --scripted expart", "did you mean 'expert'"),
        ("init {league}", "is not an empty folder"),
        ("add {league} competnt", "did you mean 'competent'"),
        ("add {league} {folder}", "neither a checkpoint"),
        ("add {league} {new}", "no such file or folder"),
        ("add {league} idle --name lazy", "--name: goes with the policy"),
        ("promote {league} novice --k -1", "--k: expected a number of at least 0"),
        ("promote {league} novice --k nan", "--k: expected a number of at least 0"),
        ("promote {league} novice", "'novice' is scripted"),
        ("retire {league} novice", "is the anchor"),
        ("retire {league} expart", "did you mean 'expert'"),
    ],
)
def test_refusals(words, message, commands, league, tmp_path):
    before = league.members()
    given = words.format(league=league.path, new=tmp_path / "new", folder=tmp_path)
    assert message in commands.refusal(*given.split())
    assert league.members() == before and not (tmp_path / "new").exists()


def test_the_first_champion_and_its_successor(commands, league, tmp_path, tiny):
    for seed, name in enumerate(["old", "young"], 1):
        league.add_checkpoint(saved(tmp_path / name, seed), "past", name)
    league.record(played("old", "novice", (*WIN, *LOSS) * 20, 8))
    league.rate_matches()
    assert "'young' has no rating yet" in commands.refusal("promote", league.path, "young")
    document = commands.json("promote", league.path, "old")
    assert (document["promoted"], document["previous"], document["champion"]) == (True, None, "old")
    league.record(played("young", "novice", WIN * 40, 9))
    league.rate_matches()
    battle = ["--scenario", tiny, "--maps", 2]
    lines = commands.lines("promote", league.path, "young", *battle)
    assert lines[0].startswith("'young' is champion: its score of ")
    assert lines[-1] == f"champion: {league.member_policy('young')}"
    document = commands.json("promote", league.path, "young", *battle)
    validation = league.match(document["validation"])
    assert (validation.match.first, validation.match.second) == ("young", "old")
    assert len(validation.match.battles) == 4 and validation.match.scenario == str(tiny)
    maps = {battle.seed for battle in validation.match.battles}
    assert maps.isdisjoint(evaluation_seed(0, index) for index in range(100)), "not on those of rating runs"
    refused = commands.json("promote", league.path, "old", *battle, code=1)
    assert (refused["promoted"], refused["champion"]) == (False, "young")
    assert " is refused: " in commands.lines("promote", league.path, "old", *battle, code=1)[0]


def test_retire(commands, league):
    assert commands.lines("retire", league.path, "expert") == ["expert is retired."]
    assert league.member("expert").state == "retired"
    assert commands.json("retire", league.path, "trivial")["retired"] == ["trivial"]
