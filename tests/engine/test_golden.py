"""Golden hashes of whole battles.

`PYTHONPATH=tests python tests/support/golden_player.py` writes the hashes of changed rules.
"""

import json

import numpy as np
import pytest

from echelon_env.config.catalog import DEBRIS, MOUNTS, WRECK
from echelon_env.engine import state as st
from support.golden_player import HASHES, play
from support.playing import SIZES

DUEL_LACKS = {"paint", "splash", "interception", "fall", "rise", "legged", "hazard"}


@pytest.mark.parametrize("scenario", SIZES)
def test_golden_battles(scenario):
    hashes, decisions, engine = play(scenario)
    events = np.concatenate(decisions)
    happened = {name: int((events["kind"] == code).sum()) for code, name in enumerate(st.EVENT_KINDS)}
    assert not engine.state.battles["lost_events"].any()

    # The battles contain enough events to be a meaningful test.
    config = engine.config
    classes = {config.catalog.class_index(name) for roster in config.rosters for name in roster}
    carried = [config.catalog.mech_classes[c] for c in classes]
    for w, weapon in enumerate(config.catalog.weapons):
        if any(getattr(c, mount) == weapon.name for c in carried for mount in MOUNTS):
            mine = events[events["weapon"] == w]["kind"]
            ends = (st.HIT, st.IMPACT, st.SMOKE)
            assert (mine == st.SHOT).any(), weapon.name
            assert np.isin(mine, ends).any(), weapon.name
    # Mediums have neither painters nor splash; autocannons kill a medium before it falls or loses its legs.
    scarce = set() if any(c.anti_missile for c in carried) else DUEL_LACKS
    missing = [name for name, count in happened.items() if count == 0 and name not in scarce]
    assert missing == [], happened
    assert np.isin(engine.state.voxels, (DEBRIS, WRECK)).any()

    assert hashes == json.loads(HASHES.read_text())[scenario]
