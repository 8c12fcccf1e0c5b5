"""Policies in memory as players for evaluation."""

from __future__ import annotations

from echelon_env.config.battle import BattleConfig
from echelon_env.evaluate import ActionMode, Player
from echelon_env.evaluate import networks as players
from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.tensor_files import weights_of


def network_player(
    name: str,
    policy: BattlePolicy,
    *,
    action_mode: ActionMode = "sampled",
    battle: BattleConfig | None = None,
    trained_maps: frozenset[str] | None = None,
) -> Player:
    """A player with a copy of the current weights of a policy, which may be in training.

    The arguments and errors are those of `echelon_env.evaluate.networks.network_player`.
    """
    tensors = {weight: tensor.cpu().numpy() for weight, tensor in weights_of(policy).items()}
    return players.network_player(
        name, policy.network, tensors, action_mode=action_mode, battle=battle, trained_maps=trained_maps
    )


def untrained_player(seed: int = 0, *, action_mode: ActionMode = "sampled") -> Player:
    """A player with random weights, which the seed determines."""
    return network_player(players.UNTRAINED, build_policy(NetworkConfig(), seed), action_mode=action_mode)
