"""Pools of maps: the selection by seed, generation on first use, and invalid input."""

import copy
import dataclasses
import json
import pickle

import gymnasium
import numpy as np
import pytest

import echelon_env
from echelon_env import BattleEngine, BattleEnv, BattleVectorEnv, ConfigError, MapPool, make_config
from echelon_env.engine.maps import MAX_TABLES
from echelon_env.engine.rng import episode_seed
from echelon_env.layout.actions import Action
from echelon_env.terrain import GENERATOR_VERSION, RecipeError, generate

SMALL = make_config("duel", terrain={"size": 48}, max_steps=3)


def voxels(engine, b=0):
    return engine.state.voxels[b].tobytes()


def test_the_map_seed_decides_the_map_and_the_seed_everything_else():
    engine = BattleEngine(SMALL, 3)
    engine.reset([3, 3, 4], map_seeds=[8, 9, 8])
    assert voxels(engine, 0) == voxels(engine, 2) == generate(SMALL, 8).voxels.tobytes()
    assert voxels(engine, 1) == generate(SMALL, 9).voxels.tobytes()
    assert engine.state.battles["seed"].tolist() == [3, 3, 4]


def test_a_seed_selects_a_map_of_the_pool_by_its_hash():
    engine = BattleEngine(SMALL, 2, maps=7)
    pool = engine.maps
    assert len(pool) == len(set(pool.seeds)) == 7
    chosen = set()
    for seed in range(40):
        engine.reset([seed, seed + 100])
        for b, battle_seed in enumerate((seed, seed + 100)):
            number = episode_seed(battle_seed, 1) % 7
            assert number == pool.number_of(battle_seed)
            assert engine.state.battles["map_seed"][b] == pool.seeds[number]
            assert voxels(engine, b) == pool[number].voxels.tobytes()
            chosen.add(number)
    assert chosen == set(range(7))


def fight(engine, steps=80):
    """Play so that voxels are damaged, destroyed and added: all mechs walk and fire, and half of them die early."""
    actions = np.ones((engine.num_battles, engine.num_mechs, engine.action_dim), np.float32)
    actions[..., [Action.STRAFE, Action.TURN, Action.VENT]] = 0
    engine.state.mechs["armour"][:, ::2] = 1e-9
    for _ in range(steps):
        engine.step(actions)


def same_arrays(first, second):
    assert first.observations.tobytes() == second.observations.tobytes()
    for name, array in second.snapshot().items():
        assert first.snapshot()[name].tobytes() == array.tobytes(), name
    for name in ("opaque", "solid", "hazard", "blocks"):
        assert getattr(first.state, name).tobytes() == getattr(second.state, name).tobytes(), name


def test_a_battle_on_a_map_of_a_pool_starts_like_any_other():
    pool = MapPool.generate("skirmish", 2)
    engine = BattleEngine("skirmish", 3, maps=pool)
    for seed in range(0, 15, 3):
        seeds = [seed, seed + 1, seed + 2]
        engine.reset(seeds)
        fresh = BattleEngine("skirmish", 3)
        fresh.reset(seeds, map_seeds=[pool.seeds[pool.number_of(s)] for s in seeds])
        same_arrays(engine, fresh)
        fight(engine)
        assert engine.state.voxel_damage.any()
        assert (engine.state.voxels != fresh.state.voxels).any()
    restored = pickle.loads(pickle.dumps(engine))
    restored.restore(fresh.snapshot())
    for again in (engine, restored):
        again.reset(np.arange(12, 15))
        same_arrays(again, fresh)


def maps_of_episodes(make, episodes, **kwargs):
    """The map seeds of the first episodes of an environment with seed 11."""
    env = make(SMALL, **kwargs)
    infos = [env.reset(seed=11 if episode == 0 else None)[1] for episode in range(episodes)]
    env.close()
    return [int(np.ravel(info["red_0"]["map_seed"] if "red_0" in info else info["map_seed"])[0]) for info in infos]


@pytest.mark.parametrize("api", [echelon_env.parallel_env, BattleEnv, BattleVectorEnv])
def test_every_api_selects_the_same_maps(api):
    expected = [episode_seed(11, k) for k in range(6)]
    assert maps_of_episodes(api, 6) == expected
    assert maps_of_episodes(api, 6, regenerate=3) == [expected[0]] * 3 + [expected[3]] * 3
    pool = MapPool.generate(SMALL, 4)
    assert maps_of_episodes(api, 6, maps=4) == [pool.seeds[pool.number_of(seed)] for seed in expected]
    kept = [pool.seeds[pool.number_of(expected[k])] for k in (0, 0, 2, 2, 4, 4)]
    assert maps_of_episodes(api, 6, maps=pool, regenerate=2) == kept


def test_terrain_returns_the_initial_map():
    engine = BattleEngine(SMALL, 2)
    with pytest.raises(echelon_env.NotResetError, match="battle 0"):
        engine.terrain()
    engine.reset([1, 2])
    snapshot = engine.snapshot()
    engine.reset([3, 4])
    engine.restore(snapshot)
    assert [engine.terrain(b).seed for b in range(2)] == [1, 2]
    assert engine.terrain(1).content_hash == generate(SMALL, 2).content_hash
    with pytest.raises(IndexError, match="expected 0 to 1, got 2"):
        engine.terrain(2)


def test_copies_share_a_pool_and_pickles_generate_it_again():
    pool = MapPool.generate(SMALL, 3)
    first = pool[0]
    assert copy.copy(pool) is copy.deepcopy(pool) is pool
    assert copy.deepcopy(BattleEngine(SMALL, maps=pool)).maps is pool
    other = pickle.loads(pickle.dumps(pool))
    assert len(pickle.dumps(pool)) < 10_000
    assert other[0].content_hash == first.content_hash


