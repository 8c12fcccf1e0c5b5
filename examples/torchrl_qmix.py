"""QMIX with TorchRL's loss and mixer, through the interface of SMAC: discrete choices, masks, a central state.

QMIX is from Rashid et al., "QMIX: Monotonic Value Function Factorisation for Deep Multi-Agent Reinforcement Learning"
(2018). Targets are n-step returns of double Q-learning; the networks have no memory.
"""

import argparse

import numpy as np
import torch
from tensordict import TensorDict
from tensordict.nn import TensorDictModule, TensorDictSequential
from torch import nn
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.modules import QMixer, QValueModule
from torchrl.objectives import QMixerLoss, SoftUpdate, ValueEstimators

from echelon_env.interop import SMACEnv

HOLD = 4  # decisions for which a choice is held: exploration goes somewhere, and battles have fewer steps
GAMMA, N_STEPS = 0.97, 5
BATCH_SIZE, BUFFER_SIZE = 128, 20_000
ACTION, STATE = ("agents", "action"), "state"


def make_networks(sizes: dict[str, int]) -> tuple[nn.Module, nn.Module]:
    """The mechs' shared Q network, which heeds the masks, and the mixer."""
    network = nn.Sequential(
        nn.Linear(sizes["obs_shape"], 128),
        nn.ReLU(),
        nn.Linear(128, 128),
        nn.ReLU(),
        nn.Linear(128, sizes["n_actions"]),
    )
    values = ("agents", "action_value")
    choose = QValueModule(
        action_space="categorical", action_value_key=values, action_mask_key=("agents", "mask"),
        out_keys=[ACTION, values, ("agents", "chosen_action_value")],
    )  # fmt: skip
    q_network = TensorDictSequential(TensorDictModule(network, [("agents", "observation")], [values]), choose)
    mixer = QMixer(state_shape=(sizes["state_shape"],), mixing_embed_dim=32, n_agents=sizes["n_agents"], device="cpu")
    return q_network, TensorDictModule(mixer, [("agents", "chosen_action_value"), STATE], ["chosen_action_value"])


def look(env: SMACEnv) -> dict[str, torch.Tensor]:
    """What the networks see of a decision."""
    return {
        "observation": torch.as_tensor(np.stack(env.get_obs())),
        "mask": torch.as_tensor(env.get_avail_actions(), dtype=torch.bool),
        STATE: torch.as_tensor(env.get_state()),
    }


def play(env: SMACEnv, q_network: nn.Module, epsilon: float) -> tuple[list[dict], list[float], dict]:
    """One battle with epsilon-greedy actions: what was seen and chosen, the rewards, and the last info."""
    env.reset()
    seen, rewards, terminated = [look(env)], [], False
    while not terminated:
        agents = TensorDict({key: seen[-1][key] for key in ("observation", "mask")}, [env.n_agents])
        with torch.no_grad():
            choices = q_network(TensorDict({"agents": agents}))[ACTION]
        random = torch.multinomial(seen[-1]["mask"].float(), 1).squeeze(-1)
        seen[-1]["action"] = torch.where(torch.rand(env.n_agents) < epsilon, random, choices)
        rewards.append(0.0)
        for _ in range(HOLD):
            reward, terminated, info = env.step(seen[-1]["action"])
            rewards[-1] += reward
            if terminated:
                break
        seen.append(look(env))
    return seen, rewards, info


def transitions(seen: list[dict], rewards: list[float], info: dict) -> TensorDict:
    """The n-step transitions of a battle; one that the time limit ends is not terminated."""
    steps = len(rewards)
    ends = np.minimum(np.arange(steps) + N_STEPS, steps)
    returns = [sum(GAMMA**k * r for k, r in enumerate(rewards[t:end])) for t, end in enumerate(ends)]
    done = torch.as_tensor(ends == steps)[:, None]

    def stack(key: str, places: np.ndarray) -> torch.Tensor:
        return torch.stack([seen[place][key] for place in places])

    def parts(places: np.ndarray) -> dict:
        shape = [steps, *seen[0]["mask"].shape[:1]]
        agents = TensorDict({key: stack(key, places) for key in ("observation", "mask")}, shape)
        return {"agents": agents, STATE: stack(STATE, places)}

    batch, following = parts(np.arange(steps)), parts(ends)
    batch["agents"]["action"] = stack("action", np.arange(steps))
    reward = torch.tensor(returns, dtype=torch.float32)[:, None]
    following |= {"reward": reward, "done": done, "terminated": done & ~torch.tensor(bool(info["episode_limit"]))}
    return TensorDict(batch | {"next": TensorDict(following, [steps])}, [steps])


def main() -> None:
    """Train, and print the win rate of the last battles."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scenario", default="duel-open")
    parser.add_argument("--opponent", default="trivial")
    parser.add_argument("--decisions", type=int, default=60_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    torch.set_num_threads(1)  # networks of this size get slower with more threads
    torch.manual_seed(arguments.seed)
    env = SMACEnv(arguments.scenario, opponent=arguments.opponent, seed=arguments.seed, maps=200)
    q_network, mixer = make_networks(env.get_env_info())
    loss = QMixerLoss(q_network, mixer, action_space="categorical", delay_value=True)
    loss.make_value_estimator(ValueEstimators.TD0, gamma=GAMMA**N_STEPS)
    target, optimizer = SoftUpdate(loss, eps=0.99), torch.optim.Adam(loss.parameters(), lr=5e-4)
    buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(BUFFER_SIZE), batch_size=BATCH_SIZE)
    decisions, won, returns = 0, [], []
    while decisions < arguments.decisions:
        epsilon = max(0.05, 1 - decisions / (0.4 * arguments.decisions))
        seen, rewards, info = play(env, q_network, epsilon)
        buffer.extend(transitions(seen, rewards, info))
        decisions += HOLD * len(rewards)
        won.append(info["battle_won"])
        returns.append(sum(rewards))
        for _ in range(len(rewards)):
            optimizer.zero_grad()
            loss(buffer.sample())["loss"].backward()
            nn.utils.clip_grad_norm_(loss.parameters(), 10.0)
            optimizer.step()
            target.step()
        if len(won) % 25 == 0:
            print(
                f"decisions {decisions:7,}  epsilon {epsilon:.2f}  of the last 25 battles: "
                f"won {np.mean(won[-25:]):.0%}, mean return {np.mean(returns[-25:]):.1f}"
            )
    last = [play(env, q_network, 0.0)[2]["battle_won"] for _ in range(50)]
    print(f"won {np.mean(last):.0%} of 50 battles without exploration")
    env.close()


if __name__ == "__main__":
    main()
