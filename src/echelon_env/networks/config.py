"""The shape of a policy's network."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from echelon_env.config.schema import check_fields, quantity


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The network of the recurrent policy; it does not depend on the scenario."""

    REMOVED: ClassVar[frozenset[str]] = frozenset(
        {"auxiliary", "initial_std", "max_std", "min_std", "normalize_observations"}
    )
    """Settings of earlier versions, for error messages."""

    encoder: Literal["sets", "flat"] = field(
        default="sets",
        metadata={"help": "sets: contacts, squad-mates, ... as sets; flat: one linear layer"},
    )
    set_width: int = quantity(32, "units", 1, 4096, help="width of the embedding of a contact, a squad-mate, ...")
    map_channels: int = quantity(8, "channels", 1, 1024, help="channels of the convolution over the map")
    width: int = quantity(128, "units", 1, 4096, help="width of the features and of the LSTM")
    head: int = quantity(64, "units", 1, 4096, help="width of the hidden layer of each head")
    critic: Literal["shared", "central", "ippo", "mappo"] = field(
        default="shared",
        metadata={
            "help": "shared: the actor's trunk; central: the same, with the global state; ippo: its own, on the "
            "mech's observation; mappo: its own, on the global state"
        },
    )
    memory: bool = field(
        default=True, metadata={"help": "recurrence; without it the LSTM starts every decision from zeros"}
    )
    communicate: bool = field(
        default=False, metadata={"help": "send messages, and choose the order of the contact table"}
    )

    def __post_init__(self) -> None:
        check_fields(self, "network.")

    @property
    def sees_state(self) -> bool:
        """Whether the critic sees the global state."""
        return self.critic in ("central", "mappo")

    @property
    def blocks_off(self) -> frozenset[str]:
        """Names of the blocks of an action that the policy does not use."""
        return frozenset() if self.communicate else frozenset({"display", "comm"})

    def shape(self) -> dict[str, Any]:
        """The settings that the shapes of the weights follow from, by name."""
        others = ("memory", "communicate")
        return {each.name: getattr(self, each.name) for each in dataclasses.fields(self) if each.name not in others}
