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

RUNS = (
    _trainer("runs: an evaluation trains the policy's normalisation", "runs/run",
             "        trained_maps = self._trained_maps()\n",
             "        trained_maps = self._trained_maps()\n"
             "        if self.model.policy.observation_normalizer is not None:\n"
             "            self.model.policy.observation_normalizer.running.add_(1.0)\n", "runs/test_training"),
    _trainer("runs: a resume forgets the battle seeds", "vec_env", "self._run_seed = run_seed", "pass",
             "test_vec_env_state"),
    _trainer("runs: a resume forgets the schedule's progress", "runs/callbacks/clock",
             "self._start -= state.seconds", "pass", "runs/callbacks/test_progress"),
    _trainer("runs: a checkpoint is due twice", "runs/callbacks/every", "self.next = steps", "self.next = self.next",
             "runs/callbacks/test_state"),
    _trainer("runs: a stop signal does not save", "runs/callbacks/every",
             "self.every.is_due(steps) or self._stopping()", "self.every.is_due(steps)", "runs/callbacks/test_state"),
    _trainer("runs: metrics are written twice after a resume", "runs/folder", "at <= steps and ", "",
             "runs/test_folder"),
    _trainer("runs: a run that fails leaves its folder", "runs/folder", "if not is_kept():", "if False:",
             "runs/test_training"),
    _trainer("runs: two processes train in one folder", "runs/folder", "fcntl.LOCK_EX | fcntl.LOCK_NB",
             "fcntl.LOCK_SH", "runs/test_folder"),
    _trainer("runs: a resumed run may have other settings", "runs/run", "if changed or then", "if then",
             "runs/test_resume_refused"),
    _trainer("runs: the best policy is that of another stage", "runs/callbacks/evaluation",
             " or moves != self.best.moves", "", "runs/callbacks/test_state"),
    _trainer("runs: battles count for the next stage already", "runs/callbacks/curriculum",
             "if self._move is None and ", "if ", "runs/callbacks/test_curriculum"),
    _trainer("runs: an interrupted trial counts as finished", "runs/sweep",
             "if result.interrupted and not result.done:", "if False:", "runs/test_sweep"),
    _trainer("report: texts of files are not escaped", "report/markup", "html.escape(str(part))", "str(part)",
             "report/test_statistics"),
    _trainer("report: failed seeds are part of the statistics", "report/sources", "if run.failure is None]", "]",
             "report/test_comparison"),
    _trainer("supervisor: a dead learner never starts again", "supervisor/tasks",
             "and self._attempts.due:", "and not self._attempts.failures:", "supervisor/test_tasks"),
    _trainer("supervisor: a checkpoint does not count as progress", "supervisor/tasks",
             "1 if progress != self.progress else self.failures", "self.failures", "supervisor/test_tasks"),
    _trainer("supervisor: learners are not asked to save", "supervisor/supervisor", "            task.stop()\n",
             "            pass\n", "supervisor/test_supervisor"),
)  # fmt: skip


