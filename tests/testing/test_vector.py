"""Every fault injected into a correct vector environment is found by the check of its name."""

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from echelon_env.testing import ConformanceError, ConformanceWarning, check_vector_env
from testing.vector_faults import (
    FAULTS,
    NEXT_STEP,
    Batch,
    Drift,
    OneSeedForEver,
    OtherRewards,
)


@pytest.mark.parametrize(("check", "environment", "modes"), FAULTS)
def test_an_injected_fault_is_found(check, environment, modes):
    with pytest.raises(ConformanceError, match=rf"^{check}: .*: expected .*, got ") as caught:
        check_vector_env(environment, Drift, autoreset_modes=modes)
    assert caught.value.check == check


@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_correct_environment_passes(mode):
    check_vector_env(Batch, Drift, autoreset_modes=[mode])


def test_an_environment_with_one_generator_passes():
    def make(num_envs, mode):
        return gymnasium.make_vec("CartPole-v1", num_envs, vectorization_mode="vector_entry_point")

    check_vector_env(make, autoreset_modes=[NEXT_STEP], own_generators=False)
    with pytest.raises(ConformanceError, match=r"^seed_per_env: .*got Error: Seed must be a python integer"):
        check_vector_env(make, autoreset_modes=[NEXT_STEP])


def test_masks_in_nested_infos_may_be_omitted():
    class Unmasked(Batch):
        def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
            for info in (infos, infos.get("final_info", {})):
                info.get("nested", {}).pop("_place", None)

    check_vector_env(Unmasked, Drift)


def test_tolerance_is_for_single_environments():
    check_vector_env(OtherRewards, Drift, tolerance=0.01)
    check_vector_env(OtherRewards)


def test_options_disable_checks():
    class Clocked(OneSeedForEver):
        calls = 0

        def corrupt(self, ended, observations, rewards, terminations, truncations, infos):
            for info in (infos, infos.get("final_info")):
                if info is not None:
                    self.calls += 1
                    info["ms"], info["_ms"] = np.full(self.num_envs, self.calls), np.ones(self.num_envs, bool)

    check_vector_env(Clocked, Drift, seed_matters=False, ignored_infos=["ms"])
    for options, check in (({"seed_matters": True}, "other_seed"), ({"ignored_infos": ()}, "seed")):
        with pytest.raises(ConformanceError) as caught:
            check_vector_env(Clocked, **{"seed_matters": False, "ignored_infos": ["ms"]} | options)
        assert caught.value.check == check


def test_an_exception_of_a_single_environment_is_the_cause_of_the_error():
    class Breaks(Drift):
        def step(self, action):
            if self.time == 2:
                raise ValueError("two")
            return super().step(action)

    with pytest.raises(
        ConformanceError, match=r"^singles: single environment 0, step 2: .*got ValueError: two"
    ) as caught:
        check_vector_env(Batch, Breaks)
    assert isinstance(caught.value.__cause__, ValueError)


def test_episodes_that_do_not_end_cause_a_warning():
    with pytest.warns(ConformanceWarning, match="NEXT_STEP: no episode ended within 2 steps"):
        check_vector_env(Batch, seed=6, max_steps=2, autoreset_modes=[NEXT_STEP])


@pytest.mark.parametrize("options", [{"num_envs": 1}, {"episodes": 0}, {"max_steps": 0}, {"autoreset_modes": []}])
def test_bad_options(options):
    with pytest.raises(ValueError, match="expected at least 2 sub-environments, 1 episode"):
        check_vector_env(Batch, **options)
