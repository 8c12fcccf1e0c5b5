"""A run: the algorithm, its environment, and the callbacks around them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from echelon_env.evaluate import named_player, validation_seed
from echelon_env.networks.checkpoint import BEST_FILE
from echelon_env.networks.weights import CheckpointError
from echelon_env.replays import ReplayError, record_battle
from echelon_env.storage.atomic import write_json
from echelon_train.checkpoints.checkpoint import Checkpoint, TrainingState, checkpoint_name, save_in_run
from echelon_train.checkpoints.players import network_player
from echelon_train.config.train import TrainConfig
from echelon_train.errors import RunFolderError
from echelon_train.opponents.pool import OpponentPool
from echelon_train.policy import BattlePolicy
from echelon_train.ppo import distributed
from echelon_train.ppo.distributed_state import gather_state, rank_state
from echelon_train.ppo.training_state import restore_training_state, training_state
from echelon_train.runs.building import build_model, make_env, make_teacher
from echelon_train.runs.callbacks import (
    BattleResults,
    BattleTotalsCallback,
    ClockCallback,
    CurriculumCallback,
    EvaluationCallback,
    EveryCallback,
    LeagueCallback,
    OpponentsCallback,
    ProgressCallback,
    StopCallback,
)
from echelon_train.runs.callbacks.battle_totals import TENSORS
from echelon_train.runs.curves import CURVES_FILE, save_run_curves
from echelon_train.runs.evaluation import SCENARIO, Evaluation, evaluate
from echelon_train.runs.loggers import FILMS_FOLDER, NOT_TEXT, write_film
from echelon_train.runs.state import Pending, RunState, check_same_run, pending_metrics
from echelon_train.state_space import state_room
from echelon_train.tensor_files import weights_of

LEAGUE = "league"
"""The opponent that a checkpoint names for a policy that trained in a league."""
CURVES_SECONDS = 120.0
"""Time between two pictures of the curves during training; one takes about a second."""


@dataclass(frozen=True)
class TrainResult:
    """How a run ended."""

    checkpoint: Path  # folder of the last checkpoint
    steps: int  # samples that the policy trained on, in all parts of the run
    interrupted: bool  # by a signal
    done: bool  # whether the run has reached its end: its steps or its battles are done, or its time is up
    nothing: str = ""  # why this part of the run has not trained at all; empty if it has


class Run:
    """A run that learns in the folder `out`, is saved between two iterations, and can be restored.

    `should_continue` is that of `train`, and `initial` the policy whose weights it starts with, see `build_model`.
    """

    def __init__(
        self,
        config: TrainConfig,
        out: Path,
        device: str,
        console: Console,
        should_continue: Callable[[int, Evaluation], bool] | None = None,
        initial: BattlePolicy | None = None,
    ) -> None:
        self._config, self._out, self._console = config, out, console
        self._should_continue = should_continue
        self._results = BattleResults()
        self._clock = ClockCallback(config, self._results)
        own = config.stage(0).of_process(distributed.rank())
        self._state_mechs = max(state_room(run.battle) for run in config.plain_runs())
        self._earlier_maps: frozenset[str] = frozenset()  # content hashes of the maps of earlier stages
        self._pending: dict[str, Pending] = {}  # metrics that a restored run had recorded but not yet written
        self._league = self._opponents = None
        if config.league.path:
            self._league = LeagueCallback(own, device, self.save, self._set_schedules, console)
        else:
            self._opponents = OpponentsCallback(device)
            self._opponents.enter(own)
        env = make_env(own, state_mechs=self._state_mechs, opponent=self._pool)
        self.model = build_model(config, env, device, initial)
        self._refresh_opponents()
        self.model.before_rollout = self._prepare_rollout
        self.model.remaining = self._remaining
        self._curriculum = CurriculumCallback(config, console)
        self._totals = BattleTotalsCallback(out if distributed.rank() == 0 else None)
        self._stop = StopCallback(console, self._clock.is_up)
        self._saved = Path()  # the last checkpoint

        def stopping() -> bool:
            return self._stop.stopping

        self._checkpoints = EveryCallback(config.checkpoint_every, self._save_now, stopping, saves=True)
        self._evaluations = EvaluationCallback(
            config.eval_every, self._evaluate, self._keep_best, lambda: self._curriculum.moves, stopping
        )
        self._films = EveryCallback(config.film_every, self._film, stopping)
        self._progress = ProgressCallback(config.steps, self._results, self._clock, console)
        self._drawn = time.monotonic()

    def learn(self, logger: Logger) -> TrainResult:
        """Train until the run's end, or until it is stopped, and save. Metrics go to the logger.

        In a distributed run the metrics of battles, rollouts and evaluations are those of the first process, which
        plays the evaluations alone. Metrics of updates that are a sum or a mean over minibatches cover the samples of
        all processes; the others cover those of the first.

        Raises
        ------
        NonFiniteError
            When the gradients of several minibatches in a row were not finite.
        CheckpointError
            For weights that are not finite when they are to be saved.
        OSError
            If the run's folder cannot be written. Earlier checkpoints stay valid, and the run can be resumed from them.
        """
        callbacks: list[BaseCallback] = [self._clock, self._results, self._totals, self._curriculum, self._stop]
        callbacks.append(self._checkpoints)
        if self._config.eval_every:
            callbacks.append(self._evaluations)
        if self._config.film_every:
            callbacks.append(self._films)
        callbacks += [each for each in (self._league, self._opponents) if each is not None]
        callbacks.append(self._progress)  # last, because it shows what the others have recorded
        model = self.model
        self._announce_warmup()
        model.set_logger(logger)
        for name, pending in self._pending.items():
            pending.record(logger, name)
        self._name_best()  # again, because a run may be killed just before this
        before = model.num_timesteps
        remaining = max(self._config.steps - before, 0)
        with self._stop.signals():
            try:
                model.learn(remaining, callback=callbacks, reset_num_timesteps=False)
            finally:
                self._progress.close()
            if self._stop.stopping:  # and saved by the callback
                return TrainResult(self._saved, model.num_timesteps, self._stop.interrupted, done=False)
            checkpoint = self._save_now()
            if self._league is not None:
                self._league.finish(checkpoint)
            self._clock.record()
            model.logger.record("time/total_timesteps", model.num_timesteps, exclude="tensorboard")
            model.logger.dump(model.num_timesteps)  # the last update and evaluation
            nothing = self._clock.used_up(before) if model.num_timesteps == before else ""
            return TrainResult(checkpoint, model.num_timesteps, self._stop.interrupted, True, nothing)

    def save(self, steps: int) -> Path:
        """Write a checkpoint that the run can be resumed from; returns its folder.

        All processes of a distributed run call it, and the first one writes. Raises as `save_in_run`.
        """
        tensors, model = training_state(self.model)
        tensors |= self._totals.state_tensors()
        values = RunState(
            config=self._config.to_dict(),
            model=model,
            clock=self._clock.state,
            curriculum=self._curriculum.state,
            results=self._results.state,
            totals=self._totals.state,
            checkpoints=self._checkpoints.every,
            evaluations=self._evaluations.every,
            films=self._films.every,
            best=self._evaluations.best,
            earlier_maps=tuple(sorted(self._earlier_maps)),
            league=None if self._league is None else self._league.learner.state,
            opponents=self._pool.state,
            pending=pending_metrics(self.model.logger),
        )
        checkpoint = Checkpoint(
            self.model.policy,
            self._config.network,
            self._curriculum.config.battle,
            self._opponent,
            steps,
            self._trained_maps(),
        )
        state = TrainingState(*gather_state(tensors, values.to_dict()))
        folder = self._saved = distributed.broadcast_object(lambda: save_in_run(self._out, checkpoint, state))
        self._totals.write(steps)
        return folder

    def _save_now(self) -> Path:
        return self.save(self.model.num_timesteps)

    def restore(self, checkpoint: Checkpoint, state: TrainingState) -> None:
        """Continue from a checkpoint of the same run, in a `Run` that has not trained yet.

        Raises RunFolderError for settings that differ and are not `CHANGEABLE`, and CheckpointError if the checkpoint
        does not fit: other weights, an environment that rejects its state, another number of processes, or damage. The
        run cannot be used then, because a part of it may have been restored.
        """
        tensors, plain = rank_state(state.tensors, state.values)
        values = RunState.from_dict(plain)
        check_same_run(values.config, self._config)
        if (values.league is None) != (self._league is None):
            raise CheckpointError("training state: expected opponents of a league, or without one, as the run has")
        self._clock.restore(values.clock)
        with _state_errors():
            self._curriculum.restore(values.curriculum)
        self._results.state = values.results
        self._checkpoints.every, self._evaluations.every = values.checkpoints, values.evaluations
        self._films.every, self._evaluations.best = values.films, values.best
        self._earlier_maps, self._pending = frozenset(values.earlier_maps), values.pending
        expected = {
            "network": self._config.network,
            "battle": self._curriculum.config.battle,
            "opponent": self._opponent,
            "steps": values.model.num_timesteps,
        }
        for name, value in expected.items():
            if getattr(checkpoint, name) != value:
                raise CheckpointError(f"checkpoint: {name}: expected {value}, got {getattr(checkpoint, name)}")
        if self._curriculum.moves:
            self._change_env()
        theirs, ours = weights_of(checkpoint.policy), weights_of(self.model.policy)
        if theirs.keys() != ours.keys():
            raise CheckpointError(f"weights: missing or unknown: {', '.join(sorted(theirs.keys() ^ ours.keys())[:4])}")
        for name, tensor in ours.items():
            tensor.copy_(theirs[name])
        self._refresh_opponents()
        others = {name: tensor for name, tensor in tensors.items() if not name.startswith(TENSORS)}
        restore_training_state(self.model, others, values.model)
        with _state_errors():
            self._totals.restore(values.totals, tensors, self.model.get_env())
        # last, because new battles above have drawn opponents
        if self._league is not None and values.league is not None:
            self._league.learner.restore(values.league)
        with _state_errors():
            self._pool.restore(values.opponents)

    def draw_curves(self) -> None:
        """Draw the metrics written so far; a picture that cannot be drawn is reported, and does not stop the run."""
        self._drawn = time.monotonic()
        if distributed.rank() > 0:
            return
        try:
            save_run_curves(self._out)
        except (OSError, RunFolderError) as error:
            self._console.print(f"{CURVES_FILE} cannot be drawn: {error}", markup=False)

    def _announce_warmup(self) -> None:
        """Say that the policy does not change at first, if it does not."""
        ppo = self._config.ppo
        left = ppo.critic_warmup - self.model._n_updates // ppo.n_epochs
        if left > 0:
            decisions = left * ppo.n_steps * self._config.rows * self._config.processes
            text = f"(ppo.critic_warmup): {left}, up to {decisions:,} decisions"
            self._console.print(f"Only the critic learns in the first rollouts {text}", highlight=False)

    def close(self) -> None:
        """Stop the display and the environment's threads, without saving. Safe to call twice and after an error."""
        self._progress.close()
        self.model.get_env().close()
        self._pool.close()

    @property
    def _opponent(self) -> str:
        """The opponent in training, as a checkpoint names it."""
        return str(self._curriculum.config.opponent) if self._league is None else LEAGUE

    @property
    def _pool(self) -> OpponentPool:
        callback = self._league or self._opponents
        assert callback is not None
        return callback.pool

    def _remaining(self, share: float) -> float:
        """The share of the run that is left, of a learner in a league that of its stage, from 1 to 0.

        `share` is that of the samples.
        """
        if self._league is not None:
            return self._league.learner.stage_left(self.model.num_timesteps)
        return min(share, self._clock.remaining())

    def _refresh_opponents(self) -> None:
        if self._league is not None:
            self._league.refresh()
        if self._opponents is not None:
            self._opponents.refresh(self.model.policy)

    def _prepare_rollout(self) -> None:
        """Enter the next stage if that is decided, set the schedules to the present share of the run, draw curves."""
        if self._config.curriculum is not None:  # the first process decides for all
            self._curriculum.restore(distributed.broadcast_object(lambda: self._curriculum.state))
        if self._curriculum.advance():
            self._earlier_maps |= self._trained_maps() or frozenset()
            self._change_env()
        self._set_schedules()
        if time.monotonic() - self._drawn >= CURVES_SECONDS:
            self.draw_curves()

    def _set_schedules(self) -> None:
        """Set the schedules to the present share of the run."""
        self.model._update_current_progress_remaining(self.model.num_timesteps, self._config.steps)
        remaining = self.model._current_progress_remaining
        own = self._curriculum.config.of_process(distributed.rank())
        rewards = self._config.reward_schedules.at(own.battle.rewards, remaining)
        self.model.get_env().env_method("set_rewards", rewards)
        self._pool.set_remaining(remaining)

    def _change_env(self) -> None:
        config, moves = self._curriculum.config, self._curriculum.moves
        self.model.get_env().close()
        assert self._opponents is not None  # in a league there is no curriculum
        self._pool.close()
        self._opponents.enter(config, moves)
        self._refresh_opponents()
        env = make_env(config, moves, self._state_mechs, self._pool)
        self.model.replace_env(env)
        self.model.set_teacher(make_teacher(config, env, moves))
        self.model.policy.set_battle(config.battle)

    def _trained_maps(self) -> frozenset[str] | None:
        pool = self.model.get_env().get_attr("battles", 0)[0].engine.maps
        if pool is None:
            return None
        every = distributed.gather_objects(pool.content_hashes | self._earlier_maps)
        return distributed.broadcast_object(lambda: frozenset().union(*every))

    def _evaluate(self) -> Evaluation:
        trained_maps = self._trained_maps()
        found = distributed.broadcast_object(
            lambda: evaluate(
                network_player("policy", self.model.policy, trained_maps=trained_maps),
                self._curriculum.config.evaluation_opponents,
                self._curriculum.config.battle,
                num_battles=self._config.evaluation_battles,
                seed=validation_seed(self._config.seed),
                map_seeds=self._config.evaluation_maps,
                num_threads=self._config.threads,
            )
        )
        ask, steps = self._should_continue, self.model.num_timesteps
        self._totals.add_evaluation(steps, SCENARIO, found.totals)
        if not distributed.broadcast_object(lambda: ask is None or ask(steps, found)):  # only the first process asks
            self._stop.end()
        return found

    def _film(self) -> None:
        """Film a battle of the policy, in a stage always on the same map, into the run's folder, and log the film.

        A film that cannot be written is reported, and does not stop the run.
        """
        if distributed.rank() > 0:
            return
        config, seed = self._curriculum.config, validation_seed(self._config.seed)
        opponents, steps = config.evaluation_opponents, self.model.num_timesteps
        opponent = opponents.members[int(np.argmax(opponents.weights))]
        player = network_player(f"policy after {steps:,} decisions", self.model.policy)
        try:
            replay = record_battle(player, named_player(opponent, seed), config.battle, seed=config.evaluation_maps[0])
            film = write_film(self._out / FILMS_FOLDER, checkpoint_name(steps), replay)
        except (OSError, ReplayError) as error:
            self._console.print(f"the battle cannot be filmed: {error}", markup=False)
            return
        self.model.logger.record("battle/film", film, exclude=NOT_TEXT)

    def _keep_best(self) -> None:
        """Save the policy that has just been evaluated as the run's best."""
        self._save_now()
        self._name_best()

    def _name_best(self) -> None:
        steps = self._evaluations.best.steps
        if steps is not None and distributed.rank() == 0:
            write_json(self._out / BEST_FILE, {"checkpoint": checkpoint_name(steps), "steps": steps})


@contextlib.contextmanager
def _state_errors() -> Iterator[None]:
    """Raise a ValueError of a part that refuses its state as a CheckpointError."""
    try:
        yield
    except ValueError as error:
        raise CheckpointError(f"training state: {error}") from error
