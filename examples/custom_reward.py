"""Custom rewards: other weights of the built-in components, and a wrapper that computes new ones."""

import argparse

import gymnasium

import echelon_env

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--decisions", type=int, default=240, help="decisions after which the battle is truncated")
arguments = parser.parse_args()

# 1. Weights. Set any field of RewardConfig; the others keep their defaults. team_spirit shares every component with
#    the team: 0 for the individual value, 1 for the team's mean.
weighted = echelon_env.parallel_env(
    "skirmish", rewards={"zone": 1.0, "kill": 0.0, "overheat": -0.5, "team_spirit": 0.3}, max_cycles=arguments.decisions
)
weighted.reset(seed=1)
_, rewards, _, _, infos = weighted.step({agent: weighted.action_space(agent).sample() for agent in weighted.agents})
print("the components are", weighted.metadata["reward_components"])
print("they sum to the reward exactly:", float(sum(infos["blue_0"]["reward_components"])) == rewards["blue_0"])
weighted.close()


# 2. A wrapper. Infos hold the reward's components and the teams' scores, so a wrapper can compute any reward from them:
#    here the change of the lead in the zone, and the outcome.
OUTCOME = weighted.metadata["reward_components"].index("outcome")


class ZoneLead(gymnasium.Wrapper):
    """Rewards the increase of the own lead in zone seconds, and the outcome."""

    def reset(self, *, seed=None, options=None):
        """Start a battle."""
        observation, info = self.env.reset(seed=seed, options=options)
        self.lead = info["own_score"] - info["enemy_score"]
        return observation, info

    def step(self, action):
        """Take a decision."""
        observation, _, terminated, truncated, info = self.env.step(action)
        before, self.lead = self.lead, info["own_score"] - info["enemy_score"]
        reward = self.lead - before + float(info["reward_components"][OUTCOME])
        return observation, reward, terminated, truncated, info


env = ZoneLead(gymnasium.make("echelon/Duel-v1", control="team", opponent="novice", max_cycles=arguments.decisions))
env.action_space.seed(0)
env.reset(seed=2)
total, done = 0.0, False
while not done:
    _, reward, terminated, truncated, info = env.step(env.action_space.sample())
    total += reward
    done = terminated or truncated
print(f"return with the wrapper {total:.2f}; without it {info['episode_statistics'][0]:.2f}")
env.close()
