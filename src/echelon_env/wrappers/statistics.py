"""Running statistics of observations and returns: what the normalizing wrappers of all APIs share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, MultiBinary, Space
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import ArrayLike, NDArray

from echelon_env.wrappers.base import kind_of
from echelon_env.wrappers.moments import FilePath, RunningMoments, read_moments, write_moments

Flags = NDArray[np.bool_]

Tree = RunningMoments | dict[str, "Tree"] | None
"""The statistics of a space: moments for a Box, a dict by key for a Dict, None for parts that are not normalized."""

_MASK = "_mask"
"""The end of the key of a mask."""


class Statistics(RecordConstructorArgs):
    """The part of a wrapper with statistics that can be frozen, saved and loaded; a library's wrapper is the other.

    `record` are the other arguments of the wrapper. Raises ValueError for invalid arguments, TypeError for an
    environment of another kind.
    """

    def __init__(self, env: Any, epsilon: float, clip: float | None, **record: Any) -> None:
        if not 0 < epsilon < np.inf:
            raise ValueError(f"epsilon: expected a finite number above 0, got {epsilon!r}")
        if clip is not None and not 0 < clip < np.inf:
            raise ValueError(f"clip: expected a finite number above 0 or None, got {clip!r}")
        RecordConstructorArgs.__init__(self, epsilon=epsilon, clip=clip, **record)
        self._epsilon, self._clip = epsilon, clip
        self._frozen = False
        try:
            super(RecordConstructorArgs, self).__init__(env)  # type: ignore[call-arg]  # the library's wrapper
        except AssertionError as error:  # Gymnasium before 1.2
            raise TypeError(str(error)) from None

    @property
    def frozen(self) -> bool:
        """Whether updates of the statistics are stopped."""
        return self._frozen

    def freeze(self) -> None:
        """Stop updating the statistics, for example in an evaluation."""
        self._frozen = True

    def unfreeze(self) -> None:
        """Continue to update the statistics."""
        self._frozen = False

    def save(self, path: FilePath) -> None:
        """Write the statistics to a JSON file, atomically. Raises OSError."""
        write_moments(path, type(self).__name__, self._named_moments())

    def load(self, path: FilePath) -> None:
        """Replace the statistics by those of a file that `save` wrote for the same agents and spaces.

        Raises OSError. Raises ValueError for any other file. Nothing changes then.
        """
        read_moments(path, type(self).__name__, self._named_moments())

    @abstractmethod
    def _named_moments(self) -> dict[str, RunningMoments]:
        """All statistics by their names in the file."""


class ObservationStatistics(Statistics):
    """Statistics of observations, in trees like their spaces. Batches of observations have a leading axis."""

    def __init__(self, env: Any, *, epsilon: float = 1e-8, clip: float | None = 10.0) -> None:
        super().__init__(env, epsilon, clip)

    def _normalized_space(self, space: Space[Any], tree: Tree) -> Space[Any]:
        return _normalized_space(tree, space, np.inf if self._clip is None else self._clip)

    moments: Any
    """The statistics: `RunningMoments`, or for a Dict a dict of them, with None for unchanged parts."""

    def _named_moments(self) -> dict[str, RunningMoments]:
        return dict(named_moments(self.moments, "observation"))

    def _normalized_rows(
        self, tree: Tree, observations: Sequence[Any], counted: ArrayLike, alive: ArrayLike
    ) -> Iterator[Any]:
        """Observations (B) normalized by `_normalized`."""
        flags = np.asarray(counted, np.bool_), np.asarray(alive, np.bool_)
        batch = self._normalized(tree, _stack(tree, observations), *flags)
        return (_row_of(tree, batch, index) for index in range(len(observations)))

    def _normalized(self, tree: Tree, batch: Any, counted: Flags, alive: Flags, mask: Flags | None = None) -> Any:
        """Update the statistics by the rows of a batch that are counted (B,), and normalize all rows.

        Zeros in rows that are not `alive` (B,) stay zeros. `mask` (B, ...) marks the entries of rows that count; others
        become zeros.
        """
        if isinstance(tree, dict):
            return {
                key: self._normalized(tree[key], part, counted, alive, _mask_of(tree, batch, key))
                for key, part in batch.items()
            }
        if tree is None:
            return batch
        batch = np.asarray(batch)
        if not self._frozen:
            tree.update(batch, counted if mask is None else mask & _over(counted, mask))
        result = tree.standardize(batch, self._epsilon, self._clip).astype(batch.dtype)
        result[(batch == 0) & ~_over(alive, batch)] = 0
        if mask is not None:
            result[~mask] = 0
        return result


class ReturnStatistics(Statistics):
    """The statistic of discounted returns, by whose standard deviation rewards are divided.

    `gamma` is the discount, from 0 to 1. Raises as `Statistics`.
    """

    def __init__(self, env: Any, *, gamma: float = 0.99, epsilon: float = 1e-8, clip: float | None = 10.0) -> None:
        if not 0 <= gamma <= 1:
            raise ValueError(f"gamma: expected a number from 0 to 1, got {gamma!r}")
        super().__init__(env, epsilon, clip, gamma=gamma)
        self._gamma = gamma
        self.moments = RunningMoments()
        """The statistic of the discounted returns."""

    def _scaled(self, rewards: ArrayLike, returns: ArrayLike, counted: ArrayLike) -> NDArray[np.float64]:
        """Update the statistic by the returns (N,) that are counted (N,), and scale the rewards (N,)."""
        if not self._frozen:
            self.moments.update(returns, np.asarray(counted, np.bool_))
        limit = np.inf if self._clip is None else self._clip
        return np.clip(np.asarray(rewards, np.float64) / np.sqrt(self.moments.var + self._epsilon), -limit, limit)

    def _named_moments(self) -> dict[str, RunningMoments]:
        return {"returns": self.moments}


def moments_of(space: Space[Any], what: str) -> Tree:
    """New statistics for a space. Raises ValueError for one without a Box of floats; `what` names it."""
    tree = _moments_of(space)
    if not list(named_moments(tree, "")):
        raise ValueError(f"{what}: expected a Box of floats, or a Dict with such a Box, got {kind_of(space)}")
    return tree


def named_moments(tree: Tree, name: str) -> Iterator[tuple[str, RunningMoments]]:
    """All moments of a tree, with the path of their keys from `name` on."""
    if isinstance(tree, dict):
        for key, part in tree.items():
            yield from named_moments(part, f"{name}/{key}")
    elif tree is not None:
        yield name, tree


def _stack(tree: Tree, observations: Sequence[Any]) -> Any:
    """A batch of observations. Parts without statistics are lists."""
    if isinstance(tree, dict):
        return {key: _stack(tree[key], [each[key] for each in observations]) for key in observations[0]}
    return observations if tree is None else np.stack(observations)


def _row_of(tree: Tree, batch: Any, index: int) -> Any:
    """An observation of a batch."""
    if isinstance(tree, dict):
        return {key: _row_of(tree[key], part, index) for key, part in batch.items()}
    return batch[index] if tree is None else np.asarray(batch[index])


def _moments_of(space: Space[Any], key: str = "", entries: int = 0) -> Tree:
    """Moments for a space with `key` in a Dict; its first axes `entries` have a mask and share their statistics."""
    if isinstance(space, Dict):
        return {key: _moments_of(part, key, _masked_axes(space, key)) for key, part in space.spaces.items()}
    if isinstance(space, Box) and np.issubdtype(space.dtype, np.floating) and not key.endswith(_MASK):
        return RunningMoments(space.shape[entries:])
    return None


def _masked_axes(space: Dict, key: str) -> int:
    """Number of the leading axes for which the Dict has a mask, with at least one other axis; else 0."""
    box, mask = space.spaces[key], space.spaces.get(key + _MASK)
    if not isinstance(box, Box) or not isinstance(mask, Box | MultiBinary):
        return 0
    axes = len(mask.shape)
    return axes if axes < len(box.shape) and mask.shape == box.shape[:axes] else 0


def _normalized_space(tree: Tree, space: Space[Any], limit: float) -> Space[Any]:
    if isinstance(tree, dict) and isinstance(space, Dict):
        return Dict([(key, _normalized_space(tree[key], part, limit)) for key, part in space.spaces.items()])
    if isinstance(tree, RunningMoments) and isinstance(space, Box):
        return Box(-limit, limit, space.shape, space.dtype.type)
    return space


def _mask_of(tree: Mapping[str, Tree], batch: Mapping[str, Any], key: str) -> Flags | None:
    """Which entries of a part of a batch count, if its space has a mask for them."""
    moments, mask = tree[key], batch.get(key + _MASK)
    if mask is None or not isinstance(moments, RunningMoments):
        return None
    valid = np.asarray(mask) != 0
    return valid if valid.ndim == np.ndim(batch[key]) - len(moments.shape) > 1 else None


def _over(flags: Flags, array: NDArray[Any]) -> Flags:
    """Flags (B,) with as many axes as the array (B, ...)."""
    return flags.reshape(-1, *[1] * (array.ndim - 1))
