import numpy as np
import pytest

from echelon_env import BattleEngine, opponents
from echelon_env.engine.kernels import entry_point, integer
from echelon_env.engine.state import NO_MECH
from echelon_env.engine.targeting import is_valid_target
from echelon_env.layout.observations import CONTACT_ROWS
from echelon_env.opponents.knowledge import make_knowledge
from echelon_env.opponents.memory import PLAN
from echelon_env.opponents.senses import own_class
from echelon_env.opponents.targets import reaches
from support.playing import scripted_actions


@entry_point
def compare(knowledge, tables, state, observations, plans, verdicts):
    """Count the verdicts (2, 2) of engine and player on all living mechs, contacts and mounts."""
    mechs = state.mechs
    for b in range(mechs.shape[0]):
        for m in range(mechs.shape[1]):
            if not mechs[b, m].alive or state.battles[b].over:
                continue
            plans[0].mech_class = own_class(observations[b, m])
            for row in range(CONTACT_ROWS):
                o = integer(mechs[b, m].contacts[row])
                if o == NO_MECH:
                    continue
                for mount in range(4):
                    w = integer(tables.classes[mechs[b, m].mech_class].weapon[mount])
                    if w >= 0:
                        engine = is_valid_target(tables, state, b, m, o, tables.weapons[w])
                        player = reaches(knowledge, observations[b, m], plans[0], mount, row)
                        verdicts[int(engine), int(player)] += 1


@pytest.mark.long
def test_players_predict_the_reach_of_their_weapons():
    engine = BattleEngine("skirmish", 8)
    players = tuple(opponents.make("expert", seed, engine.config) for seed in range(2))
    engine.reset(range(8))
    verdicts = np.zeros((2, 2), np.int64)
    for _ in range(300):
        engine.step(scripted_actions(engine, players))
        compare(
            make_knowledge(engine.config),
            engine.tables,
            engine.state,
            engine.observations,
            np.zeros(1, PLAN),
            verdicts,
        )
    assert verdicts[0, 0] > 1000
    assert verdicts[1, 1] > 1000
    wrong = verdicts[0, 1] + verdicts[1, 0]
    assert wrong <= 1e-4 * verdicts.sum()  # an observation's entries are rounded to float32
