import numpy as np
import pytest
from numpy.typing import NDArray

from echelon_env.config.battle import BattleConfig
from echelon_env.engine.state import BLUE, HIT, IMPACT, INTERCEPTION, PAINT, RED, SHOT, State
from echelon_env.render.canvas import FIRE, FLASH, LIGHT
from echelon_env.render.effects import BEAMS, INTERCEPTOR, PAINT_BEAM
from echelon_env.render.palette import TEAMS
from echelon_env.render.projectiles import SLUG, TRACER
from echelon_env.render.smoke import FADING
from render.pictures import PIXELS, add_cloud, add_event, add_projectile, changes, count, map_of, window


def beam_picture(config: BattleConfig, state: State, weapon: str, shooter: int = 2) -> NDArray[np.uint8]:
    """A shooter at (33, 20) hits what is 4 m to the east."""
    mech, index = state.mechs[0, shooter], config.catalog.weapon_index(weapon)
    mech["x"], mech["y"], mech["yaw"] = 33.0, 20.0, np.pi / 2
    add_event(state, kind=SHOT, actor=shooter, target=5, weapon=index, x=33, y=20)
    add_event(state, kind=HIT, actor=shooter, target=5, weapon=index, x=37, y=20, dx=1, dy=0)
    return map_of(config, state)


@pytest.mark.parametrize(("shooter", "team"), [(2, BLUE), (7, RED)])
def test_laser_is_a_beam_from_the_shooter_to_the_hit(
    config: BattleConfig, state: State, shooter: int, team: int
) -> None:
    picture = beam_picture(config, state, "laser", shooter)
    assert count(window(picture, 35.2, 20, 0.5), BEAMS[team], 75) >= 10
    assert count(window(picture, 37, 20, 0.3), LIGHT, 40) >= 4
    assert count(window(picture, 38.5, 20, 0.5), BEAMS[team], 75) == 0


def test_flamer_is_a_cone_of_fire(config: BattleConfig, state: State) -> None:
    plain = map_of(config, state)
    picture = beam_picture(config, state, "flamer", 3)
    near, far = (changes(window(plain, x, 20, 0.1), window(picture, x, 20, 0.1))[2] for x in (34.4, 36.5))
    assert near > 0 < far
    flight = window(picture, 35.5, 20, 1.3)
    burning = [count(flight[:, [column]], FIRE, 110) for column in (2, len(flight) - 3)]
    assert 0 < burning[0] < burning[1]
    assert count(window(picture, 35.2, 20, 0.5), BEAMS[BLUE], 75) == 0


def test_painter_is_a_dotted_line(config: BattleConfig, state: State) -> None:
    picture = beam_picture(config, state, "painter")
    along = picture[PIXELS - round(20 * PIXELS / 50), round(34.5 * PIXELS / 50) : round(36.9 * PIXELS / 50)]
    green = (np.abs(along.astype(int) - PAINT_BEAM).max(axis=-1) < 70).astype(int)
    assert (np.diff(green) > 0).sum() >= 2  # dots with gaps between
    assert count(picture, FLASH, 30) == 0  # it does no harm


def test_paint_event_alone_draws_nothing(config: BattleConfig, state: State) -> None:
    plain = map_of(config, state)
    add_event(state, kind=PAINT, actor=2, target=5, x=40, y=20)
    assert np.array_equal(map_of(config, state), plain)


def test_autocannon_shows_tracers_and_impacts(config: BattleConfig, state: State) -> None:
    autocannon = config.catalog.weapon_index("autocannon")
    plain = map_of(config, state)
    flying = state.projectiles[0, 0]
    flying["x"], flying["y"], flying["vx"], flying["weapon"] = 40.0, 30.0, 25.0, autocannon
    assert np.array_equal(map_of(config, state), plain)  # not in flight
    state.battles["num_projectiles"] = 1
    add_event(state, kind=IMPACT, actor=2, weapon=autocannon, x=40, y=15)
    add_event(state, kind=HIT, actor=2, target=5, weapon=autocannon, x=45, y=20, dx=0, dy=1, amount=8)
    picture = map_of(config, state)
    assert count(window(picture, 39.3, 30, 0.4), TRACER) >= 8
    assert count(window(picture, 41, 30, 0.4), TRACER) == 0
    assert count(window(picture, 40, 15, 0.3), LIGHT, 40) >= 4
    assert count(window(picture, 45, 19.2, 0.4), TRACER) >= 8


def test_gauss_slug_is_longer_than_a_tracer_and_of_another_colour(config: BattleConfig, state: State) -> None:
    gauss = config.catalog.weapon_index("gauss")
    add_projectile(state, x=40.0, y=30.0, vx=40.0, weapon=gauss)
    picture = map_of(config, state)
    assert count(window(picture, 37, 30, 0.4), SLUG, 30) >= 8
    assert count(picture, TRACER) == 0


@pytest.mark.parametrize(("owner", "team"), [(0, BLUE), (5, RED)])
def test_missile_is_a_dart_of_its_team_with_a_trail(config: BattleConfig, state: State, owner: int, team: int) -> None:
    plain = map_of(config, state)
    add_projectile(state, x=40.0, y=30.0, vx=12.0, weapon=config.catalog.weapon_index("missiles"), owner=owner)
    picture = map_of(config, state)
    assert count(window(picture, 40, 30, 1), TEAMS[team].colour, 40) >= 10
    left, right, _ = changes(plain, picture)
    assert 34 < left < 36.5 < 40.5 < right < 42  # trail behind, nothing far ahead
    behind, undisturbed = window(picture, 37.5, 30, 0.3), window(plain, 37.5, 30, 0.3)
    assert behind.mean() > undisturbed.mean() + 15


