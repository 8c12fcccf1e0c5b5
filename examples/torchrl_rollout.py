"""TorchRL: a rollout of a battle in which mechs die, with masks of living agents and of possible choices.

TorchRL's wrapper stores infos as tensors, and passes actions for dead agents too; `NumericInfos` handles both. The
important arguments are ``use_mask=True`` (dead agents keep their rows, with zeros and a mask of False) and
``done_on_any=False`` (the battle continues when a mech dies).
"""

import argparse

from torchrl.envs import PettingZooWrapper

import echelon_env
from echelon_env.interop import NumericInfos


def make(scenario: str, **options) -> PettingZooWrapper:
    """A battle for TorchRL, with the teams as groups."""
    env = NumericInfos(echelon_env.parallel_env(scenario, **options))
    teams = {team: [agent for agent in env.possible_agents if agent.startswith(team)] for team in ("blue", "red")}
    return PettingZooWrapper(env, group_map=teams, use_mask=True, done_on_any=False, categorical_actions=True)


def main() -> None:
    """Play one battle with random possible actions and print how long each mech lived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", default="skirmish-open")
    parser.add_argument("--decisions", type=int, default=480)
    arguments = parser.parse_args()

    env = make(arguments.scenario, action="multi_discrete", max_steps=arguments.decisions)
    env.set_seed(0)
    battle = env.rollout(arguments.decisions)
    print(battle)
    for team in env.group_map:
        lived = battle[team, "mask"].sum(dim=0).tolist()
        print(
            f"{team}: rewards {battle['next', team, 'reward'].sum(dim=0).squeeze(-1).tolist()}, decisions lived {lived}"
        )
    env.close()


if __name__ == "__main__":
    main()
