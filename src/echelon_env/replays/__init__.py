"""Replays: battles that are recorded, checked, simulated again, shown, and exported for offline learning.

A replay holds what a battle follows from, its configuration, seeds and actions, and a digest of its state after every
decision. `Recorder` records any environment, `write_page` makes a page that shows the battle. `Game` makes one in which
a person plays.
"""

from echelon_env.replays.export import export_minari, export_npz, transitions
from echelon_env.replays.files import read_replay, write_replay
from echelon_env.replays.films import export_gif
from echelon_env.replays.game import Game
from echelon_env.replays.matches import record_battle
from echelon_env.replays.page import show, write_page
from echelon_env.replays.recorder import Recorder
from echelon_env.replays.replay import Replay, ReplayError

__all__ = [
    "Game",
    "Recorder",
    "Replay",
    "ReplayError",
    "export_gif",
    "export_minari",
    "export_npz",
    "read_replay",
    "record_battle",
    "show",
    "transitions",
    "write_page",
    "write_replay",
]
