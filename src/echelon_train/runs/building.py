"""The parts of a run, made from its configuration: maps, battles, policy and algorithm."""

from __future__ import annotations

from echelon_env import ConfigError, MapPool, opponents
from echelon_env.champions import policy_path
from echelon_env.evaluate.networks import PolicyFactory, checkpoint_player
from echelon_env.networks.weights import CheckpointError
from echelon_env.opponents import Policy, PolicyLike
from echelon_train.config.train import MAX_MAPS, TrainConfig
from echelon_train.errors import TrainError
from echelon_train.league.store.policies import find_policy
from echelon_train.policy import BattlePolicy, build_policy
from echelon_train.ppo import EchelonRecurrentPPO, distributed
from echelon_train.ppo.policy_teacher import PolicyTeacher
from echelon_train.ppo.teacher import Teacher
from echelon_train.tensor_files import weights_of
from echelon_train.training_maps import training_pool
from echelon_train.vec_env import BattleVecEnv


def training_maps(config: TrainConfig) -> MapPool | None:
    """The maps that a plain run or a stage trains on; None if every battle has its own map.

    All maps of a directory are generated here. Raises `ConfigError` for a directory of recipes that cannot be used.
    """
    pool = training_pool(config.maps or None, config.battle, config.seed)
    if pool is not None and isinstance(config.maps, str):
        if len(pool) > MAX_MAPS:
            raise ConfigError(f"maps: expected at most {MAX_MAPS} recipes in {config.maps!r}, got {len(pool)}", "maps")
        for number in range(len(pool)):
            _ = pool[number]  # a recipe that cannot be used fails here, not in the middle of the run
    return pool


def make_env(
    config: TrainConfig,
    moves: int = 0,
    state_mechs: int | None = None,
    opponent: PolicyLike | None = None,
) -> BattleVecEnv:
    """The battles of a plain run or of a stage, in this process.

    `moves` are the changes of the stage so far; a stage that is entered again plays other battles. `state_mechs` fit
    into the global state that a critic sees, by default those of the battle. `opponent` is the policy of the other
    team, by default the run's opponents as the environments make them.
    """
    central = config.network.sees_state
    return BattleVecEnv(
        config.battle,
        config.battles,
        opponent=config.opponent if opponent is None else opponent,
        side=config.side,
        self_play=config.self_play_battles,
        seed=distributed.rank_seed(config.seed) + moves * 2**32,  # beyond any run's seed
        num_threads=config.threads,
        maps=training_maps(config),
        regenerate=config.regenerate,
        central=central,
        state_mechs=state_mechs if central else None,
    )


def make_teacher(config: TrainConfig, env: BattleVecEnv, moves: int = 0) -> Teacher | None:
    """The teacher of a run, at the start of the battles of `env`; None without `TrainConfig.teacher`.

    `moves` is as for `make_env`. Raises CheckpointError for a policy that is missing, damaged or of another layout.
    """
    if config.teacher is None:
        return None
    seed = distributed.rank_seed(config.seed) + moves * 2**32
    policy: Policy
    path = policy_path(config.teacher, config.battle)
    if path is None:
        policy = opponents.make(str(config.teacher), config.seed, config.battle, num_threads=config.threads)
    else:
        try:
            factory = checkpoint_player(find_policy(path)).make
        except (TrainError, CheckpointError) as error:
            raise CheckpointError(f"teacher: {error}") from error
        assert isinstance(factory, PolicyFactory)
        policy = PolicyTeacher(factory, config.battle, env.num_envs, seed, config.threads)
    return Teacher(policy, env.num_envs, env.team_size, seed)


def build_model(
    config: TrainConfig, env: BattleVecEnv, device: str, initial: BattlePolicy | None = None
) -> EchelonRecurrentPPO:
    """The algorithm of a run, with the weights and normalizers of a policy of the same shapes.

    `initial` may have a critic of another kind. Weights that it lacks are random and follow from the run's seed.
    """
    ppo = config.ppo
    fewest = min(run.rows for run in config.plain_runs())  # because all have the same batch size
    model = EchelonRecurrentPPO(
        BattlePolicy,
        env,
        **{**ppo.arguments(), "batch_size": min(ppo.batch_size, fewest * ppo.n_steps)},
        deterministic=config.deterministic,
        compile_mode=config.compile,
        policy_kwargs={"network": config.network},
        seed=config.seed,
        device=device,
    )
    own = config.stage(0).of_process(distributed.rank())
    model.set_teacher(make_teacher(own, env))
    start = weights_of(build_policy(config.network, config.seed)) | (weights_of(initial) if initial else {})
    for name, tensor in weights_of(model.policy).items():
        if name in start:  # a policy without a return normaliser leaves the run's as it is
            tensor.copy_(start[name])
    model.policy.set_battle(own.battle)
    # the last bits of initial weights depend on the processor
    distributed.broadcast_tensors(weights_of(model.policy).values())
    return model
