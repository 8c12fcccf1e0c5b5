import dataclasses
import json
import re

import pytest

from echelon_env import ConfigError, make_config
from echelon_env.config.toml_file import SUFFIX
from echelon_train.config.files import load_run_config, run_config_names, settings
from echelon_train.config.schedules import Schedule
from echelon_train.config.train import TrainConfig, battle_config, training_curriculum


@pytest.fixture
def write(tmp_path):
    def write_file(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return path

    return write_file


@pytest.mark.parametrize("value", ["nan", "inf", "1e30", "linear:nan:0", "true", "[1]"])
def test_what_is_no_schedule_is_an_error_that_names_the_setting(value):
    with pytest.raises(ConfigError, match=r"config key 'ppo\.learning_rate': expected a number, 'linear:START:END'"):
        load_run_config("duel", {"ppo.learning_rate": value})


def test_a_scenario_is_no_run_config():
    with pytest.raises(ConfigError, match="'duel-open' is a scenario, not a run config: give --scenario duel-open"):
        load_run_config("duel-open")
    with pytest.raises(ConfigError, match="did you mean 'duel'"):
        load_run_config("duell")


def test_shipped_run_configs_are_valid():
    assert {"quickstart", "duel", "skirmish", "battle", "league", "imitate", "exploit"} == set(run_config_names())
    for name in run_config_names():
        config = load_run_config(name)
        assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert len(load_run_config("skirmish").battle.blue) == 5
    assert len(load_run_config("battle").battle.blue) == 10


def test_a_file_sets_battle_network_and_ppo(write):
    path = write(
        'scenario = "skirmish"\nopponent = "trivial"\nsteps = 20_000_000\nbattles = 32\n'
        "[battle]\nmax_steps = 100\n[battle.rewards]\ndeath = -5\n"
        '[network]\nwidth = 64\n[ppo]\nlearning_rate = "linear:7e-4:7e-5"\nclip_range = 0.1\n'
    )
    config = load_run_config(path)
    assert config.battle == make_config(battle_config("skirmish"), max_steps=100, rewards={"death": -5.0})
    assert (str(config.opponent), config.steps, config.battles, config.network.width) == ("trivial", 20_000_000, 32, 64)
    assert config.ppo.learning_rate == Schedule(7e-4, 7e-5, "linear")
    assert config.ppo.clip_range == Schedule.constant(0.1)
    assert load_run_config(str(path)) == config


@pytest.mark.parametrize(
    "text",
    ['curriculum = ["duel-open", "duel"]\n{}', '{}[curriculum]\nscenarios = ["duel-open", "duel"]\npromote = 0.8\n'],
)
def test_changes_of_the_battle_apply_to_all_stages(write, text):
    config = load_run_config(write(text.format("[battle.rewards]\ndeath = -5\n")))
    made = training_curriculum(["duel-open", "duel"], promote=0.8 if "promote" in text else 0.7)
    stages = [dataclasses.replace(s, config=make_config(s.config, rewards={"death": -5.0})) for s in made.scenarios]
    assert config.curriculum == dataclasses.replace(made, scenarios=tuple(stages))
    assert config.battle == stages[0].config


def test_overrides_are_toml_values_or_strings():
    overrides = {
        "steps": "2_000_000",
        "opponent": "trivial",
        "device": '"cpu"',
        "maps": "recipes",
        "ppo.learning_rate": "cosine:1e-3:1e-5",
        "ppo.ent_coef": "0.02",
        "ppo.normalize_returns": "false",
        "network.encoder": "flat",
        "battle.rewards.death": "-5",
        "battle.banned_weapons": '["gauss"]',
    }
    config = load_run_config("quickstart", overrides)
    assert (config.steps, str(config.opponent), config.device, config.maps) == (2_000_000, "trivial", "cpu", "recipes")
    assert config.ppo.learning_rate == Schedule(1e-3, 1e-5, "cosine")
    assert config.ppo.ent_coef == Schedule.constant(0.02)
    assert (config.ppo.normalize_returns, config.network.encoder) == (False, "flat")
    assert (config.battle.rewards.death, config.battle.banned_weapons) == (-5.0, ("gauss",))
    assert load_run_config("quickstart", {"device": "cpu\nsteps = 3"}).device == "cpu\nsteps = 3"


def test_a_scenario_and_a_curriculum_replace_each_other(write):
    staged = load_run_config("quickstart", {"curriculum": '["duel-open", "duel"]', "curriculum.window": "50"})
    assert [each.name for each in staged.curriculum.scenarios] == ["duel-open", "duel"]
    assert staged.curriculum.window == 50
    listed = write('curriculum = ["duel-open", "duel"]')
    assert load_run_config(listed, {"curriculum.promote": "0.9"}).curriculum.promote == 0.9
    plain = load_run_config(listed, {"scenario": "skirmish"})
    assert (plain.curriculum, plain.battle) == (None, battle_config("skirmish"))


def test_several_scenarios_are_those_of_the_processes(write):
    both = write('scenario = ["trio", "duel"]\nbattles = 10\n[battle.rewards]\ndeath = -5\n')
    config = load_run_config(both)
    battles = [make_config(battle_config(name), rewards={"death": -5.0}) for name in ("trio", "duel")]
    assert (config.battle, config.processes) == (battles[0], 2)
    assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    own = [config.of_process(rank) for rank in range(4)]
    assert [each.battle for each in own] == battles * 2 and own[:2] == config.plain_runs()
    assert [(each.battles, each.rows) for each in own] == [(10, 30), (30, 30)] * 2
    assert load_run_config(both, {"processes": "3"}).processes == 3
    assert load_run_config(both, {"scenario": "duel"}).plain_runs() == [load_run_config(both, {"scenario": '["duel"]'})]
    staged = load_run_config(both, {"curriculum": '["duel-open", "duel"]'})
    assert staged.curriculum is not None and not staged.extra_scenarios


def test_own_maps_and_a_number_of_battles_replace_each_other(write, tmp_path):
    file = tmp_path / "maps.txt"
    file.write_text(f"{2**62}\n{2**62 + 1}\n")
    counted = write('scenario = "duel"\neval_battles = 100')
    config = load_run_config(counted, {"eval_seeds": str(file)})
    assert (config.evaluation_battles, config.evaluation_maps) == (4, (2**62, 2**62 + 1))
    assert TrainConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    named = tmp_path / "named.toml"
    named.write_text(f'scenario = "duel"\neval_seeds = "{file}"')
    assert load_run_config(named) == dataclasses.replace(config, eval_battles=50)
    assert load_run_config(named, {"eval_battles": "8"}).evaluation_battles == 8
    with pytest.raises(ConfigError, match="eval_battles, eval_seeds: expected one of them"):
        load_run_config("quickstart", {"eval_seeds": str(file), "eval_battles": "8"})


INVALID = [
    ('scenario = "duel"\nstep = 3\n', 2, "unknown config key 'step'; did you mean 'steps'"),
    (
        'blue = ["medium"]\n',
        1,
        "unknown config key 'blue'; give a scenario file as --scenario FILE, a key of the battle in the table",
    ),
    ('scenario = "duel"\n[ppo]\nratio = "joint"\n', 3, "unknown config key 'ppo.ratio': it no longer exists"),
    ('scenario = "duel"\n[network]\n\nwidth = "wide"\n', 4, "'network.width': expected int, got 'wide'"),
    ('scenario = "duel"\n[battle.rewards]\nkill = 1\ndeth = 1\n', 4, "'rewards.deth'; did you mean 'death'"),
    ("steps = 3\n", 1, "expected a scenario or a curriculum, got neither"),
    ("steps = 3\n[curriculum]\npromote = 0.9\n", 3, "promote: a curriculum needs scenarios"),
    ('\ncurriculum = ["duel", "hnt"]\n', 2, "unknown scenario 'hnt'; did you mean 'hunt'"),
    ('scenario = "duel\n', 1, "Illegal character"),
    ("scenario = []\n", 1, "scenario: expected at least one, got none"),
    ('scenario = ["duel", "hnt"]\n', 1, "unknown scenario 'hnt'; did you mean 'hunt'"),
    ('scenario = ["duel", "trio"]\nprocesses = 1\n', 2, "processes: expected at least 2, one for every scenario, got"),
    ('scenario = ["duel", "ambush"]\n', 1, "scenario ambush: side: teams of"),
    (
        'scenario = ["duel", "battle"]\nbattles = 2\n',
        2,
        "battles: expected more, got 2: the processes have from 2 to 10",
    ),
    ('scenario = ["duel", "trio"]\nmaps = "here"\n', 2, "maps: several scenarios have different maps"),
    ('extra_scenarios = ["duel"]\n', 1, "unknown config key 'extra_scenarios'"),
]


@pytest.mark.parametrize(("text", "line", "message"), INVALID)
def test_errors_name_the_file_and_the_line(write, text, line, message):
    path = write(text)
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{path}:{line}: ')}.*{re.escape(message)}"):
        load_run_config(path)


def test_missing_files(tmp_path):
    with pytest.raises(ConfigError, match="unknown run config 'quikstart'; did you mean 'quickstart'"):
        load_run_config("quikstart")
    with pytest.raises(ConfigError, match=rf"run config .*absent\{SUFFIX}: No such file"):
        load_run_config(tmp_path / "absent.toml")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"steps": "0", "seed": "3"}, "with steps=0: config key 'steps': expected a number from 1"),
        ({"scenario": "dule", "seed": "1"}, "with scenario=dule: scenario: unknown scenario 'dule'"),
        ({"scenario.x": "1"}, "'scenario' is a value, not a table"),
        ({"ppo.chunk": "7"}, "with ppo.chunk=7: ppo.chunk: expected a divisor"),
        ({"ppo.n_steps": "9", "seed": "1"}, "with ppo.n_steps=9, seed=1: ppo.chunk: expected a divisor"),
        ({"battle.dead_agents": "terminate"}, "persist"),
    ],
)
def test_errors_name_the_override(overrides, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        load_run_config("quickstart", overrides)


def test_every_setting_can_be_overridden_by_its_default():
    config = load_run_config("quickstart")
    for setting in settings():
        value = config
        for part in setting.key.split("."):
            value = getattr(value, part)
        if value is None:
            continue
        text = str(value).lower() if isinstance(value, bool) else str(value)
        assert load_run_config("quickstart", {setting.key: text}) == config, setting
