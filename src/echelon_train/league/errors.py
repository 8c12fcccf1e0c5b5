"""Errors of leagues: missing, foreign or damaged folders, and refused requests."""

from echelon_train.errors import TrainError


class LeagueError(TrainError):
    """A league that is missing, foreign, damaged or in use, or a request that it refuses; the message says why."""


class DamagedLeagueError(LeagueError):
    """A league whose database cannot be read."""
