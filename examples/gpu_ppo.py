"""PPO in one file with battles, networks and rollouts on one device: a policy learns duels by playing against itself.

Every mech of both teams is a row with the same policy. With ``--device cuda`` nothing is copied through the host: the
battles lie in the GPU's memory, and only what is printed is read. With ``--device cpu`` the same file runs without a
GPU, on the same battles. Battles restart in the same step (SAME_STEP). Rows of mechs that have died do not count
until their battle ends. Where the clock cut a battle off, its last observation's value takes the place of later
rewards.
"""

import argparse
import time

import torch
from torch import Tensor, nn
from torch.distributions import Categorical

from echelon_env.gpu import TorchBattleEnv

ROLLOUT, EPOCHS, MINIBATCHES = 64, 3, 8
GAMMA, GAE_LAMBDA = 0.995, 0.95  # the discount is the one of the reward's shaping
LEARNING_RATE, CLIP, ENTROPY, REWARD_SCALE = 1e-3, 0.2, 0.003, 0.1


class Agent(nn.Module):
    """An actor with a categorical distribution for each part of the action, and a critic."""

    def __init__(self, observation_size: int, sizes: list[int], width: int = 128) -> None:
        super().__init__()
        self.sizes = sizes
        self.body = nn.Sequential(nn.Linear(observation_size, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.actor, self.critic = nn.Linear(width, sum(sizes)), nn.Linear(width, 1)
        nn.init.orthogonal_(self.actor.weight, 0.01)

    def forward(self, observations: Tensor, masks: Tensor) -> tuple[list[Categorical], Tensor]:
        """For each part a distribution over its possible choices, and the estimated returns."""
        hidden = self.body(observations)
        logits = self.actor(hidden).masked_fill(~masks, -1e8).split(self.sizes, dim=-1)
        return [Categorical(logits=part, validate_args=False) for part in logits], self.critic(hidden).squeeze(-1)


def log_prob(parts: list[Categorical], actions: Tensor) -> Tensor:
    """Logarithm of the actions' probability."""
    return sum(part.log_prob(action) for part, action in zip(parts, actions.unbind(-1), strict=True))


def sample(parts: list[Categorical]) -> Tensor:
    """Drawn actions."""
    return torch.stack([part.sample() for part in parts], dim=-1)


@torch.no_grad()
def collect(
    agent: Agent, envs: TorchBattleEnv, observation: Tensor, present: Tensor
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """A rollout of (ROLLOUT, battles, mechs) samples with advantages, the last observation, and who is present."""
    steps, goes_on = [], []
    for _ in range(ROLLOUT):
        seen, there, masks = observation.clone(), present.clone(), envs.action_masks()
        parts, values = agent(seen, masks)
        actions = sample(parts)
        observation, rewards, terminated, truncated, infos = envs.step(actions)
        final_values = agent(infos["final_obs"], masks)[1]
        rewards = rewards * REWARD_SCALE + GAMMA * final_values * truncated
        steps.append(
            {
                "observations": seen, "masks": masks, "actions": actions, "log_probs": log_prob(parts, actions),
                "values": values, "rewards": rewards, "present": there,
            }
        )  # fmt: skip
        goes_on.append((~(terminated | truncated)).float())
        present = infos["present"]
    batch = {name: torch.stack([step[name] for step in steps]) for name in steps[0]}
    next_values, advantage = agent(observation, envs.action_masks())[1], torch.zeros_like(batch["values"][0])
    advantages = []
    for t in reversed(range(ROLLOUT)):
        delta = batch["rewards"][t] + GAMMA * next_values * goes_on[t] - batch["values"][t]
        advantage = delta + GAMMA * GAE_LAMBDA * goes_on[t] * advantage
        advantages.insert(0, advantage)
        next_values = batch["values"][t]
    batch["advantages"] = torch.stack(advantages)
    batch["returns"] = batch["advantages"] + batch["values"]
    return batch, observation, present


def update(agent: Agent, optimizer: torch.optim.Optimizer, batch: dict[str, Tensor]) -> None:
    """Proximal policy optimisation on a rollout."""
    flat = {name: part.flatten(0, 2) for name, part in batch.items()}
    kept = flat.pop("present").float()
    for _ in range(EPOCHS):
        for chosen in torch.randperm(len(kept), device=kept.device).chunk(MINIBATCHES):
            part, weight = {name: each[chosen] for name, each in flat.items()}, kept[chosen]
            weight = weight / weight.sum().clamp(min=1.0)
            parts, values = agent(part["observations"], part["masks"])
            mean = (part["advantages"] * weight).sum()
            deviation = (((part["advantages"] - mean) ** 2) * weight).sum().sqrt()
            advantages = (part["advantages"] - mean) / (deviation + 1e-8)
            ratio = (log_prob(parts, part["actions"]) - part["log_probs"]).exp()
            gain = torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages)
            entropy = sum(each.entropy() for each in parts)
            error = (values - part["returns"]) ** 2
            loss = ((0.5 * error - gain - ENTROPY * entropy) * weight).sum()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


@torch.no_grad()
def win_rate(agent: Agent, envs: TorchBattleEnv) -> float:
    """Share of battles that the policy wins as blue against random actions."""
    observation, _ = envs.reset(seed=12345)
    blue = sum(name.startswith("blue") for name in envs.agents)
    won = torch.zeros(envs.num_envs, dtype=torch.bool, device=envs.device)
    running = ~won
    while running.any():
        masks = envs.action_masks()
        actions = sample(agent(observation, masks)[0])
        flat = torch.zeros(masks.shape, device=envs.device).masked_fill(~masks, -1e8).split(agent.sizes, dim=-1)
        actions[:, blue:] = sample([Categorical(logits=part) for part in flat])[:, blue:]
        observation, *_, infos = envs.step(actions)
        ended = infos["_final_obs"] & running
        won |= ended & (infos["final_info"]["outcome"][:, 0] == 1)
        running &= ~ended
    return float(won.float().mean())


def main() -> None:
    """Train, and say how it goes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--scenario", default="duel")
    parser.add_argument("--battles", type=int, default=64)
    parser.add_argument("--steps", type=int, default=500_000, help="decisions of all mechs")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    settings = {"device": args.device, "action": "multi_discrete", "autoreset_mode": "SAME_STEP"}
    envs = TorchBattleEnv(args.scenario, args.battles, maps=200, **settings)
    tests = TorchBattleEnv(args.scenario, min(args.battles, 64), maps=32, **settings)
    sizes = [int(size) for size in envs.single_action_space.nvec]
    agent = Agent(envs.single_observation_space.shape[0], sizes).to(envs.device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=LEARNING_RATE, eps=1e-5)
    observation, infos = envs.reset(seed=args.seed)
    present, samples = infos["present"], ROLLOUT * args.battles * envs.num_mechs
    updates, began = max(1, args.steps // samples), time.perf_counter()
    for number in range(updates):
        optimizer.param_groups[0]["lr"] = LEARNING_RATE * (1 - number / updates)
        batch, observation, present = collect(agent, envs, observation, present)
        update(agent, optimizer, batch)
        if number == updates - 1 or number % max(1, updates // 8) == 0:
            rate = (number + 1) * samples / (time.perf_counter() - began)
            won = win_rate(agent, tests)
            print(f"{(number + 1) * samples:,} decisions, {rate:,.0f} a second, won {won:.2f} against random actions")


if __name__ == "__main__":
    main()
