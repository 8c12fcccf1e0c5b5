"""With the same weights and data, the algorithm computes the same as sb3-contrib's RecurrentPPO."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.stock import Choices, stock_version
from sb3_contrib import RecurrentPPO
from sb3_contrib.common.recurrent import buffers as stock_buffers
from stable_baselines3.common.vec_env import VecEnv

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy, action_space, observation_space
from echelon_train.policy.sequences import MlpLstmPolicy
from echelon_train.ppo import EchelonRecurrentPPO
from train.ppo.random_env import RandomVecEnv

STEPS, ROWS = 32, 6
SMALL = {"net_arch": [8], "lstm_hidden_size": 8}
VARIANTS = {
    "critic without memory": (MlpLstmPolicy, {**SMALL, "enable_critic_lstm": False}),
    "critic with an LSTM": (MlpLstmPolicy, SMALL),
    "shared LSTM": (MlpLstmPolicy, {**SMALL, "enable_critic_lstm": False, "shared_lstm": True}),
    "battles": (BattlePolicy, {"network": NetworkConfig(width=8, head=8, set_width=4, map_channels=2)}),
    "battles, flat": (BattlePolicy, {"network": NetworkConfig(width=8, head=8, encoder="flat")}),
    "battles, own critic": (BattlePolicy, {"network": NetworkConfig(width=8, head=8, set_width=4, critic="ippo")}),
}


def all_rows_act(policy: type) -> type:
    return type("AllRowsAct", (policy,), {"actor_mask": lambda self, observations: None})


def environment(policy: type) -> RandomVecEnv:
    if issubclass(policy, BattlePolicy):
        return RandomVecEnv(ROWS, 1, observation_space(), action_space().shape[0])
    return RandomVecEnv(ROWS, 1)


def one_update(
    algorithm: type, policy: type, env: VecEnv, kwargs: dict[str, Any], **settings: Any
) -> tuple[Any, dict[str, torch.Tensor]]:
    """A rollout and one update by gradient descent with step size 1, so the change of the weights is the gradient."""
    model = algorithm(
        policy,
        env,
        n_steps=STEPS,
        batch_size=STEPS * ROWS,
        n_epochs=1,
        learning_rate=1.0,
        max_grad_norm=1e9,
        ent_coef=0.03,
        gamma=0.97,
        policy_kwargs={**kwargs},
        seed=3,
        device="cpu",
        **settings,
    )
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in model.policy.named_parameters():
            # heads near zero would hide errors in earlier layers
            if name.startswith(("action_net", "value_net", "target_query")):
                parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    model.policy.optimizer = torch.optim.SGD(model.policy.parameters(), lr=1.0)
    before = {name: parameter.detach().clone() for name, parameter in model.policy.named_parameters()}
    model.learn(STEPS * ROWS)
    return model, {name: before[name] - parameter.detach() for name, parameter in model.policy.named_parameters()}


@pytest.fixture
def cut_stock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let sb3-contrib's buffer cut sequences at chunk starts, and start at step 0 instead of a random step."""

    def cut(chunk: int) -> None:
        original = stock_buffers.create_sequencers

        def create(episode_starts: np.ndarray, env_change: np.ndarray, device: Any) -> Any:
            cuts = (np.arange(len(env_change)) % STEPS % chunk == 0).astype(env_change.dtype)
            return original(episode_starts, np.maximum(env_change, cuts.reshape(env_change.shape)), device)

        monkeypatch.setattr(stock_buffers, "create_sequencers", create)
        monkeypatch.setattr(np.random, "randint", lambda *args: 0)

    return cut


def both(name: str, **settings: Any) -> tuple[Any, Any, dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    policy, kwargs = VARIANTS[name]
    policy = all_rows_act(policy)
    env = environment(policy)
    stock_env = Choices(env) if issubclass(policy, BattlePolicy) else env
    theirs, their_gradient = one_update(RecurrentPPO, stock_version(policy), stock_env, kwargs)
    settings["normalize_returns"] = False
    ours, our_gradient = one_update(EchelonRecurrentPPO, policy, environment(policy), kwargs, **settings)
    return theirs, ours, their_gradient, our_gradient


def row_major(array: np.ndarray) -> np.ndarray:
    """(rows, steps): sb3-contrib's buffer flattens its arrays row by row in training."""
    return array.reshape(ROWS, STEPS)


def relative_difference(theirs: dict[str, torch.Tensor], ours: dict[str, torch.Tensor]) -> float:
    scale = torch.cat([gradient.flatten() for gradient in theirs.values()]).norm()
    return float(torch.cat([(theirs[name] - ours[name]).flatten() for name in theirs]).norm() / scale)


CASES = [*((name, 8) for name in VARIANTS), ("critic with an LSTM", 1), ("battles", 32)]


@pytest.mark.parametrize(("name", "chunk"), CASES)
def test_values_log_probabilities_advantages_and_gradients_equal_sb3_contribs(name, chunk, cut_stock):
    cut_stock(chunk)
    theirs, ours, their_gradient, our_gradient = both(name, chunk=chunk)
    stock, buffer = theirs.rollout_buffer, ours.rollout_buffer
    assert 5 < float(buffer.episode_starts[1:].sum()) < 60
    assert float(buffer.bootstraps.abs().max()) > 0.0
    fields = {name: getattr(buffer, name) for name in ("values", "advantages", "returns")}
    fields["log_probs"] = buffer.log_probs.sum(2)  # over the blocks of an action
    for field, ours_by_step in fields.items():
        np.testing.assert_allclose(
            ours_by_step.T.numpy(), row_major(getattr(stock, field)), rtol=1e-5, atol=1e-5, err_msg=field
        )
    assert relative_difference(their_gradient, our_gradient) < 1e-5
    for parameter, gradient in their_gradient.items():
        difference = float((our_gradient[parameter] - gradient).norm())
        assert difference <= 1e-4 * float(gradient.norm()) + 1e-6, parameter
    for metric in ("train/policy_gradient_loss", "train/value_loss", "train/entropy_loss", "train/loss"):
        assert ours.logger.name_to_value[metric] == pytest.approx(
            theirs.logger.name_to_value[metric], rel=1e-4, abs=1e-5
        )
