"""Tasks that two connected processes run in tests of distributed training."""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import torch.multiprocessing

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.ppo import distributed
from echelon_train.ppo.distributed_state import gather_state, rank_state
from echelon_train.ppo.losses import Losses
from train.ppo.random_env import RandomVecEnv, collect, make_model

ROWS, STEPS = 3, 16
TARGET_KL = 0.01
MAX_GRAD_NORM = 0.25
"""Smaller than the norm of either process's gradient."""


def in_two_processes(tasks: list[Callable[[Path], Any]], folder: Path) -> dict[str, list[Any]]:
    """Run tasks in two connected processes. Returns the two results of each task by its name."""
    method = "fork" if sys.platform == "linux" else "spawn"  # forked processes need not import torch again
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads, which the tasks do not use
        torch.multiprocessing.start_processes(_connected, (tasks, folder), nprocs=2, start_method=method)
    results = [torch.load(folder / f"results{rank}.pt", weights_only=False) for rank in range(2)]
    return {name: [result[name] for result in results] for name in results[0]}


def _connected(rank: int, tasks: list[Callable[[Path], Any]], folder: Path) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", f"file://{folder / 'store'}", rank=rank, world_size=2)
    torch.save({task.__name__: task(folder) for task in tasks}, folder / f"results{rank}.pt")
    torch.distributed.destroy_process_group()


def weights_of(model: Any) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().clone() for name, tensor in model.policy.state_dict().items()}


def train(folder: Path) -> dict[str, Any]:
    """Several updates; each process has its own environment and its own initial weights."""
    settings = {"n_epochs": 3, "batch_size": 16, "target_kl": 0.02, "learning_rate": 0.01, "seed": 11}
    model = make_model(RandomVecEnv(ROWS, distributed.rank()), **settings)
    first = weights_of(model)
    model.learn(6 * 2 * ROWS * STEPS)
    return {
        "first": first,
        "weights": weights_of(model),
        "optimizer": [each["exp_avg"] for each in model.policy.optimizer.state.values()],
        "actions": model.rollout_buffer.actions.clone(),
        "steps": model.num_timesteps,
        "minibatches": model.logger.name_to_value["train/minibatches"],
        "seed": distributed.rank_seed(11),
    }


NETWORK = NetworkConfig(width=8, head=8, set_width=4, map_channels=2, critic="ippo")


def union_model(rows: int) -> Any:
    """A model whose update is the gradient of the whole rollout."""
    env = RandomVecEnv(rows, 4, observation_space(), action_space())
    settings = {"learning_rate": 1.0, "ent_coef": 0.02, "accumulate": 2, "n_epochs": 1, "max_grad_norm": MAX_GRAD_NORM}
    settings |= {"policy_kwargs": {"network": NETWORK}}
    model = make_model(env, policy=BattlePolicy, **settings)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for name, parameter in model.policy.named_parameters():
            # heads near zero would hide errors in earlier layers
            if name.startswith(("action_net.weight", "value_net", "target_query")):
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    model.policy.optimizer = torch.optim.SGD(model.policy.parameters(), lr=1.0)
    return model


def one_update(folder: Path) -> dict[str, torch.Tensor]:
    """The weights after the update of a process that has half the rows of a rollout in a file."""
    model = union_model(ROWS)
    collect(model)
    given = torch.load(folder / "rollout.pt")
    model.policy.load_state_dict(given["weights"])
    own = slice(distributed.rank() * ROWS, (distributed.rank() + 1) * ROWS)
    for name, tensor in given["buffer"].items():
        getattr(model.rollout_buffer, name).copy_(tensor[:, own])
    for kept, state in zip(model.rollout_buffer.states, given["states"], strict=True):
        kept.copy_(state[:, :, own])
    model.train()
    return weights_of(model)


def stopped_by_kl(folder: Path) -> dict[str, Any]:
    """An update that `target_kl` stops, with the KL divergence of each minibatch: joint, and this process's part."""
    model = make_model(
        RandomVecEnv(ROWS, distributed.rank()), n_epochs=10, batch_size=16, target_kl=TARGET_KL, learning_rate=0.01
    )
    collect(model)
    joint, own = [], []
    sum_gradients, gradient = distributed.all_reduce_gradients, model.update.gradient

    def recording_all_reduce(parameters: Any, numbers: torch.Tensor) -> torch.Tensor:
        own.append(float(Losses.unpacked(numbers).approx_kl))
        return sum_gradients(parameters, numbers)

    def recording_gradient(*args: Any) -> torch.Tensor:
        result = gradient(*args)
        joint.append(float(Losses.unpacked(result).approx_kl))
        return result

    distributed.all_reduce_gradients, model.update.gradient = recording_all_reduce, recording_gradient
    try:
        model.train()
    finally:
        distributed.all_reduce_gradients = sum_gradients
    return {"joint": joint, "own": own, "weights": weights_of(model)}


def nan_return(folder: Path) -> dict[str, Any]:
    """An update in which only the second process has a NaN return."""
    model = make_model(RandomVecEnv(ROWS, distributed.rank()), chunk=STEPS, batch_size=STEPS, n_epochs=1, seed=3)
    collect(model)
    if distributed.rank() == 1:
        model.rollout_buffer.returns[0, 1] = float("nan")
    model.train()
    return {"weights": weights_of(model), "skipped": model.skipped_minibatches}


def stopped_by_callback(folder: Path) -> dict[str, Any]:
    """Training that a callback in the second process stops."""
    model = make_model(RandomVecEnv(ROWS, distributed.rank()), n_epochs=1)
    model.learn(10_000, callback=lambda locals_, _: distributed.rank() == 0 or model._n_updates < 3)
    return {"updates": model._n_updates, "steps": model.num_timesteps}


def communication(folder: Path) -> dict[str, Any]:
    """All functions for communication between processes."""
    rank = distributed.rank()
    state = (
        {"a": torch.tensor([rank], dtype=torch.uint32), "random.x": torch.ones(2) * rank},
        {"number": rank, "same": [3]},
    )
    joint = gather_state(*state)
    distributed.broadcast_object(lambda: torch.save(joint, folder / "joint.pt"))
    kept = torch.load(folder / "joint.pt", weights_only=False)
    tensors, values = rank_state(*kept)
    return {
        "any": [distributed.any_true(False), distributed.any_true(rank == 1), distributed.any_true(True)],
        "first": distributed.broadcast_object(lambda: {"from": rank}),
        "gathered": distributed.gather_objects(f"of {rank}"),
        "sum": float(distributed.all_reduce_sum(torch.tensor(float(rank + 1)))),
        "ranks": (rank, distributed.world_size()),
        "kept": kept[1],
        "own": ({name: tensor.tolist() for name, tensor in tensors.items()}, values),
        "seeds": [distributed.rank_seed(seed) for seed in (0, 1, 2)],
    }
