"""PPO with TorchRL: a team of mechs shares a policy and a central critic (MAPPO), with masks, against a scripted level.

All battles are one environment of batch size B, see `echelon_env.interop.torchrl.TorchRLEnv`.
"""

import argparse

import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torch import nn
from torchrl.collectors import Collector
from torchrl.modules import MaskedCategorical, ProbabilisticActor
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

from echelon_env.interop.torchrl import TorchRLEnv

GAMMA, LAMBDA, EPOCHS, MINIBATCH = 0.99, 0.95, 3, 512
GROUP = "blue"


def mlp(inputs: int, outputs: int, gain: float) -> nn.Module:
    """A network of two hidden layers."""
    last = nn.Linear(256, outputs)
    nn.init.orthogonal_(last.weight, gain)
    return nn.Sequential(nn.Linear(inputs, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), last)


class Critic(nn.Module):
    """The value of each mech, from its observation and the global state."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.network = mlp(inputs, 1, 1.0)

    def forward(self, observations: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Values (..., n, 1) of observations (..., n, D) and a state (..., S)."""
        states = state.unsqueeze(-2).expand(*observations.shape[:-1], -1)
        return self.network(torch.cat([observations, states], -1))


def make_networks(env: TorchRLEnv) -> tuple[ProbabilisticActor, TensorDictModule]:
    """The mechs' shared actor and their critic."""
    seen = env.observation_spec
    features, choices = (seen[GROUP, name].shape[-1] for name in ("observation", "action_mask"))
    logits = TensorDictModule(mlp(features, choices, 0.01), [(GROUP, "observation")], [(GROUP, "logits")])
    actor = ProbabilisticActor(
        logits, in_keys={"logits": (GROUP, "logits"), "mask": (GROUP, "action_mask")}, out_keys=[(GROUP, "action")],
        distribution_class=MaskedCategorical, return_log_prob=True, log_prob_key=(GROUP, "log_prob"),
    )  # fmt: skip
    critic = Critic(features + seen["state"].shape[-1])
    return actor, TensorDictModule(critic, [(GROUP, "observation"), "state"], [(GROUP, "state_value")])


def per_mech(battles: TensorDict) -> TensorDict:
    """A rollout with the battles' ends for each mech of the group."""
    shape = battles["next", GROUP, "reward"].shape
    for name in ("done", "terminated"):
        battles["next", GROUP, name] = battles["next", name].unsqueeze(-2).expand(shape)
    return battles


def main() -> None:
    """Train, and print the win rate of the last battles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", default="skirmish-open")
    parser.add_argument("--opponent", default="novice")
    parser.add_argument("--battles", type=int, default=64)
    parser.add_argument("--rollout", type=int, default=64, help="decisions between updates")
    parser.add_argument("--updates", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # networks of this size get slower with more threads
    torch.manual_seed(arguments.seed)
    env = TorchRLEnv(
        arguments.scenario, arguments.battles, opponent=arguments.opponent, action="discrete", maps=200,
        seed=arguments.seed,
    )  # fmt: skip
    actor, critic = make_networks(env)
    loss = ClipPPOLoss(actor, critic, clip_epsilon=0.2, entropy_coeff=0.01, critic_coeff=0.5, loss_critic_type="l2")
    keys = {"reward": (GROUP, "reward"), "done": (GROUP, "done"), "terminated": (GROUP, "terminated")}
    value = {"value": (GROUP, "state_value")}
    advantage = {"advantage": (GROUP, "advantage"), "value_target": (GROUP, "value_target")}
    loss.set_keys(action=(GROUP, "action"), sample_log_prob=(GROUP, "log_prob"), **keys, **value, **advantage)
    gae = GAE(gamma=GAMMA, lmbda=LAMBDA, value_network=critic)
    gae.set_keys(**keys, **value, **advantage)
    optimizer, won = torch.optim.Adam(loss.parameters(), lr=3e-4), []

    frames = arguments.battles * arguments.rollout
    collector = Collector(env, actor, frames_per_batch=frames, total_frames=frames * arguments.updates)
    for update, battles in enumerate(collector, 1):
        with torch.no_grad():
            gae(per_mech(battles))
        battles[GROUP, "advantage"] *= battles[GROUP, "alive"]  # dead mechs do not act
        flat = battles.flatten()
        for _ in range(EPOCHS):
            for rows in torch.randperm(frames).split(MINIBATCH):
                losses = loss(flat[rows])
                optimizer.zero_grad()
                sum(losses[f"loss_{part}"] for part in ("objective", "critic", "entropy")).backward()
                nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                optimizer.step()
        won += battles["next", "outcome"][battles["next", "done"]].gt(0).tolist()
        if won and (update % 10 == 0 or update == arguments.updates):
            last = won[-200:]
            print(f"update {update:4}  {frames * update:9,} decisions  won {sum(last) / len(last):.0%} of {len(last)}")
    collector.shutdown()


if __name__ == "__main__":
    main()