def test_climbing_missile_is_a_ring(config: BattleConfig, state: State) -> None:
    plain = map_of(config, state)
    add_projectile(state, x=40.0, y=30.0, vz=12.0, weapon=config.catalog.weapon_index("missiles"), owner=0)
    picture = map_of(config, state)
    assert count(window(picture, 40, 30, 0.3), TEAMS[BLUE].colour, 30) >= 10
    left, right, _ = changes(plain, picture)
    assert left > 38.5 < right < 41.5


def test_smoke_shell_has_a_trail_but_no_team(config: BattleConfig, state: State) -> None:
    plain = map_of(config, state)
    add_projectile(state, x=40.0, y=30.0, vx=15.0, weapon=config.catalog.weapon_index("smoke"), owner=5)
    left, right, _ = changes(plain, map_of(config, state))
    assert 36.5 < left < 38.5 < 40 < right < 41


def test_smoke_shell_ends_without_a_spark(config: BattleConfig, state: State) -> None:
    plain = map_of(config, state)
    smoke = config.catalog.weapon_index("smoke")
    add_event(state, kind=HIT, actor=2, target=5, weapon=smoke, x=40, y=20, dx=1)
    add_event(state, kind=IMPACT, actor=2, weapon=smoke, x=40, y=20)
    assert np.array_equal(map_of(config, state), plain)


def test_explosion_has_the_radius_of_the_splash(config: BattleConfig, state: State) -> None:
    plain = map_of(config, state)
    add_event(state, kind=IMPACT, actor=0, weapon=config.catalog.weapon_index("missiles"), x=40, y=20)
    picture = map_of(config, state)
    left, right, _ = changes(plain, picture)
    assert left == pytest.approx(37.5, abs=0.2)
    assert right == pytest.approx(42.5, abs=0.2)
    red, green, blue = window(picture, 41.7, 20, 0.3).reshape(-1, 3).mean(axis=0)
    assert red > 1.3 * green > 1.3 * blue


def test_older_explosion_is_fainter(config: BattleConfig, state: State) -> None:
    state.battles["tick"] = 100
    missiles = config.catalog.weapon_index("missiles")
    add_event(state, kind=IMPACT, weapon=missiles, x=30, y=20, tick=96)
    add_event(state, kind=IMPACT, weapon=missiles, x=40, y=20, tick=100)
    picture = map_of(config, state)
    old, new = (window(picture, x, 20, 1)[..., 0].astype(float).mean() for x in (30, 40))
    assert old < new - 20


def test_interception_is_a_burst_with_a_line_to_the_defender(config: BattleConfig, state: State) -> None:
    defender = state.mechs[0, 0]
    defender["x"], defender["y"] = 30.0, 20.0
    add_event(state, kind=INTERCEPTION, actor=0, target=5, weapon=2, x=35, y=20)
    picture = map_of(config, state)
    assert count(window(picture, 35, 20, 1.2), INTERCEPTOR, 20) > 30
    assert count(window(picture, 33, 20, 0.8), INTERCEPTOR, 90) > 4


def test_cloud_is_a_grey_disc_of_its_radius(config: BattleConfig, state: State) -> None:
    plain = map_of(config, state)
    state.clouds[0, 0]["x"], state.clouds[0, 0]["radius"] = 30, 4
    assert np.array_equal(map_of(config, state), plain)  # no such cloud
    add_cloud(state, 30, 12)
    picture = map_of(config, state)
    left, right, share = changes(plain, picture)
    assert left == pytest.approx(26, abs=0.3)
    assert right == pytest.approx(34, abs=0.3)
    assert share == pytest.approx(np.pi * 4**2 / 50**2, rel=0.1)  # a disc, no square
    middle = window(picture, 30, 12, 2).reshape(-1, 3).astype(float)
    assert middle.mean() > window(plain, 30, 12, 2).mean() + 30
    assert np.ptp(middle.mean(axis=0)) < 25


def test_mech_in_smoke_is_legible(config: BattleConfig, state: State) -> None:
    mech = state.mechs[0, 0]
    plain = window(map_of(config, state), mech["x"], mech["y"], 1.5)
    add_cloud(state, mech["x"], mech["y"])
    picture = window(map_of(config, state), mech["x"], mech["y"], 1.5)
    assert not np.array_equal(picture, plain)
    assert count(picture, TEAMS[BLUE].colour, 60) > 0.8 * count(plain, TEAMS[BLUE].colour, 60)
    assert picture.std() > 0.6 * plain.std()


def test_cloud_thins_out_at_its_end(config: BattleConfig, state: State) -> None:
    def brightness(ticks: int) -> float:
        state.battles["num_clouds"] = 0
        add_cloud(state, 30, 12, ticks=ticks)
        return float(window(map_of(config, state), 30, 12, 2).mean())

    lasting = config.ticks(FADING)
    assert brightness(1) < brightness(lasting // 2) < brightness(lasting) == brightness(200)


def test_clouds_on_top_of_each_other_do_not_add_up(config: BattleConfig, state: State) -> None:
    add_cloud(state, 6, 6)
    once = map_of(config, state)
    for _ in range(5):
        add_cloud(state, 6, 6)
    assert np.array_equal(map_of(config, state), once)
