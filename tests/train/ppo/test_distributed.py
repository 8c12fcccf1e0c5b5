import pytest
import torch

from echelon_env.networks.weights import CheckpointError
from echelon_train.ppo.distributed_state import rank_state
from train.ppo import two_ranks
from train.ppo.random_env import collect
from train.ppo.two_ranks import ROWS, STEPS, in_two_processes

TASKS = [
    two_ranks.train,
    two_ranks.one_update,
    two_ranks.stopped_by_kl,
    two_ranks.nan_return,
    two_ranks.stopped_by_callback,
    two_ranks.communication,
]


@pytest.fixture(scope="module")
def union():
    """A model with a rollout of both processes' rows; the processes have different numbers of active rows."""
    model = two_ranks.union_model(2 * ROWS)
    collect(model)
    model.rollout_buffer.actor_mask[5:, 1] = False
    return model


@pytest.fixture(scope="module")
def results(union, tmp_path_factory):
    """The results of all tasks in both processes; one start serves all, because it takes most of the time."""
    folder, buffer = tmp_path_factory.mktemp("ranks"), union.rollout_buffer
    given = {name: tensor for name, tensor in vars(buffer).items() if isinstance(tensor, torch.Tensor)}
    rollout = {"weights": two_ranks.weights_of(union), "buffer": given, "states": buffer.states}
    torch.save(rollout, folder / "rollout.pt")
    return in_two_processes(TASKS, folder)


def test_parameters_stay_bitwise_equal(results):
    first, second = results["train"]
    for name, tensor in first["weights"].items():
        assert torch.equal(tensor, second["weights"][name]), name
        assert torch.equal(first["first"][name], second["first"][name]), name
    assert not torch.equal(first["weights"]["action_net.weight"], first["first"]["action_net.weight"])
    assert all(torch.equal(one, two) for one, two in zip(first["optimizer"], second["optimizer"], strict=True))
    # each process has its own rollouts, and time steps count all of them
    assert not torch.equal(first["actions"], second["actions"])
    assert first["steps"] == second["steps"] == 6 * 2 * ROWS * STEPS
    assert first["minibatches"] == second["minibatches"]
    assert first["seed"] == 11 != second["seed"]


def test_the_gradient_equals_that_of_one_process_with_all_rows(union, results):
    parts = results["one_update"]
    weights = two_ranks.weights_of(union)
    union.train()
    expected = two_ranks.weights_of(union)
    assert union.logger.name_to_value["train/grad_norm"] > union.max_grad_norm
    moved = [name for name in expected if expected[name].dtype == torch.float32 and name != "action_limits"]
    assert not [name for name in moved if torch.equal(expected[name], weights[name])]
    change = torch.cat([(expected[name] - weights[name]).flatten() for name in moved])
    for part in parts:
        difference = torch.cat([(part[name] - expected[name]).flatten() for name in moved])
        assert float(difference.norm() / change.norm()) < 1e-6
        for name in ("return_normalizer.mean", "return_normalizer.mean_square"):
            torch.testing.assert_close(part[name], expected[name], rtol=1e-12, atol=1e-12)
    assert all(torch.equal(parts[0][name], parts[1][name]) for name in expected)


def test_all_processes_stop_where_their_joint_kl_exceeds_the_target(results):
    first, second = results["stopped_by_kl"]
    assert first["joint"] == second["joint"]
    *before, last = first["joint"]
    assert 0 < len(before) < 29
    assert max(before) <= 1.5 * two_ranks.TARGET_KL < last
    # each process contributes its own, different part
    sums = [one + two for one, two in zip(first["own"], second["own"], strict=True)]
    assert sums == pytest.approx(first["joint"], rel=1e-4, abs=1e-9)
    assert any(one != pytest.approx(two, rel=0.1) for one, two in zip(first["own"], second["own"], strict=True))
    assert all(torch.equal(tensor, second["weights"][name]) for name, tensor in first["weights"].items())


def test_a_nan_in_one_process_skips_the_minibatch_in_all(results):
    first, second = results["nan_return"]
    assert first["skipped"] == second["skipped"] == 1
    for name, tensor in first["weights"].items():
        assert torch.equal(tensor, second["weights"][name]), name
        assert torch.isfinite(tensor).all(), name


def test_a_callback_in_one_process_stops_all(results):
    first, second = results["stopped_by_callback"]
    assert first == second
    assert first["updates"] == 3


def test_communication(results):
    first, second = results["communication"]
    assert (first["ranks"], second["ranks"]) == ((0, 2), (1, 2))
    assert first["any"] == second["any"] == [False, True, True]
    assert first["first"] == second["first"] == {"from": 0}
    assert (first["gathered"], second["gathered"]) == (["of 0", "of 1"], [])
    assert first["sum"] == second["sum"] == 3.0
    for rank, result in enumerate((first, second)):
        assert result["own"] == ({"a": [rank], "random.x": [float(rank)] * 2}, {"number": rank, "same": [3]})
        assert result["kept"] == {"number": 0, "same": [3], "ranks": [{"number": 1}]}, "equal values are kept once"
    assert first["seeds"] == [0, 1, 2]
    assert len({*first["seeds"], *second["seeds"]}) == 6
    assert all(0 <= seed < 2**32 for seed in second["seeds"])


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ([{"number": 2}], "had 2 processes and has 1 now"),
        (None, "expected a list of objects, got None"),
        ([3], "expected a list of objects"),
    ],
)
def test_a_state_of_another_number_of_processes_is_rejected(others, message):
    with pytest.raises(CheckpointError, match=message):
        rank_state({}, {"ranks": others})
