"""A task for BenchMARL, which needs to be installed to import this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarl.environments.pettingzoo.common import PettingZooClass
from torchrl.envs import EnvBase, PettingZooWrapper

from echelon_env.config.schema import ConfigError
from echelon_env.envs.parallel import parallel_env
from echelon_env.interop.torchrl import NumericInfos
from echelon_env.opponents import PolicyLike
from echelon_env.wrappers.team import TeamVersusPolicy


class EchelonTask(PettingZooClass):  # type: ignore[misc]  # BenchMARL is not installed where mypy runs
    """Battles as a task of BenchMARL; the groups are the teams ``blue`` and ``red``.

    Algorithms with continuous actions get the action vectors, those with discrete ones ``action="discrete"`` and masks.

    Parameters
    ----------
    scenario
        A scenario's name or file.
    opponent
        The policy of red, see `TeamVersusPolicy`; then blue is the only group, and actions are continuous. None: both
        teams learn.
    **kwargs
        Further parameters of `echelon_env.parallel_env`. Dead mechs stay until the end of the battle unless
        ``dead_agents="terminate"``.

    Raises
    ------
    ConfigError
        For an invalid argument, when BenchMARL makes the environment.
    """

    def __init__(self, scenario: str = "skirmish", opponent: PolicyLike | None = None, **kwargs: Any) -> None:
        super().__init__(scenario, {"opponent": opponent, "dead_agents": "persist", **kwargs})

    def get_env_fun(
        self, num_envs: int, continuous_actions: bool, seed: int | None, device: Any
    ) -> Callable[[], EnvBase]:
        """A function that makes one environment; BenchMARL runs several side by side."""
        config = {**self.config, "action": "continuous" if continuous_actions else "discrete"}
        opponent = config.pop("opponent")
        if opponent is not None and not continuous_actions:
            raise ConfigError("opponent: expected None with discrete actions, got one; scripted levels act in vectors")

        def make() -> EnvBase:
            env: Any = parallel_env(self.name, render_mode="rgb_array", **config)
            if opponent is not None:
                env = TeamVersusPolicy(env, opponent)
            return PettingZooWrapper(
                NumericInfos(env), return_state=True, use_mask=config["dead_agents"] == "terminate", done_on_any=False,
                categorical_actions=True, device=device, seed=seed,
            )  # fmt: skip

        return make

    def supports_continuous_actions(self) -> bool:
        """Always."""
        return True

    def supports_discrete_actions(self) -> bool:
        """Unless a policy plays red."""
        return self.config["opponent"] is None

    def has_state(self) -> bool:
        """Always: the global state, from blue's side."""
        return True

    def max_steps(self, env: EnvBase) -> int:
        """Maximum number of decisions of a battle."""
        return int(env.unwrapped.config.max_steps)

    @staticmethod
    def env_name() -> str:
        """The name of the environment in BenchMARL's logs."""
        return "echelon"
