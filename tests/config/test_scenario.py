import dataclasses
import json
import re
import tomllib
from pathlib import Path

import numpy as np
import pytest

import echelon_env
from echelon_env import BattleConfig, BattleEngine, ConfigError, load_scenario, make_config, scenarios
from echelon_env.config.scenario import Scenario, Scenarios
from echelon_env.terrain import generate


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="mine.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_file


def test_the_default_configuration_is_the_scenario_battle():
    assert BattleConfig() == make_config("battle") == make_config()


def test_scenarios_go_from_a_first_lesson_to_a_company():
    listed = scenarios()
    assert {"duel", "duel-open", "skirmish", "battle", "company", "company-city"} <= set(listed)
    sizes = [scenario.config.num_mechs for scenario in listed.values()]
    assert sizes == sorted(sizes)
    assert sizes[0] == 2
    assert sizes[-1] == 40
    assert any(len(scenario.config.blue) != len(scenario.config.red) for scenario in listed.values())
    for name, scenario in listed.items():
        assert scenario.name == name
        assert len(scenario.description) > 20
        assert "\n" not in scenario.description
    with pytest.raises(TypeError):
        listed["mine"] = listed["duel"]
    assert len({scenario.config for scenario in listed.values()}) == len(listed)


def test_a_notebook_shows_the_scenarios_as_a_table():
    listed = Scenarios([Scenario("mine", "<b>Two & two</b>", make_config("pair-city")), *scenarios().values()])
    shown = listed._repr_html_()
    assert shown.count("<tr>") == len(listed) + 1
    row = "<tr><td>mine</td><td>2 v 2</td><td>72</td><td>&lt;b&gt;Two &amp; two&lt;/b&gt;</td></tr>"
    assert row in shown


def test_a_file_is_accepted_wherever_a_name_is(write):
    path = write('description = "x"\nblue = ["heavy"]\nred = ["scout", "light"]\nmax_steps = 3\n[terrain]\nsize = 40\n')
    for where in (path, str(path)):
        config = make_config(where)
        assert (config.blue, config.red) == (("heavy",), ("scout", "light"))
        assert (config.max_steps, config.terrain.size) == (3, 40)
    assert make_config(path, max_steps=4).max_steps == 4
    assert load_scenario(path).name == "mine"
    assert echelon_env.parallel_env(path).possible_agents == ["blue_0", "red_0", "red_1"]
    assert echelon_env.BattleEnv(path).config == make_config(path)
    assert echelon_env.BattleVectorEnv(path, 2).config == make_config(path)
    assert BattleEngine(path).config == make_config(path)


def to_toml(value, path=()):
    """A nested dict of plain values as TOML with an array of tables for every list of dicts; None is left out."""
    lines, tables = [], []
    for key, entry in value.items():
        if isinstance(entry, dict):
            tables += [f"[{'.'.join((*path, key))}]", *to_toml(entry, (*path, key))]
        elif isinstance(entry, list) and entry and isinstance(entry[0], dict):
            for one in entry:
                tables += [f"[[{'.'.join((*path, key))}]]", *to_toml(one, (*path, key))]
        elif entry is not None:
            lines.append(f"{key} = {json.dumps(entry)}")
    return lines + tables


def test_a_file_may_contain_a_complete_configuration(write):
    config = make_config("hunt", banned_weapons=["gauss"])
    lines = to_toml({"description": "x", **config.to_dict()})
    assert make_config(write("\n".join(lines))) == config
    wrong = lines.index('name = "heavy"')
    lines[wrong + 3] = "lenght = 3.0"
    with pytest.raises(ConfigError, match=rf"mine\.toml:{wrong + 4}: unknown config key 'catalog.mech_classes\[3\]"):
        make_config(write("\n".join(lines)))


@pytest.mark.parametrize("text", ["\ufeff{}", "# \u2028 \x85\n{}"])
def test_files_of_other_editors(write, text):
    path = write("")
    path.write_bytes(text.format('description = "x\u2028y"\r\nmax_steps = 3\r\nred = ["medim"]').encode())
    line = 3 + text.count("# ")
    with pytest.raises(ConfigError, match=f":{line}: config key 'red'"):
        make_config(path)


WRONG = [
    ('description = "x"\n[[catalog.weapons]]\nname = "laser"\n', 2, "'catalog.weapons[0]': keys are missing: flight"),
    ('description = "x"\nblue = ["heavy"\nred = 3\n', 3, "Unclosed array"),
    ('description = "x"\n\nmax_step = 3\n', 3, "unknown config key 'max_step'; did you mean 'max_steps'"),
    ('description = "x"\n[terrain]\n# how large\nsize = 9\n', 4, "'terrain.size': expected a number from 24"),
    ('description = "x"\n[terain]\nsize = 50\n', 2, "unknown config key 'terain'; did you mean 'terrain'"),
    ('description = "x"\nred = ["scout"]\nblue = [\n  "heavy",\n  "hevy",\n]\n', 3, "unknown mech class 'hevy'"),
    ('description = "x"\n[zone]\nmin_radius = 9.0\n', 3, "zone.max_radius 8.0 is less than zone.min_radius 9.0"),
    ('description = "x"\n[terrain]\nmax_spawn_distance = 5.0\n', 3, "leave no room for the zone"),
    ('description = "x"\n[catalog.weapons.laser]\ndamage = -1\n', 3, "'catalog.weapons.laser.damage'"),
    ("max_steps = 3\n", 1, "description: expected a text about the scenario, got None"),
    ("max_steps 3\n", 1, "Expected '='"),
]


