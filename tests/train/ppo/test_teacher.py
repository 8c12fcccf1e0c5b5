"""The teacher: labels, battles that it plays, and its state."""

from collections import Counter

import numpy as np
import pytest
import torch

from echelon_env import ConfigError, opponents
from echelon_env.networks.config import NetworkConfig
from echelon_train.checkpoints.players import network_player
from echelon_train.config.ppo import PPOConfig
from echelon_train.config.schedules import Schedule
from echelon_train.policy import build_policy
from echelon_train.policy.choices import nearest_choices
from echelon_train.ppo import collector
from echelon_train.ppo.policy_teacher import PolicyTeacher
from echelon_train.ppo.teacher import BY_TEACHER, Teacher
from echelon_train.runs.building import build_model, make_env, make_teacher
from train.policy.random_choices import living_observations
from train.ppo.random_env import collect
from train.small import small_battle, small_run

GROUP = 3


class Counting:
    """A policy whose actions are the decisions since a row's reset."""

    def __init__(self, rows=4 * GROUP):
        self.decisions = np.zeros(rows, np.float32)

    def reset(self, mask):
        self.decisions[mask] = 0.0

    def act(self, observations):
        self.decisions += 1.0
        return np.repeat(self.decisions[:, None], 2, axis=1)

    def state_arrays(self):
        return {"decisions": self.decisions.copy()}

    def restore_arrays(self, arrays, rows):
        if arrays.keys() != {"decisions"} or arrays["decisions"].shape != (rows,):
            raise ValueError("expected decisions")
        self.decisions = arrays["decisions"].copy()


def teacher_of(battles=4, seed=7):
    return Teacher(Counting(battles * GROUP), battles * GROUP, GROUP, seed)


def starts_of(*battles, of=4):
    return np.repeat(np.isin(np.arange(of), battles), GROUP)


EVERYWHERE = starts_of(*range(4))


@pytest.mark.parametrize("teacher", ["expert", "expert@fire_rate=0.5"])
def test_a_scripted_teachers_state_from_before_its_first_decision_is_restored(teacher):
    config = small_run(
        battle=small_battle("skirmish"), teacher=teacher, ppo=PPOConfig(kickstart_coef=Schedule.constant(1.0))
    )
    env = make_env(config)
    fresh, used = make_teacher(config, env), make_teacher(config, env)
    used.begin(np.ones(env.num_envs, np.bool_), 0.5)
    used.act(env.reset())
    used.restore_arrays(fresh.state_arrays())
    arrays = used.state_arrays()
    assert all(arrays[name].tobytes() == array.tobytes() for name, array in fresh.state_arrays().items())


# Labels


def imitation(share: Schedule, teacher: str = "expert", **battle):
    ppo = PPOConfig(
        n_steps=32,
        batch_size=32,
        n_epochs=1,
        policy_coef=0.0,
        kickstart_coef=Schedule.constant(1.0),
        learner_share=share,
    )
    config = small_run(battle=small_battle("skirmish", max_steps=12, **battle), teacher=teacher, ppo=ppo, battles=3)
    return config, build_model(config, make_env(config), "cpu")


def played_actions(model):
    """The actions of a rollout (T, N, A) as the environment gets them, and the observations before them (T, N, D)."""
    actions, stock = [], model.env.step
    model.env.step = lambda each: actions.append(each.copy()) or stock(each)
    collect(model)
    return np.array(actions), model.rollout_buffer.observations.numpy()


def test_labels_are_the_levels_own_actions_in_all_rows_and_battles():
    config, model = imitation(Schedule.constant(1.0))
    _, observations = played_actions(model)
    buffer = model.rollout_buffer
    assert int(buffer.episode_starts[1:].sum(0).min()) >= 2
    expert = opponents.make("expert", config.seed, config.battle)
    for step, seen in enumerate(observations):
        expert.reset(buffer.episode_starts[step].numpy())
        expected = nearest_choices(torch.from_numpy(expert.act(seen)))
        torch.testing.assert_close(buffer.labels[step], expected, rtol=0, atol=0, msg=f"step {step}")
    assert len(buffer.labels.flatten(0, 1).unique(dim=0)) > 100


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_teacher_plays_the_rest_of_the_battles(share):
    _, model = imitation(Schedule.constant(share))
    actions, _ = played_actions(model)
    buffer = model.rollout_buffer
    starts = buffer.episode_starts.numpy()
    made = nearest_choices(torch.from_numpy(actions).flatten(0, 1)).view_as(buffer.labels)
    by_teacher, by_learner = ((made == each).all(2).numpy() for each in (buffer.labels, buffer.actions))
    assert (by_teacher | by_learner).all()
    decided = by_teacher != by_learner  # they differ
    assert decided.any(1).all()
    battle = starts.cumsum(0) + 1000 * (np.arange(starts.shape[1]) // model.teacher._group)
    players = {each: set(by_teacher[decided & (battle == each)].tolist()) for each in np.unique(battle)}
    assert all(len(each) <= 1 for each in players.values()), "one of them plays a battle"
    found = [each.pop() for each in players.values() if each]
    assert np.mean(found) == (1.0 - share if share in (0.0, 1.0) else pytest.approx(0.5, abs=0.4))


def test_battles_that_end_are_marked_with_their_player():
    _, model = imitation(Schedule.constant(0.5))
    seen, stock = [], model.env.step

    def step(actions):
        results = stock(actions)
        seen.append((model.teacher.plays.tolist(), results[3]))
        return results

    model.env.step = step
    collect(model)
    ended = [
        (played, info[BY_TEACHER])
        for plays, infos in seen
        for played, info in zip(plays, infos, strict=True)
        if "outcome" in info
    ]
    assert set(ended) == {(True, True), (False, False)}


def test_a_rollout_converts_each_observation_action_label_and_value_once(monkeypatch):
    """And those after its last step, whose values are bootstrapped; here no battle is truncated."""
    _, model = imitation(Schedule.constant(1.0), time_limit="terminate")
    counts = Counter()

    def counted(owner, name):
        stock = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given: counts.update([name]) or stock(*given))

    for owner, name in (
        (collector, "tensors_of"),
        (collector, "nearest_choices"),
        (type(model.policy), "environment_actions"),
        (type(model.policy.return_normalizer), "denormalize"),
    ):
        counted(owner, name)
    collect(model)
    steps = model.n_steps
    once = {"nearest_choices": steps, "environment_actions": steps}
    assert counts == once | {"tensors_of": steps + 1, "denormalize": steps + 1}


