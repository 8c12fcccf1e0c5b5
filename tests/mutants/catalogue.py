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

ENGINE = (
    _engine("engine: actions beyond 1 are not clipped", "commands",
            "clip(value, ACTION_LOW, ACTION_HIGH) if finite", "value if finite", "rules/test_comm"),
    _engine("engine: non-finite actions are not counted", "commands", "bad += not finite", "bad += 0",
            "engine/test_core"),
    _engine("engine: a snapshot is restored without a check", "core",
            "        check_values(self.config, self.tables, {name: snapshot[name] for name in arrays})\n", "",
            "engine/test_snapshots"),
    _engine("engine: observations of before a snapshot was restored", "core", "(b, b + 1, 0, OBSERVE) for b in numbers",
            "(b, b + 1, 0, OBSERVE) for b in numbers[1:]", "engine/test_core"),
    _engine("engine: the global state shows dead mechs", "global_state",
            "if mechs[m].alive:\n                _write_unit", "if True:\n                _write_unit",
            "engine/test_global_state"),
    _engine("engine: the errors of threads are lost", "workers", "for error in filter(None, errors):",
            "for error in ():", "engine/test_workers"),
    _engine("engine: a forked process waits for threads that it has not", "workers", "        workers._renew()",
            "        pass", "engine/test_workers"),
    _engine("engine: a pool has one map for all seeds", "maps", "return episode_seed(seed, 1) % len(self.seeds)",
            "return 0", "engine/test_maps"),
    _engine("engine: a pool has the same map twice", "maps", "if len(set(self.seeds)) < len(self.seeds):", "if False:",
            "engine/test_maps"),
    _engine("engine: maps of a pool differ from their recipes", "maps", "if seed in self._hashes:", "if False:",
            "engine/test_maps"),
    _engine("engine: a pool keeps what the first materials pack", "maps",
            "return self._packed.get(materials, {}).get(seed)",
            "return next(iter(self._packed.values()), {}).get(seed)", "engine/test_maps"),
    _engine("engine: a damaged manifest is accepted", "_library", "    if damaged:\n", "    if False:\n",
            "engine/test_library"),
    _engine("engine: a damaged library is loaded", "_library", "    if file_digest(built) != digest:\n",
            "    if False:\n", "engine/test_library"),
    _engine("engine: a library of older kernels is loaded", "_library", "    if changed:\n", "    if False:\n",
            "engine/test_library"),
    _engine("engine: read-only arrays are bound", "_library", "if not value.flags.carray:",
            "if not value.flags.contiguous:", "engine/test_library"),
    _engine("engine: code of older constants is run", "_jit",
            'yield f"{where} reads {name} = {_constant(value)}"', 'yield f"{where} reads {name}"', "engine/test_jit"),
)  # fmt: skip

TERRAIN = (
    Mutant("terrain: spawn corners do not depend on the seed", "echelon_env/terrain/placement.py",
           "rng.random(2) < 0.5", "rng.random(2) < 2.0", "tests/terrain/test_proofs.py"),
    Mutant("terrain: cover does not depend on the seed", "echelon_env/terrain/generator.py",
           "rng.choice(COVER_EDGES, (len(cells), 2))",
           "np.random.default_rng(0).choice(COVER_EDGES, (len(cells), 2))",
           "tests/terrain/test_golden_maps.py"),
    Mutant("terrain: spawn places inside walls", "echelon_env/terrain/generator.py",
           "spawn_areas(config, spawns) | disc", "disc", "tests/terrain/test_proofs.py"),
    Mutant("terrain: pockets stay closed", "echelon_env/terrain/connectivity.py",
           "            cleared |= paths\n", "", "tests/terrain/test_connectivity.py"),
    Mutant("terrain: mirrored maps are not symmetric", "echelon_env/terrain/generator.py",
           "        _mirror(voxels)  #", "        pass  #", "tests/terrain/test_mirrored.py"),
    Mutant("terrain: direct lanes are straight", "echelon_env/terrain/lanes.py", "[spawn, bend, zone]",
           "[spawn, zone]", "tests/terrain/test_lanes.py"),
    Mutant("terrain: the content hash without the spawn places", "echelon_env/terrain/generator.py",
           '        digest.update(self.spawns.astype("<f8").tobytes())\n', "", "tests/terrain/test_recipe.py"),
    Mutant("terrain: recipes of another generator are played", "echelon_env/terrain/recipe.py",
           "if self.generator != GENERATOR_VERSION:", "if False:", "tests/terrain/test_recipe.py"),
    Mutant("terrain: brushes paint too high", "echelon_env/terrain/generator.py",
           "if plot.voxels[plot.max_height :].any():", "if False:", "tests/terrain/test_custom_biome.py"),
    Mutant("terrain: sight lines pass walls", "echelon_env/terrain/statistics.py",
           "bordered = np.pad(blocks_sight, 1", "bordered = np.pad(blocks_sight & False, 1",
           "tests/terrain/test_statistics.py"),
)  # fmt: skip