@pytest.mark.parametrize(("text", "line", "message"), WRONG)
def test_errors_name_the_file_and_the_line(write, text, line, message):
    path = write(text)
    with pytest.raises(ConfigError, match=f"^{re.escape(f'{path}:{line}: ')}.*{re.escape(message)}"):
        make_config(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"absent\.toml: No such file"):
        make_config("absent.toml")
    with pytest.raises(ConfigError, match="directory"):
        make_config(tmp_path)
    with pytest.raises(ConfigError, match="/dev/zero: not a regular file"):
        make_config(Path("/dev/zero"))  # it never ends
    with pytest.raises(ConfigError, match="expected a path without NUL"):
        make_config("a\0.toml")
    path = tmp_path / "bytes.toml"
    path.write_bytes(b"description = '\xff'")
    with pytest.raises(ConfigError, match=r"bytes\.toml: is not UTF-8 text"):
        make_config(path)


HOSTILE = [
    ("max_steps = " + "1" * 5_000, "an integer has thousands of digits"),
    ("blue = " + "[" * 3_000 + "]" * 3_000, "nested too deeply"),
    ("blue = " + "{a=" * 3_000 + "1" + "}" * 3_000, "nested too deeply"),
    (".".join(["a"] * 500_000) + " = 1", "a key has more than 32 parts"),
    ("x = {" + ".".join(['"a"'] * 200_000) + " = 1}", "a key has more than 32 parts"),
    ("[" + " . ".join(["a"] * 100_000) + "]", "a key has more than 32 parts"),
    ("#" * 1_100_000, "larger than 1,048,576 bytes"),
    ("x" * 900_000 + "=1", "unknown config key"),
    ('x = "' + "a" * 900_000, "Illegal character|Unterminated|Expected"),
]


@pytest.mark.parametrize(("text", "message"), HOSTILE, ids=[message for _, message in HOSTILE])
def test_a_file_that_would_take_long_or_much_memory_is_refused(write, text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        make_config(write('description = "x"\n' + text))
    assert len(str(caught.value)) < 5_000


def test_the_line_of_an_error_in_a_long_file_is_found_in_linear_time(write):
    """It would take minutes if every line were parsed with all lines before it."""
    array = "blue = [\n" + '  "heavy",\n' * 30_000 + "]\n"
    path = write('description = "x"\n' + array + "# a comment\n" * 30_000 + "[terrain]\nsise = 3\n")
    with pytest.raises(ConfigError, match=r"mine\.toml:60005: unknown config key 'terrain\.sise'"):
        make_config(path)


@pytest.mark.parametrize(
    "text",
    [
        "blue = [ # ]\n" + '"heavy", "heavy",' * 600 + "\n" + '"heavy",\n' * 1_200 + "]\n[terrain]\nsise = 3\n",
        "a." * 20_000 + "b = 1",
        '"\\"".' * 20_000 + "b = 1",
    ],
    ids=["a bracket in a comment", "a long key", "a long key in quotes"],
)
def test_a_file_that_is_slow_to_parse_is_read_in_linear_time(write, monkeypatch, text):
    parsed = []
    stock = tomllib.loads
    monkeypatch.setattr(tomllib, "loads", lambda text: parsed.append(len(text)) or stock(text))
    with pytest.raises(ConfigError):
        make_config(write('description = "x"\n' + text))
    assert sum(parsed) < 20 * (len(text) + 1000)


def test_banned_weapons_are_on_no_mount():
    allowed = make_config("skirmish", banned_weapons=("missiles", "gauss", "smoke"))
    heavy = next(mech_class for mech_class in allowed.mech_classes if mech_class.name == "heavy")
    assert (heavy.primary, heavy.secondary, heavy.tertiary, heavy.special) == ("laser", None, None, None)
    assert allowed.catalog == BattleConfig().catalog


@pytest.mark.parametrize("distance", [30.0, 45.5, 80.0])
@pytest.mark.parametrize("mirrored", [False, True])
def test_spawn_distance(distance, mirrored):
    config = make_config("duel", terrain={"max_spawn_distance": distance, "mirrored": mirrored})
    for seed in range(3):
        terrain = generate(config, seed)
        first, second = terrain.spawns.mean(axis=1)
        assert np.hypot(*(first - second)) == pytest.approx(distance)
        np.testing.assert_allclose(first + second, config.terrain.size)
    corners = make_config("skirmish", terrain={"mirrored": mirrored})
    far = dataclasses.replace(corners, terrain=dataclasses.replace(corners.terrain, max_spawn_distance=500.0))
    assert np.array_equal(generate(corners, 1).spawns, generate(far, 1).spawns)
