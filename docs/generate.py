"""Writes the reference pages that follow from the layouts: ``python docs/generate.py``."""

from pathlib import Path

from echelon_env.actions import ACTION_DIM, describe_action
from echelon_env.observations import OBSERVATION_DIM, describe_observation

OBSERVATIONS = f"""# Observations

The flat observation of one mech: {OBSERVATION_DIM} float32 values, finite and within the ranges below. Widths are the
same for every class and preset; rows that a class's suite or a roster does not fill are zeros with a zero in the mask.
Positions and velocities are in the mech's own frame (forward, left), so one policy can play either side. A stream with
several rows repeats its features row by row from the index given; `echelon_env.observations.STREAMS` has the slices and
`feature_names()` a name for every entry. The cells of `ego_map` go from behind to ahead, and within that from right to
left; those of `battle_map` by rows of the turned map. A dead mech observes zeros.

{describe_observation()}
"""

ACTIONS = f"""# Actions

The action of one mech: {ACTION_DIM} float32 values in [-1, 1]. Values outside are cut, values that are not finite
become 0 and are counted in `info["bad_actions"]`; what cannot be carried out (an empty mount, a weapon that is cooling,
a contact that is not there) does nothing.

{describe_action()}
"""

PAGES = {"observations.md": OBSERVATIONS, "actions.md": ACTIONS}


def main() -> None:
    """Write every page beside this file."""
    for name, text in PAGES.items():
        (Path(__file__).parent / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
