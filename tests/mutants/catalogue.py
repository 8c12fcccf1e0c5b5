"""Changes that break the program, each with the tests that fail for it.

A text is replaced by another where it occurs, which is once in its file. Entries are anchored on short texts that say
what they do.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """A change in a file under src/, and a test file or test that fails with it."""

    name: str
    file: str
    old: str
    new: str
    test: str


def _engine(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, f"echelon_env/engine/{file}.py", old, new, f"tests/{test}.py")


def _trainer(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(name, f"echelon_train/{file}.py", old, new, f"tests/train/{test}.py")


def _without(call: str, test: str, of: str = "tick") -> Mutant:
    name, indent = f"{of} without {call.partition('(')[0].strip()}", call[: len(call) - len(call.lstrip())]
    return _engine(name, "tick", f"\n    {call}", f"\n    {indent}pass", test)


PHASES = (
    _without("age_clouds(state, b)", "rules/test_smoke"),
    _without("age_paint(tables, state, b)", "rules/test_paint"),
    _without("update_bodies(tables, state, b)", "rules/test_heat"),
    _without("move_all(tables, state, b)", "rules/test_movement"),
    _without("fire_all(tables, state, b)", "rules/test_weapons"),
    _without("fly_all(tables, state, b)", "rules/test_flight"),
    _without("settle(tables, state, b, first_event)", "rules/test_weapons"),
    _without("read_commands(tables, state, actions[b], b)", "rules/test_movement", "decision"),
    _without("score_all(tables, state, b)", "rules/test_zone", "decision"),
    _without("update_visibility(tables, state, b)", "rules/test_seeing", "decision"),
    _without("list_all_contacts(tables, state, b)", "rules/test_display", "decision"),
    _without("share_intel(tables, state, b)", "rules/test_intel", "decision"),
    _without("        observe_all(tables, state, b, places[b], observations)", "rules/test_display", "decision"),
)

REWARDS = (
    _engine("reward: approach is undiscounted", "reward", "rules.gamma * mech", "mech", "rules/test_rewards"),
    _engine("reward: the enemy's zone counts", "reward", "own_share - enemy_share", "own_share + enemy_share",
            "rules/test_rewards"),
    _engine("reward: friendly damage is free", "reward", "damage_dealt - mech.friendly_damage", "damage_dealt",
            "rules/test_rewards"),
    _engine("reward: no kills", "reward", "float(mech.kills)", "0.0", "rules/test_rewards"),
    _engine("reward: no assists", "reward", "float(mech.assists)", "0.0", "rules/test_rewards"),
    _engine("reward: a contested death costs all", "reward", "float(mech.loss)", "float(mech.died)",
            "rules/test_rewards"),
    _engine("reward: overheating in ticks", "reward", "mech.shutdown_ticks * rules.dt", "mech.shutdown_ticks",
            "rules/test_rewards"),
    _engine("reward: no loss", "reward", "== mech.team else -1.0", "== mech.team else 0.0", "rules/test_rewards"),
    _engine("reward: team spirit sums", "reward", "* total / count", "* total", "rules/test_rewards"),
)  # fmt: skip

RULES = (
    _engine("heat: cooling heats", "body", "mech.heat - cooling", "mech.heat + cooling", "rules/test_heat"),
    _engine("heat: restart when hot", "body", "mech.heat <= rules.restart_heat * mech_class", "mech.heat <= mech_class",
            "rules/test_heat"),
    _engine("heat: enemies shut mechs down", "body", "rules.max_heat_from_enemies", "rules.max_heat",
            "rules/test_simultaneity"),
    _engine("damage: friends count as enemies", "damage", "if actor.team == target.team:", "if False:",
            "rules/test_rewards"),
    _engine("zone: the lighter team gets less than nothing", "zone", "max(0.0, margin)", "margin",
            "rules/test_zone"),
    _engine("outcome: elimination goes unnoticed", "outcome", "or red.mechs_alive == 0", "",
            "engine/test_outcome_oracle"),
    _engine("line of sight: nothing blocks", "raycast", "return iy, ix\n            layer",
            "pass\n            layer",
            "rules/test_seeing"),
    _engine("line of sight: the wrong side of a corner", "raycast", "in_x >= out_y", "in_x > out_y + 1",
            "engine/test_raycast_oracle"),
    _engine("sensors: smoke hides nothing", "sensors", "if clear and not smoke:", "if clear:", "rules/test_smoke"),
    Mutant("masks: any target", "echelon_env/spaces/masks.py", "can.contacts & fires", "fires",
           "tests/spaces/test_masks.py"),
    _engine("agents: a mean over one mech less", "agents", "np.float32(size)", "np.float32(size - 1)",
            "engine/test_agents"),
    _engine("agents: cycles truncate who has left", "agents", "and episode.present and not", "and not",
            "engine/test_agents"),
    _engine("agents: cycles truncate who is terminated", "agents", " and not results.terminated[b, a]:", ":",
            "envs/test_vector"),
    _engine("agents: the first decision does not count", "agents", "battle.step_count > 0", "battle.step_count > 1",
            "engine/test_agents"),
    Mutant("autoreset: the same battle again", "echelon_env/envs/autoreset.py",
           "self._seeds, self._episodes + self._done)", "self._seeds, self._episodes)", "tests/envs/test_batch.py"),
)  # fmt: skip

LEARNING = (
    _trainer("policy: masks ignore contacts", "policy/action_masks", "_TARGETS] > 0.5)", "_TARGETS] > -1.0)",
             "policy/test_action_masks"),
    _trainer("policy: fallen mechs walk", "policy/action_masks", "able & (own[:, Self.LEGS]",
             "awake & (own[:, Self.LEGS]", "policy/test_action_masks"),
    _trainer("policy: impossible labels count", "policy/distributions", "torch.where(option_possible, -chosen, 0.0)",
             "-chosen", "policy/test_distributions"),
    _trainer("policy: densities before tanh", "policy/distributions", "math.log(2.0 * math.pi) - slope",
             "math.log(2.0 * math.pi)", "policy/test_distributions"),
    _trainer("advantages: across ends of episodes", "ppo/gae", ".masked_fill(dones[step], 0.0)", "", "ppo/test_gae"),
    _trainer("advantages: no discount", "ppo/gae", "gamma * gae_lambda", "gae_lambda", "ppo/test_gae"),
    _trainer("advantages: truncated episodes end", "ppo/gae", "bootstraps.double()", "0.0", "ppo/test_gae"),
    _trainer("PPO: logarithm for the ratio", "ppo/losses", "log_ratio.exp()", "log_ratio", "ppo/test_losses"),
    _trainer("PPO: the better of the two surrogates", "ppo/losses", "torch.minimum(", "torch.maximum(",
             "ppo/test_losses"),
    _trainer("PPO: ratios are clipped below only", "ppo/losses", "clamp(low, high)", "clamp(low)", "ppo/test_losses"),
    _trainer("PPO: the critic learns from all samples", "ppo/losses",
             "torch.where(batch.loss_mask, (returns - values) ** 2, 0.0)", "((returns - values) ** 2)",
             "ppo/test_losses"),
    _trainer("imitation: the learner plays the teacher's share", "ppo/teacher", "random() < share",
             "random() >= share", "ppo/test_teacher"),
    _trainer("imitation: the teacher's state is lost", "ppo/training_state", "if model.teacher is not None:",
             "if False:", "ppo/test_training_state"),
    _trainer("imitation: the teacher's battles are the learner's", "ppo/collector", "bool(teacher.plays[row])", "False",
             "ppo/test_teacher"),
    _trainer("PPO: values are denormalised twice", "ppo/collector", "else normalizer.denormalize(predictions)",
             "else normalizer.denormalize(normalizer.denormalize(predictions))", "ppo/test_teacher"),
    _trainer("PPO: observations are converted twice", "ppo/collector",
             "            with torch.no_grad():\n                actions, values",
             "            observations = self._on_device(self._last_obs)\n"
             "            with torch.no_grad():\n                actions, values", "ppo/test_teacher"),
    _trainer("PPO: the actor learns from all samples", "ppo/losses", "batch.actor_mask.nonzero()",
             "torch.ones_like(batch.actor_mask).nonzero()", "ppo/test_losses"),
    _trainer("PPO: advantages keep their mean", "ppo/normalize", "(advantages - mean[groups])", "advantages",
             "ppo/test_normalize"),
    _trainer("PPO: advantages are normalised by all samples", "ppo/normalize", "torch.where(mask, advantages",
             "torch.where(torch.isfinite(advantages), advantages", "ppo/test_normalize"),
    _trainer("normalizer: moments merge wrongly", "policy/observation_normalizer",
             "delta.square() * count", "delta.square()", "policy/test_observation_normalizer"),
    _trainer("resume: a state is read without a check", "runs/state", '            check_fields(state, "")\n', "",
             "runs/test_state"),
    _trainer("resume: it is done again at once", "runs/callbacks/every", "steps + self.every", "steps",
             "runs/callbacks/test_state"),
    _trainer("checkpoint: without the normalizer's moments", "tensor_files", ", *module.named_buffers())", ",)",
             "checkpoints/test_checkpoint"),
)  # fmt: skip

OPPONENTS = (
    _trainer("opponents: decisions keep what gradients need", "opponents/policy_batch",
             "with torch.inference_mode(), torch_threads(1):", "with torch_threads(1):", "opponents/test_policy_batch"),
    _trainer("opponents: the learner stays as it was", "runs/callbacks/opponents",
             "        self.refresh(self.model.policy)", "        pass", "runs/test_opponents"),
    Mutant("policy: an engine for its limits", "echelon_env/networks/possible.py",
           "    tables = build_tables(config)\n    rules",
           "    from echelon_env.engine.core import BattleEngine\n"
           "    tables = BattleEngine(config) and build_tables(config)\n    rules",
           "tests/train/checkpoints/test_players.py"),
)  # fmt: skip

LEAGUE = (
    _trainer("retirement: the champion is offered", "supervisor/ratings",
             '{plan.start, champion.name if champion else ""}', "{plan.start}", "supervisor/test_ratings"),
    _trainer("promotion: always one deviation", "supervisor/ratings", "play=self._validate, k=self._plan.k",
             "play=self._validate", "supervisor/test_ratings"),
    _trainer("Glicko-2: uncertain opponents count in full", "league/ratings/glicko2", "math.sqrt(1 + 3 * (",
             "math.sqrt(1 + 0 * (", "league/ratings/test_glicko2"),
    _trainer("Glicko-2: the deviation never falls", "league/ratings/glicko2", "(1 + deviation**2 * information)", "1",
             "league/ratings/test_glicko2"),
    _trainer("Glicko-2: losers gain", "league/ratings/results", "(second, first, games, games - points)",
             "(second, first, games, points)", "league/ratings/test_glicko2"),
    _trainer("Bradley-Terry: dispersion is ignored", "league/ratings/bradley_terry",
             "payoffs.games / payoffs.dispersion", "1.0 * payoffs.games", "league/ratings/test_bradley_terry"),
    _trainer("payoffs: reversed pairs keep their scores", "league/ratings/payoffs",
             "values, 1 - values)", "values, values)", "league/ratings/test_payoffs"),
    _trainer("PFSP: the weak are preferred", "league/matchmaking/opponents", "(1 - chances) ** 2", "chances**2",
             "league/matchmaking/test_opponents"),
    _trainer("PFSP: equals are avoided", "league/matchmaking/opponents", "chances * (1 - chances)",
             "1 - chances * (1 - chances)", "league/matchmaking/test_opponents"),
    _trainer("equilibrium: mixtures are not verified", "league/ratings/nash_averaging", "<= TOLERANCE:", "<= 1:",
             "league/ratings/test_nash_averaging"),
    _trainer("equilibrium: not of maximum entropy", "league/ratings/nash_averaging",
             "yield _most_even(payoff, multiple)", "yield multiple / multiple.sum()",
             "league/ratings/test_nash_averaging"),
)  # fmt: skip

LEAGUE_RECORDS = (
    _trainer("league: the champion retires", "league/store/registry", "if name == _champion(connection):",
             "if False:", "league/store/test_promotion"),
    _trainer("league: no member retires twice", "league/store/registry", "if name == self.settings.anchor:",
             'if name == self.settings.anchor or member.state == "retired":', "league/store/test_registry"),
    _trainer("league: no match of a retired member is recorded", "league/store/records", "if name not in members:",
             'if name not in members or members[name].state == "retired":', "league/store/test_registry"),
    _trainer("league: retired members are rated by new matches", "league/playing/runner",
             ' if member.state == "active"}', "}", "league/playing/test_runner"),
    _trainer("league: a period without matches is closed", "league/store/registry",
             "self._close(empty=False)", "self._close(empty=True)", "league/store/test_registry"),
    _trainer("league: a period is closed with ratings out of date", "league/store/registry",
             " and periods.read_ratings(connection, last) == inputs.before", "", "league/store/test_growth"),
    _trainer("league: matches are rated in every period", "league/store/periods",
             "read_ratings(connection, number),\n        read_results(connection, after_match,",
             "read_ratings(connection, number),\n        read_results(connection, 0,", "league/store/test_registry"),
    _trainer("league: a match delivered twice is new", "league/store/registry", "return False\n            same",
             "return True\n            same", "league/store/test_registry"),
    _trainer("league: a pair plays on a map twice", "league/playing/runner", "if candidate not in used)",
             "if candidate not in ())", "league/playing/test_runner"),
    _trainer("league: learners do not drift", "league/ratings/glicko2",
             "math.hypot(rating.deviation / SCALE, rating.volatility)", "rating.deviation / SCALE",
             "league/ratings/test_glicko2"),
    _trainer("league: past learners drift", "league/store/periods", "AND n.id > m.id)", "AND n.id < m.id)",
             "league/store/test_registry"),
    _trainer("league: a champion may lose its title to one that it beats", "league/store/promotion",
             " and not lost_significantly(interval)", "", "league/store/test_promotion"),
    _trainer("league: a candidate plays until it wins", "league/store/promotion",
             "    if _is_rated(league, uuid) is None:\n        played", "    if True:\n        played",
             "league/store/test_promotion"),
    _trainer("league: an import overwrites", "league/store/transfer",
             "    with new_folder(path) as temporary:\n",
             "    shutil.rmtree(path, ignore_errors=True)\n    with new_folder(path) as temporary:\n",
             "league/store/test_transfer"),
    _trainer("league: an import is larger than its file", "league/store/transfer", "> file.stat().st_size:", "< 0:",
             "league/store/test_transfer"),
    _trainer("league: a damaged league is imported", "league/store/transfer", "    if findings:", "    if False:",
             "league/store/test_transfer"),
    _trainer("league: a stranger's trigger stays", "league/store/database", "    if problems:\n        raise Damaged",
             "    if False:\n        raise Damaged", "league/store/test_fsck"),
    _trainer("league: a full league grows", "league/store/database", "    if there + rows > most:", "    if False:",
             "league/store/test_growth"),
    _trainer("league: writers do not wait", "league/store/database", '(folder, "BEGIN IMMEDIATE")', '(folder, "BEGIN")',
             "league/store/test_database"),
    _trainer("league: deleted rows go unnoticed", "league/store/fsck", "if there != given:", "if False:",
             "league/store/test_fsck"),
    _trainer("league: altered ratings go unnoticed", "league/store/fsck", "    if wrong:\n", "    if False:\n",
             "league/store/test_fsck"),
    _trainer("league: an altered policy plays", "league/playing/jobs", "    if problems:\n", "    if False:\n",
             "league/playing/test_jobs"),
    _trainer("league: a replay of other code is not refused", "league/playing/replay", "if reasons and not force:",
             "if False:", "league/playing/test_replay"),
    _trainer("league: a match whose worker is killed is lost", "league/playing/executors",
             "waiting.appendleft(job)", "pass", "league/playing/test_executors"),
    _trainer("league: a cycle is explained by noise", "league/ratings/cycles", "np.count_nonzero(noise >= cyclic)",
             "np.count_nonzero(noise >= 0)", "league/ratings/test_cycles"),
)  # fmt: skip

MUTANTS = (*PHASES, *REWARDS, *RULES, *LEARNING, *OPPONENTS, *LEAGUE, *LEAGUE_RECORDS)
