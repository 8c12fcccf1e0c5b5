"""Every fault injected into a correct environment is found by the check of its name."""

import itertools
import pickle

import numpy as np
import pytest
from gymnasium.utils import seeding

from echelon_env.testing import ConformanceError, ConformanceWarning, check_parallel_env
from testing import parallel_behaviour_faults, parallel_interface_faults  # noqa: F401  (the first registers its faults)
from testing.arena import LIMIT, Arena
from testing.parallel_interface_faults import Corrupted, break_down, corrupted, first_place

FAULTS = parallel_interface_faults.FAULTS


@pytest.mark.parametrize(("check", "environment"), FAULTS)
def test_an_injected_fault_is_found(check, environment):
    with pytest.raises(ConformanceError, match=rf"^{check}: .*: expected .*, got ") as caught:
        check_parallel_env(environment)
    assert caught.value.check == check


def test_the_correct_environment_passes():
    check_parallel_env(lambda: Arena("ansi"), episodes=3)


def test_the_report_names_check_place_and_values():
    environment = corrupted("Nan", first_place(np.nan))
    with pytest.raises(ConformanceError) as caught:
        check_parallel_env(environment)
    error = pickle.loads(pickle.dumps(caught.value))
    assert str(error).startswith(
        "observations: episode 0, step 3, agent 'walker_2', observation['place'][1]: expected a finite number from "
        "-10.0 to 10.0, got nan (1 of 2 entries are wrong)"
    )
    assert (error.check, error.expected) == ("observations", "a finite number from -10.0 to 10.0")
    assert isinstance(error, AssertionError)


class BothFlags(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        terminations.update(truncations if self.time == LIMIT else {})


class SomeTruncated(Corrupted):
    def corrupt(self, observations, rewards, terminations, truncations, infos):
        dead = dict(terminations)
        terminations.update(dict.fromkeys(dead, False))
        truncations.update({agent: dead[agent] or truncations[agent] for agent in dead})


class OneObservationForAll(Arena):
    def reset(self, seed=None, options=None):
        observations, infos = super().reset(seed)
        return dict.fromkeys(observations, observations["walker_0"]), infos


class Endless(Arena):
    def step(self, actions):
        self.time %= 3
        returned = super().step(actions)
        present = self.agents = list(actions)
        none = dict.fromkeys(present, False)
        return returned[0], returned[1], none, dict(none), returned[4]


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        (BothFlags, "terminated and truncated at once"),
        (SomeTruncated, "truncated while"),
        (OneObservationForAll, "share memory"),
        (Endless, "no episode ended within 15 steps"),
    ],
)
def test_undefined_behaviour_causes_a_warning(environment, words):
    with pytest.warns(ConformanceWarning, match=words):
        check_parallel_env(environment, max_steps=15)


def test_agents_may_join_and_observations_may_have_further_keys():
    class Late(Arena):
        def reset(self, seed=None, options=None):
            super().reset(seed)
            self.agents.remove("jumper_1")
            return {agent: self.observe(agent) for agent in self.agents} | {"common": 1}, self.infos()

        def step(self, actions):
            observations, rewards, terminations, truncations, infos = super().step(actions)
            if self.time == 3:
                self.agents.append("jumper_1")
                observations["jumper_1"], infos["jumper_1"] = self.observe("jumper_1"), self.infos()["jumper_1"]
            return observations, rewards, terminations, truncations, infos | {"common": {}} if infos else {}

    check_parallel_env(Late, copies=["deepcopy"])


def test_options_disable_checks():
    class Chess(Arena):
        """Deterministic, not copyable, with timings in its infos."""

        clock = itertools.count()

        def reset(self, seed=None, options=None):
            return super().reset(3)

        def infos(self, present=None):
            return {agent: info | {"ms": next(self.clock)} for agent, info in super().infos(present).items()}

        def __reduce__(self):
            raise TypeError

    check_parallel_env(Chess, copies=(), seed_matters=False, ignored_infos=["ms"])
    for options, check in (
        ({"copies": ["pickle"]}, "pickle"),
        ({"seed_matters": True}, "other_seed"),
        ({"ignored_infos": ()}, "seed"),
    ):
        with pytest.raises(ConformanceError) as caught:
            check_parallel_env(Chess, **{"copies": (), "seed_matters": False, "ignored_infos": ["ms"]} | options)
        assert caught.value.check == check


def test_an_exception_of_the_environment_is_the_cause_of_the_error():
    with pytest.raises(ConformanceError, match=r"^step: episode 0, step 3: .*got KeyError: 'walker'") as caught:
        check_parallel_env(corrupted("breaks", break_down))
    assert isinstance(caught.value.__cause__, KeyError)


def test_agents_may_differ_between_episodes():
    class RandomAgents(Arena):
        """Two or three of five agents play, drawn for each episode."""

        def reset(self, seed=None, options=None):
            super().reset(seed)
            drawn = self.rng.permutation(5)[: self.rng.integers(2, 4)]
            self.agents = [self.possible_agents[i] for i in sorted(drawn)]
            return {agent: self.observe(agent) for agent in self.agents}, self.infos()

    check_parallel_env(RandomAgents, copies=["deepcopy"])


def test_illegal_actions_may_be_refused():
    class Doors(Arena):
        """One of three moves, shown by the mask only, is illegal in each episode."""

        def reset(self, seed=None, options=None):
            if seed is not None:
                self.doors, _ = seeding.np_random(seed)
            self.shut = int(self.doors.integers(3))
            return super().reset(3)

        def step(self, actions):
            assert all(action[0] != self.shut for agent, action in actions.items() if agent.startswith("jumper"))
            return super().step({agent: np.array([(self.time + 2) % 3, 0]) for agent in actions})

        def infos(self, present=None):
            infos = super().infos(present)
            for info in infos.values():
                if "action_mask" in info:
                    info["action_mask"][0][:] = np.arange(3) != self.shut
            return infos

    check_parallel_env(Doors, copies=["deepcopy"])


@pytest.mark.parametrize(
    ("make", "options", "error", "words"),
    [
        (
            Arena,
            {"copies": ["scan"]},
            ValueError,
            r"copies: expected names among \['deepcopy', 'pickle'\], got \['scan'\]",
        ),
        (Arena, {"episodes": 1}, ValueError, "at least 2 episodes"),
        (itertools.repeat(Arena()).__next__, {}, ValueError, "make_env: expected a new environment on every call"),
        (Arena(), {}, TypeError, "make_env: expected a function that makes environments, got <"),
    ],
)
def test_bad_options(make, options, error, words):
    with pytest.raises(error, match=words):
        check_parallel_env(make, **options)
