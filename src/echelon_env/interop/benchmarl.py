"""A task for BenchMARL, which needs to be installed to import this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarl.environments.common import TaskClass
from tensordict import TensorDictBase
from torchrl.data import Composite
from torchrl.envs import EnvBase

from echelon_env.config.schema import ConfigError
from echelon_env.interop.torchrl import TorchRLEnv
from echelon_env.opponents import PolicyLike


class EchelonTask(TaskClass):  # type: ignore[misc]  # BenchMARL is not installed where mypy runs
    """Battles as a task of BenchMARL; the groups are the teams ``blue`` and ``red``.

    Algorithms get ``action="discrete"`` with masks if they have discrete actions only, or if
    `prefer_continuous_actions` of BenchMARL's configuration is False; else the action vectors. All battles of
    BenchMARL's environments are stepped at once, see `TorchRLEnv`. ``collection/win_rate`` in the log is the share of a
    collection's ended battles that blue has won.

    Parameters
    ----------
    scenario
        A scenario's name or file.
    opponent
        The policy of red, see `TorchRLEnv`; then blue is the only group. None: both teams learn.
    **kwargs
        Further parameters of `TorchRLEnv`, without those that BenchMARL chooses: `action`, `device`, `num_envs`,
        `seed`.

    Raises
    ------
    ConfigError
        For an invalid argument, mostly when BenchMARL makes the environment.
    """

    def __init__(self, scenario: str = "skirmish", opponent: PolicyLike | None = "novice", **kwargs: Any) -> None:
        given = kwargs.keys() & {"action", "device", "num_envs", "seed"}
        if given:
            raise ConfigError(f"{', '.join(sorted(given))}: BenchMARL chooses these")
        super().__init__(scenario, {"opponent": opponent, **kwargs})

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        """A function that makes an environment of `num_envs` battles."""
        config = {**self.config, "action": "continuous" if continuous_actions else "discrete"}
        return lambda: TorchRLEnv(self.name, num_envs, seed=seed, device=device, **config)

    def supports_continuous_actions(self) -> bool:
        """Always."""
        return True

    def supports_discrete_actions(self) -> bool:
        """Always."""
        return True

    def has_render(self, env: EnvBase) -> bool:
        """Always: the first battle."""
        return True

    def max_steps(self, env: EnvBase) -> int:
        """Maximum number of decisions of a battle."""
        return int(env.config.max_steps)

    def group_map(self, env: EnvBase) -> dict[str, list[str]]:
        """The names of the mechs of each team."""
        groups: dict[str, list[str]] = env.group_map
        return groups

    def observation_spec(self, env: EnvBase) -> Composite:
        """The observations of each group."""
        return self._groups_with(env, "observation")

    def action_mask_spec(self, env: EnvBase) -> Composite | None:
        """The masks of each group; None with continuous actions."""
        return self._groups_with(env, "action_mask") or None

    def info_spec(self, env: EnvBase) -> Composite | None:
        """None: there are no infos."""
        return None

    def state_spec(self, env: EnvBase) -> Composite:
        """The global state from blue's side."""
        return Composite({"state": env.full_observation_spec_unbatched["state"].clone()})

    def action_spec(self, env: EnvBase) -> Composite:
        """The actions of each group."""
        return env.full_action_spec_unbatched

    @staticmethod
    def env_name() -> str:
        """The name of the environment in BenchMARL's logs."""
        return "echelon"

    @staticmethod
    def log_info(batch: TensorDictBase) -> dict[str, float]:
        """The share of the battles that have ended in a batch that blue has won."""
        outcomes = batch["next", "outcome"][batch["next", "done"]]
        return {"collection/win_rate": (outcomes > 0).float().mean().item()} if len(outcomes) else {}

    def _groups_with(self, env: EnvBase, name: str) -> Composite:
        """The spec of each group with one of its entries."""
        spec = env.full_observation_spec_unbatched
        return Composite({
            group: Composite({name: spec[group, name].clone()}, shape=spec[group].shape)
            for group in self.group_map(env) if (group, name) in spec.keys(True)
        })  # fmt: skip