@pytest.mark.parametrize("vectorize", [gymnasium.vector.SyncVectorEnv, gymnasium.vector.AsyncVectorEnv])
def test_large_map_seeds_go_through_gymnasiums_vector_environments(vectorize):
    pool = MapPool(SMALL, [2**64 - 1])
    envs = vectorize([lambda: BattleEnv(SMALL, maps=pool)] * 2)
    _, infos = envs.reset()
    assert infos["map_seed"].tolist() == [2**64 - 1] * 2
    envs.close()


def test_engines_with_other_materials_share_a_pool():
    """The pool keeps what is packed of its maps for the latest materials only, read-only."""
    pool, catalog = MapPool.generate(SMALL, 2), SMALL.catalog
    engines = []
    for count in range(MAX_TABLES + 2):
        materials = [
            dataclasses.replace(m, heat=m.heat * count, blocks_sight=m.blocks_sight and count > 0)
            for m in catalog.materials
        ]
        config = make_config(SMALL, catalog=dataclasses.replace(catalog, materials=tuple(materials)))
        engines.append(BattleEngine(config, 8, maps=pool))
        fresh = BattleEngine(config, 8)
        for _ in range(2):
            engines[-1].reset(np.arange(8))
            fresh.reset(np.arange(8), map_seeds=[pool.seeds[pool.number_of(seed)] for seed in range(8)])
            same_arrays(engines[-1], fresh)
    kept = [pool.packed(engine.tables.materials.tobytes(), pool.seeds[0]) for engine in engines]
    assert [each is not None for each in kept] == 2 * [False] + MAX_TABLES * [True]
    with pytest.raises(ValueError, match="read-only"):
        kept[-1]["solid"][0] = 1
    assert pickle.loads(pickle.dumps(pool)).packed(engines[-1].tables.materials.tobytes(), pool.seeds[0]) is None


@pytest.fixture
def recipes(tmp_path):
    """A directory of recipes."""
    for seed in (5, 6, 7):
        (tmp_path / f"{seed}.json").write_text(generate(SMALL, seed).recipe.to_json())
    return tmp_path


def edit(folder, **changes):
    path = folder / "6.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_directory_of_recipes_is_a_pool_for_battles_of_any_rules(recipes):
    pool = MapPool.load(recipes)
    assert pool.seeds == (5, 6, 7)
    engine = BattleEngine(make_config(SMALL, max_steps=9, rewards={"kill": 1.0}), 1, maps=str(recipes))
    engine.reset([1])
    assert voxels(engine) == generate(SMALL, pool.seeds[pool.number_of(1)]).voxels.tobytes()


def test_nothing_is_reset_if_a_map_does_not_match_its_recipe(recipes):
    edit(recipes, content_hash="0" * 64)
    engine = BattleEngine(SMALL, 2, 2, maps=recipes)
    chosen = {engine.maps.number_of(seed): seed for seed in range(20)}
    engine.reset([chosen[0]] * 2)
    before = engine.snapshot()
    with pytest.raises(RecipeError, match=r"seed 6: .* expected 0000"):
        engine.reset([chosen[0] + 2**40, chosen[1]])
    after = engine.snapshot()
    assert all(np.array_equal(before[name], after[name]) for name in before)
    engine.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda folder: edit(folder, generator=GENERATOR_VERSION + 1), r"6\.json: .*of the generator"),
        (
            lambda folder: edit(folder, config=make_config("duel").map_config.to_dict()),
            r"are of different battles: terrain\.size: expected 48, got 100",
        ),
        (lambda folder: edit(folder, seed=5), r"6\.json and .*5\.json are of the same map"),
        (lambda folder: (folder / "6.json").write_text("{"), r"6\.json: recipe: not JSON"),
        (lambda folder: (folder / "6.json").write_bytes(b"\xff\xfe"), r"6\.json"),
        (lambda folder: (folder / "6.json").write_bytes(b" " * 1_000_001), r"6\.json: larger than 1,000,000 bytes"),
    ],
)
def test_invalid_directories_of_recipes(recipes, change, message):
    change(recipes)
    with pytest.raises(ConfigError, match=message):
        MapPool.load(recipes)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        *(
            (lambda maps=maps: BattleEngine(SMALL, maps=maps), message)
            for maps, message in (
                (0, "maps: expected an integer of at least 1, got 0"),
                (True, "maps: expected an integer of at least 1"),
                (10**9, "maps: expected 1 to 1000000 maps, got 1000000000"),
                ("/does/not/exist", r"maps: no recipes \(\*.json\) in '/does/not/exist'"),
                (MapPool("duel", [1]), r"maps are not for this battle: terrain.size: expected 48, got 100"),
                (MapPool(make_config(SMALL, blue=["medium"] * 2), [1]), "places: expected 1, got 2"),
            )
        ),
        (lambda: MapPool("duel", 5), r"expected a sequence of seeds, got 5; MapPool\.generate takes a number"),
        (lambda: MapPool("duel", []), "expected 1 to 1000000 maps, got 0"),
        (lambda: MapPool("duel", [1, 1]), "different seeds"),
        (lambda: MapPool("duel", [-1]), "seed: expected an integer"),
        (lambda: BattleEnv("duel", regenerate=0), "regenerate: expected an integer of at least 1, got 0"),
    ],
)
def test_invalid_pools(make, message):
    with pytest.raises(ValueError, match=message):
        make()
