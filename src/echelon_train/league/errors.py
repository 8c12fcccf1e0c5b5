"""Errors of leagues: missing, foreign or damaged folders, and refused requests."""

from echelon_train.errors import TrainError


class LeagueError(TrainError):
    """A league is missing, foreign, damaged or in use, or it refuses a request. The message has the reason."""


class DamagedLeagueError(LeagueError):
    """A league whose database cannot be read."""