def test_a_rollout_without_the_kickstart_loss_is_not_labelled():
    """A weight that rises from 0 labels from the first rollout on that begins above it."""
    _, model = imitation(Schedule.constant(1.0))
    model.kickstart_coef = lambda remaining: 1.0 - remaining
    collect(model)
    assert not model.rollout_buffer.has_labels
    model._current_progress_remaining = 0.5
    model.train()
    assert model.logger.name_to_value["train/kickstart_loss"] == 0.0


# Battles


def test_a_share_of_the_battles_is_the_teachers():
    teachers = [teacher_of(2000, seed) for seed in (1, 1, 2)]
    for teacher in teachers:
        teacher.begin(np.ones(2000 * GROUP, np.bool_), 0.25)
    plays = [teacher.plays.reshape(2000, GROUP) for teacher in teachers]
    assert all((each == each[:, :1]).all() for each in plays)  # a battle has one player
    assert [0.2 < each.mean() < 0.3 for each in plays] == [True] * 3
    assert (plays[0] == plays[1]).all()
    assert (plays[0] != plays[2]).any()
    for share in (0.0, 1.0):
        teachers[0].begin(np.ones(2000 * GROUP, np.bool_), share)
        assert (teachers[0].plays == bool(share)).all()


def test_battles_start_again_where_episodes_do():
    teacher = teacher_of()
    teacher.begin(EVERYWHERE, 1.0)
    for _ in range(3):
        labels = teacher.act(np.zeros((4 * GROUP, 5), np.float32))
    assert (labels == 3.0).all()
    teacher.begin(starts_of(2), 0.0)
    assert teacher.plays.tolist() == (~starts_of(2)).tolist()
    labels = teacher.act(np.zeros((4 * GROUP, 5), np.float32))
    assert labels[:, 0].tolist() == np.where(starts_of(2), 1.0, 4.0).tolist()
    teacher.begin(starts_of(), 0.0)
    assert teacher.plays.tolist() == (~starts_of(2)).tolist()
    replaced = teacher.replace(np.full_like(labels, -1.0), labels)
    assert replaced[:, 1].tolist() == np.where(starts_of(2), -1.0, 4.0).tolist()


# A policy as teacher


def test_a_policys_labels_are_samples_and_follow_its_memory():
    """A restored teacher continues the same; that of other weights is rejected."""
    network = NetworkConfig(width=8, head=8, set_width=4, map_channels=2)
    config = small_battle("skirmish", max_steps=12)

    def made(seed=1):
        return PolicyTeacher(network_player("teacher", build_policy(network, seed)).make, config, 6, 3)

    observations = living_observations(6).numpy() * np.linspace(0.5, 1.0, 6, dtype=np.float32)[:, None]
    ours, theirs = made(), made()
    sampled = ours.act(np.repeat(observations[-1:], 6, axis=0))
    assert len(np.unique(sampled, axis=0)) > 1, "the actions of equal mechs are sampled"
    ours.act(observations)
    arrays = ours.state_arrays()
    theirs.restore_arrays(arrays, 6)
    np.testing.assert_array_equal(ours.act(observations), theirs.act(observations))
    ours.reset(np.arange(6) == 2)
    ours.act(observations), theirs.act(observations)
    equal = (ours.state_arrays()["memories"] == theirs.state_arrays()["memories"]).all((1, 2))
    assert equal.tolist() == [True, True, False, True, True, True]
    for wrong in (arrays | {"begins": np.zeros(6)}, {**arrays, "memories": arrays["memories"][:4]}):
        with pytest.raises(ValueError, match="the teacher's policy"):
            theirs.restore_arrays(wrong, 6)
    with pytest.raises(ValueError, match="has other weights than when the run was saved"):
        made(2).restore_arrays(arrays, 6)


# State


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("plays", None),
        ("drawn", np.array([-1])),
        ("policy.decisions", np.zeros(5, np.float32)),
    ],
)
def test_the_state_of_another_teacher_is_rejected(name, array):
    teacher = teacher_of()
    teacher.begin(EVERYWHERE, 0.5)
    before = teacher.state_arrays()
    wrong = {**before, "plays": ~before["plays"], name: array}
    with pytest.raises(ValueError, match=r"teacher|expected decisions"):
        teacher.restore_arrays({name: each for name, each in wrong.items() if each is not None})
    for name, each in teacher.state_arrays().items():
        np.testing.assert_array_equal(each, before[name])


def test_a_policy_without_a_state_cannot_be_saved():
    teacher = Teacher(opponents.FunctionPolicy(lambda seen: np.zeros((len(seen), 27))), 4, 2, 0)
    with pytest.raises(ConfigError, match=r"teacher: .* cannot be resumed"):
        teacher.state_arrays()
