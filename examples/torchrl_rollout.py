"""TorchRL: a rollout of a battle in which mechs die, with masks of living agents and of possible choices.

TorchRL's wrapper needs the same numeric infos from every agent at every step, and passes actions for dead agents too;
`ForTorchRL` handles both. The important arguments are ``use_mask=True`` (dead agents keep their rows, with zeros and a
mask of False) and ``done_on_any=False`` (the battle continues when a mech dies).
"""

import argparse

import numpy as np
from pettingzoo.utils import BaseParallelWrapper
from torchrl.envs import PettingZooWrapper

import echelon_env


class ForTorchRL(BaseParallelWrapper):
    """A parallel environment for TorchRL: infos are numbers, and actions of dead agents are dropped.

    Infos keep the action mask as one array, and the entries that are numbers at every step.
    """

    KEPT = ("own_share", "enemy_share", "own_score", "enemy_score")

    def reset(self, seed=None, options=None):
        """Start a battle."""
        observations, infos = self.env.reset(seed=seed, options=options)
        return observations, self.plain(infos)

    def step(self, actions):
        """Take a decision with the actions of living agents."""
        actions = {agent: actions[agent] for agent in self.env.agents}
        *results, infos = self.env.step(actions)
        return *results, self.plain(infos)

    def plain(self, infos):
        """The part of the infos that TorchRL supports."""
        kept = {agent: {key: np.float32(info[key]) for key in self.KEPT} for agent, info in infos.items()}
        for agent, info in infos.items():
            if "action_mask" in info:
                kept[agent]["action_mask"] = np.concatenate(info["action_mask"])
        return kept


def make(scenario: str, **options) -> PettingZooWrapper:
    """A battle for TorchRL, with the teams as groups."""
    env = ForTorchRL(echelon_env.parallel_env(scenario, **options))
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