PLAYERS = (
    Mutant("scripted: one weapon never fires", "echelon_env/opponents/fire.py", "for i in range(MOUNT_COUNT):",
           "for i in range(1, MOUNT_COUNT):", "tests/opponents/test_skill.py"),
    Mutant("scripted: the zone is no goal", "echelon_env/opponents/tactics.py",
           "go(plan, forward, left, 1.0 if outside else 0.0)", "go(plan, forward, left, 0.0)",
           "tests/opponents/test_skill.py"),
    Mutant("scripted: lava is walked on", "echelon_env/opponents/chart.py", "(1 << BURNS if hazard > 0.0 else 0)", "0",
           "tests/opponents/test_navigation.py"),
    Mutant("scripted: the seed is ignored", "echelon_env/opponents/scripted.py",
           '        self._memories["seed"] = self.seed\n', "", "tests/opponents/test_contract.py"),
    Mutant("scripted: a reset clears all rows", "echelon_env/opponents/scripted.py", "self._memories[mask] = np.zeros",
           "self._memories[:] = np.zeros", "tests/opponents/test_contract.py"),
    Mutant("scripted: smoke counts as a gun", "echelon_env/opponents/knowledge.py",
           "for mount, weapon in mounted if not _only_smoke(weapon)]", "for mount, weapon in mounted]",
           "tests/opponents/test_knowledge.py"),
    Mutant("handicap: no aim error", "echelon_env/opponents/handicap.py",
           "self._apply_aim_error(observations) if self.handicap.aim_error > 0.0 else observations", "observations",
           "tests/opponents/test_handicap.py"),
    Mutant("handicap: no delay", "echelon_env/opponents/handicap.py",
           "math.floor(self.handicap.reaction_delay / self._decision_seconds + 0.5)", "0",
           "tests/opponents/test_handicap.py"),
    Mutant("handicap: all shots are fired", "echelon_env/opponents/handicap.py", "if self.handicap.fire_rate < 1.0:",
           "if False:", "tests/opponents/test_handicap.py"),
    Mutant("handicap: rows that start keep old actions", "echelon_env/opponents/handicap.py",
           "            actions[mask] = 0.0\n", "            pass\n", "tests/opponents/test_handicap.py"),
    Mutant("mixture: the same opponent in every battle", "echelon_env/opponents/mixture.py",
           "            self._battles[r] += 1\n", "", "tests/opponents/test_mixture.py"),
    Mutant("mixture: a restored state is not checked", "echelon_env/opponents/mixture.py",
           "if ((level < UNDRAWN) | (level >= len(self._names))).any() or (battles < 0).any():", "if False:",
           "tests/opponents/test_resuming.py"),
    Mutant("storage: pipes are read", "echelon_env/storage/reading.py",
           "if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):", "if False:", "tests/storage/test_reading.py"),
    Mutant("storage: a failed write removes the old file", "echelon_env/storage/atomic.py",
           "    handle, temporary = tempfile", "    path.unlink(missing_ok=True)\n    handle, temporary = tempfile",
           "tests/storage/test_atomic.py"),
)  # fmt: skip

MUTANTS = (*PHASES, *REWARDS, *RULES, *ENGINE, *TERRAIN, *PLAYERS, *LEARNING, *OPPONENTS, *LEAGUE)