def _env(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(f"envs: {name}", f"echelon_env/{file}.py", old, new, f"tests/{test}.py")


ENVIRONMENTS = (
    _env("the final observation is the next battle's", "envs/autoreset",
         "final = FinalStep(self.battles.copy_observations()[self._shown], self._done, report.of(self._done))\n"
         "            self._start_next()\n",
         "done = self._done\n            self._start_next()\n"
         "            final = FinalStep(self.battles.copy_observations()[self._shown], done, report.of(done))\n",
         "envs/test_batch"),
    _env("truncation is reported as termination", "envs/autoreset",
         "results.terminated.copy(), results.truncated.copy()",
         "results.terminated | results.truncated, results.truncated & False", "envs/test_batch"),
    _env("max_cycles is ignored once an agent has left", "envs/autoreset", "NO_LIMIT if max_cycles is None else",
         'NO_LIMIT if max_cycles is None or not self.episodes["present"].all() else', "envs/test_parallel"),
    _env("a seed repeats its neighbour's", "envs/autoreset", "first + step * index", "first + step * (index // 2)",
         "envs/test_batch"),
    _env("a dead agent gets the observation of a living one", "envs/parallel",
         "{agent: observations[row] for agent, row in rows.items()}", "dict(zip(rows, observations, strict=False))",
         "envs/test_all_apis"),
    _env("a draw promotes", "envs/curriculum", 'info["outcome"] == 1)', 'info["outcome"] >= 0)',
         "envs/test_curriculum"),
    _env("an agent that has left acts again", "envs/aec", "self._deads_step_first()", "pass", "envs/test_aec"),
    _env("a mask allows a weapon that cools", "spaces/masks", "fires = can.fires",
         "fires = can.able[..., None] & can.mounted & can.loaded", "spaces/test_masks"),
    _env("observed masks allow a weapon that cools", "spaces/observed", "& cool & able", "& able",
         "spaces/test_observed"),
    _env("observations are normalised by a frozen copy that learns", "wrappers/statistics",
         "if not self._frozen:\n            _update", "if True:\n            _update", "wrappers/test_normalize"),
    _env("frozen returns are counted", "wrappers/statistics", "if not self._frozen:\n            self.moments.update",
         "if True:\n            self.moments.update", "wrappers/test_normalize"),
    _env("the final observations count", "wrappers/vector",
         "acts = self._resets_at_once | ~(terminations | truncations)", "acts = terminations | True",
         "wrappers/test_normalize_gymnasium"),
    _env("a stack outlives its episode", "wrappers/stack", "None:\n        self._stacks = {}", "None:\n        pass",
         "wrappers/test_stack"),
    _env("the dead observe behind BlackDeath", "wrappers/black_death", "present if over else self.env.agents",
         "present", "wrappers/test_black_death"),
    _env("the dead opponents act", "wrappers/team", "if agent in self.env.agents]\n        if not", "]\n        if not",
         "wrappers/test_team"),
    _env("memory that is used again goes unnoticed", "testing/comparison", "if first is not second:", "if False:",
         "testing/test_parallel"),
    _env("the batch's final observation is not compared", "testing/vector_rollout",
         'observation = final["obs"]', "pass", "testing/test_vector"),
    _env("SMAC wins what it loses", "interop/smac", 'infos["outcome"] > 0', 'infos["outcome"] < 0',
         "interop/adapters/test_smac"),
    _env("a configuration takes unknown fields", "config/schema",
         'raise ConfigError(f"unknown config key {path + str(key)!r}{hint}", path + str(key))', "continue",
         "config/test_battle"),
    _env("a number may be out of range", "config/schema", "max(low, -largest) <= value <= min(high, largest)",
         "-largest <= value <= largest", "config/test_battle"),
    _env("an override forgets the other fields", "config/schema", "changes[key] = override(current, value,",
         "changes[key] = override(type(current)(), value,", "config/test_battle"),
)  # fmt: skip


def _evaluate(name: str, file: str, old: str, new: str, test: str) -> Mutant:
    return Mutant(f"evaluate: {name}", f"echelon_env/{file}.py", old, new, f"tests/{test}.py")


EVALUATION = (
    _evaluate("both battles of a map from one side", "evaluate/matches", "(first, second), batch, side)",
              "(first, second), batch, 0)", "evaluate/test_matches"),
    _evaluate("both sides of a map have the same noise", "evaluate/matches", "(side, place), team_size",
              "(0, place), team_size", "evaluate/test_matches"),
    _evaluate("draws are wins in the interval", "evaluate/report", '{"win": match.wins,',
              '{"win": match.wins + match.draws,', "evaluate/test_report"),
    _evaluate("maps that were trained on are unseen", "evaluate/report", "len(played & trained)", "0",
              "evaluate/test_report"),
    _evaluate("common maps are independent", "evaluate/statistics", "np.concatenate(_check_maps(strata, maps))",
              "np.concatenate(_check_maps(strata, None))", "evaluate/test_statistics"),
    _evaluate("seeds of training are seeds of evaluation", "evaluate/seeds", "if seed not in allowed:", "if False:",
              "evaluate/test_seeds"),
    _evaluate("a suite takes another map", "evaluate/suite", "if battle.map_hash != frozen:", "if False:",
              "evaluate/test_suite"),
    _evaluate("the last sum counts alone", "evaluate/battle_totals", "sums.get(name, 0.0) + value", "value",
              "evaluate/test_report"),
    _evaluate("a proof is not compared", "evaluate/submission/proofs", "if not _is_same(battle, replayed)\n",
              "if False\n", "evaluate/test_submission"),
    _evaluate("edited results keep their hash", "evaluate/submission/files",
              "document.results_hash != submission.results_hash", "not document.results_hash",
              "evaluate/test_submission"),
    _evaluate("a draw is known before the results", "evaluate/submission/document",
              "draw.nonce, submission.results_hash, ", "draw.nonce, ", "evaluate/test_submission_draws"),
    _evaluate("a copy is ranked", "evaluate/leaderboard", "if file not in copies}", "if file}",
              "evaluate/test_leaderboard"),
    _evaluate("what fails to verify is ranked", "evaluate/leaderboard", '["verified"] is not False}',
              '["verified"] != 0.5}', "evaluate/test_leaderboard"),
    _evaluate("a replay of another map passes", "replays/replay", "if found != self.map_hash:", "if False:",
              "replays/test_replay"),
    _evaluate("a replay of another course passes", "replays/replay", "            return False", "            pass",
              "replays/test_replay"),
    _evaluate("a replay is unpacked without a limit", "replays/files", "(data, MAX_UNPACKED_BYTES)", "(data)",
              "replays/test_replay"),
    _evaluate("a changed battle is recorded on", "replays/recorder",
              "    def on_change(self) -> None:\n        self.started.clear()",
              "    def on_change(self) -> None:\n        pass", "replays/test_recorder"),
    _evaluate("frames have the south on top", "render/canvas", "self.image.height - y * self.scale",
              "y * self.scale", "render/test_frame"),
    _evaluate("a control character reaches the terminal", "cli/output",
              'return "\\n".join(map(printable, text.split("\\n")))', "return text", "cli/test_output"),
    _evaluate("a page of another origin is answered", "cli/play_server",
              ' or origin not in (None, f"http://{host}")', "", "cli/test_play"),
    _evaluate("a request to another host is answered", "cli/play_server", "host not in hosts or ", "",
              "cli/test_play"),
    _evaluate("the smaller team chooses the champion", "champions/__init__", "max(len(config.blue)",
              "min(len(config.blue)", "champions/test_champions"),
)  # fmt: skip

MUTANTS = (*PHASES, *REWARDS, *RULES, *LEARNING, *OPPONENTS, *LEAGUE, *RUNS, *ENVIRONMENTS, *EVALUATION)
