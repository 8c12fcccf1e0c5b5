import re

import numpy as np
import pytest

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import BLUE, ZONE_CONTROL, State
from echelon_env.render import render_ansi
from render.pictures import add_cloud

HEADER_LINES = 3


def visible(text: str) -> list[str]:
    """The lines without their colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).split("\n")


@pytest.mark.parametrize("width", [40, 80, 120])
def test_lines_fit_the_width(config: BattleConfig, state: State, width: int) -> None:
    lines = visible(render_ansi(config, state, width=width))
    assert max(map(len, lines)) == width
    assert [len(line) for line in lines[HEADER_LINES : HEADER_LINES + width // 2]] == [width] * (width // 2)


def test_map_has_north_on_top(config: BattleConfig, state: State) -> None:
    lines = visible(render_ansi(config, state))[HEADER_LINES:]
    assert "H→" in lines[35]  # y 6 of 50 m in 40 rows
    assert lines[35].index("H") == int(6 * 80 / 50)
    assert "H←" in lines[4]
    assert [row for row, line in enumerate(lines[:40]) if "#" in line] == [3, 4, 5]  # the wall, y 42 to 46
    assert "#" * 9 in lines[5]
    assert "::::" in lines[20]


def test_shutdown_and_dead_mechs_have_their_symbols(config: BattleConfig, state: State) -> None:
    state.mechs[0, 0]["shutdown"] = 1
    state.mechs[0, 1]["alive"] = 0
    line = visible(render_ansi(config, state))[HEADER_LINES + 35]
    assert re.findall(r"[A-Za-z]", line) == ["h", "x", "M", "L", "S"]


def test_fallen_mech_has_no_arrow(config: BattleConfig, state: State) -> None:
    state.mechs[0, 0]["fallen"] = 3
    line = visible(render_ansi(config, state))[HEADER_LINES + 35]
    assert re.findall(r"[A-Z].", line) == ["H_", "M→", "M→", "L→", "S→"]


def test_smoke_is_a_disc_of_light_ground(config: BattleConfig, state: State) -> None:
    add_cloud(state, 25, 12)
    map_rows = visible(render_ansi(config, state))[HEADER_LINES : HEADER_LINES + 40]
    smoky = [(row, line.count("░")) for row, line in enumerate(map_rows) if "░" in line]
    assert [row for row, _ in smoky] == list(range(27, 34))  # y 8 to 16 of 50 m in 40 rows
    assert max(count for _, count in smoky) == pytest.approx(8 / 50 * 80, abs=1)
    assert smoky[0][1] < smoky[3][1] > smoky[-1][1]


def test_mech_in_smoke_keeps_its_letter(config: BattleConfig, state: State) -> None:
    add_cloud(state, 6, 6)
    assert "H→" in visible(render_ansi(config, state))[HEADER_LINES + 35]


@pytest.mark.parametrize(("yaw", "arrow"), [(np.pi / 2, "↑"), (-np.pi / 4, "↘"), (-np.pi, "←"), (3.1, "←")])
def test_arrow_points_where_the_mech_faces(config: BattleConfig, state: State, yaw: float, arrow: str) -> None:
    state.mechs["yaw"] = yaw
    assert f"H{arrow}" in visible(render_ansi(config, state))[HEADER_LINES + 35]


def test_zone_takes_the_colour_of_its_holder(config: BattleConfig, state: State) -> None:
    empty = render_ansi(config, state)
    state.teams["tonnage"] = 55.0, 20.0
    assert render_ansi(config, state) == empty
    state.teams["tonnage"] = 55.0, 0.0
    assert render_ansi(config, state) != empty
    assert visible(render_ansi(config, state)) == visible(empty)


def test_scores_outcome_and_legend_are_written(config: BattleConfig, state: State) -> None:
    state.battles["step_count"] = 100
    state.teams["score"] = 45.0, 12.3
    state.teams["mechs_alive"] = 5, 4
    state.battles["over"], state.battles["winner"], state.battles["reason"] = 1, BLUE, ZONE_CONTROL
    text = visible(render_ansi(config, state))
    assert text[0] == "time 25.0 / 120 s  BLUE WINS by zone control"
    assert re.fullmatch(r"blue  ?█+  45\.0 / 45 s   5/5 mechs", text[1])
    assert re.fullmatch(r"red  █+-+  12\.3 / 45 s   4/5 mechs", text[2])
    legend = " ".join(text[HEADER_LINES + 40 :])
    for entry in ("S scout", "L light", "M medium", "H heavy", "x death", "_ fallen", ": zone", "░ smoke"):
        assert entry in legend
    for entry in ("# concrete", '" foliage', "~ water", "% lava", ", debris", "& wreck"):
        assert entry in legend


def test_colours_end_with_every_line(config: BattleConfig, state: State) -> None:
    assert all(line.endswith("\x1b[0m") for line in render_ansi(config, state).split("\n"))


def test_bad_arguments_are_refused(config: BattleConfig, state: State) -> None:
    with pytest.raises(ValueError, match="width: expected at least 40, got 39"):
        render_ansi(config, state, width=39)
    with pytest.raises(IndexError, match="battle: expected 0 to 1, got 2"):
        render_ansi(config, state, 2)
