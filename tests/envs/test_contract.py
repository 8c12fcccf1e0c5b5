"""What the checkers of PettingZoo and Gymnasium leave out: memory, repetition, copies and every autoreset mode."""

import copy

import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from echelon_env import BattleBatchEnv, BattleEnv, BattleParallelEnv, BattleVectorEnv, parallel_env
from echelon_env.engine.state import BODY
from support.contract import check_memory, check_parallel, overwrite
from support.environments import FORMATS

OF_BATCHES = [("pilot", FORMATS[0]), ("team", FORMATS[1]), ("team", FORMATS[3]), ("pilot", FORMATS[5])]
SEEDS = (3, [5, None, 4])


@pytest.mark.parametrize("formats", FORMATS, ids=str)
def test_parallel_formats(formats):
    check_parallel(lambda: parallel_env("duel", max_steps=6, maps=2, events=True, render_mode="ansi", **formats))


@pytest.mark.parametrize("dead_agents", ["terminate", "persist"])
def test_a_parallel_battle_with_a_death(dead_agents):
    results = check_parallel(lambda: Mortal("trio", max_steps=12, maps=2, dead_agents=dead_agents))
    assert ("blue_1" in results[4][-2]) == (dead_agents == "persist")
    assert [results[step][-3]["blue_1"]["alive"] for step in (2, 3)] == [True, False]


class Mortal(BattleParallelEnv):
    """One in whose third decision blue_1 dies, if a mech fires."""

    def step(self, actions):
        if self.engine.state.battles["step_count"][0] == 2:
            self.engine.state.pending[0, 1, BODY] = 1e9
        return super().step(actions)


@pytest.mark.parametrize(("control", "formats"), OF_BATCHES, ids=str)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_batch_equals_gymnasiums_batch_of_single_environments(mode, control, formats):
    """Observations, rewards, flags and infos with their masks, where episodes end by and by, and seeds are lists."""
    options = {"scenario": "trio", "control": control, "max_steps": 6, "maps": 2, "events": True, **formats}
    envs = BattleVectorEnv(**options, num_envs=3, autoreset_mode=mode)
    singles = SyncVectorEnv([lambda: BattleEnv(**options)] * 3, autoreset_mode=mode)
    assert (envs.metadata["autoreset_mode"], envs.num_envs) == (mode, 3)
    assert (envs.observation_space, envs.action_space) == (singles.observation_space, singles.action_space)
    envs.action_space.seed(0)

    def call(method, **arguments):
        given = copy.deepcopy(arguments)
        got, expected = getattr(envs, method)(**given), getattr(singles, method)(**copy.deepcopy(arguments))
        assert data_equivalence(got[:-1], expected[:-1], exact=True), (method, arguments)
        assert got[-1].keys() == expected[-1].keys()
        assert data_equivalence(*(without_excluded(each[-1]) for each in (got, expected)), exact=True), arguments
        assert data_equivalence(given, arguments, exact=True) and envs.observation_space.contains(got[0])
        return got

    for seed in SEEDS:
        results = [call("reset", seed=seed)]
        kept = copy.deepcopy(results)
        end_soon(envs, singles)
        ends = 0
        for step in range(13):  # then the first one is to be reset in the next step
            results.append(call("step", actions=envs.action_space.sample()))
            kept.append(copy.deepcopy(results[-1]))
            done = results[-1][2] | results[-1][3]
            ends += done.sum()
            if mode == AutoresetMode.DISABLED and (done.any() or step == 3):
                mask = done | [False, False, step == 3]  # the third one is in the middle of its episode
                results.append(call("reset", seed=[None, None, step], options={"reset_mask": mask}))
                kept.append(copy.deepcopy(results[-1]))
            if seed == SEEDS[1]:
                overwrite(results[-1])
        assert ends >= 6 and (done[0] or mode != AutoresetMode.NEXT_STEP)
        if seed == SEEDS[0]:
            check_memory(results, kept)
    for each in (envs, envs, BattleVectorEnv(**options)):
        each.close()


def without_excluded(infos):
    """Infos without the entries that their masks exclude."""
    masks = {key: value for key, value in infos.items() if key.startswith("_")}
    return masks | {
        key: without_excluded(value) if isinstance(value, dict) else value[masks[f"_{key}"]]
        for key, value in infos.items()
        if key not in masks
    }


def end_soon(envs, singles):
    """Let battle 1 start three decisions before battle 0, and let battle 2 end in the next one."""
    for b, single in enumerate(singles.envs):
        for engine, row in ((envs.engine, b), (single.unwrapped.engine, 0)):
            engine.state.battles["step_count"][row] = 3 * (b == 1)
            if b == 2:
                engine.state.mechs["alive"][row, 3:] = 0
                engine.state.teams["mechs_alive"][row, 1] = 0


@pytest.mark.parametrize("make", [parallel_env, BattleEnv, BattleVectorEnv, BattleBatchEnv])
def test_other_seeds_and_later_episodes_give_other_battles(make):
    env = make("duel")
    first, other, following = (env.reset(seed=seed)[0] for seed in (0, 1, None))
    assert not any(data_equivalence(one, another) for one, another in [(first, other), (other, following)])
