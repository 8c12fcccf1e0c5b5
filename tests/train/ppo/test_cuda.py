import os

import pytest
import torch

from echelon_env.networks.config import NetworkConfig
from echelon_train.policy import BattlePolicy, lstm
from echelon_train.policy.lstm import lstm_step
from echelon_train.policy.sequences import MlpLstmPolicy
from echelon_train.ppo.observations import Staging
from echelon_train.vec_env import BattleVecEnv
from train.ppo.random_env import RandomVecEnv, collect, make_model
from train.ppo.recorded_battles import RecordedBattles

may_warn = pytest.mark.filterwarnings("ignore:.*deterministic:UserWarning")

NETWORK = NetworkConfig(width=16, head=16, set_width=8, map_channels=4)


@pytest.fixture(autouse=True)
def restore_torch_settings():
    cudnn = torch.backends.cudnn
    matmul = torch.backends.cuda.matmul
    before = cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32
    were_deterministic = torch.are_deterministic_algorithms_enabled()
    yield
    cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32, matmul.allow_tf32 = before
    torch.use_deterministic_algorithms(were_deterministic)


def model_on(device, **settings):
    settings = {"n_epochs": 1, **settings}
    return make_model(
        RecordedBattles(), policy=BattlePolicy, policy_kwargs={"network": NETWORK}, device=device, **settings
    )


def copy_rollout(source, target):
    """Copy weights and rollout to a model on another device."""
    target.policy.load_state_dict(source.policy.state_dict())
    for name, tensor in vars(source.rollout_buffer).items():
        if isinstance(tensor, torch.Tensor):
            getattr(target.rollout_buffer, name).copy_(tensor)
    for kept, state in zip(target.rollout_buffer.states, source.rollout_buffer.states, strict=True):
        kept.copy_(state)


def update(model):
    """The change of the weights in an update by plain gradient descent."""
    model.policy.optimizer = torch.optim.SGD(model.policy.parameters(), lr=0.01)
    model.lr_schedule = lambda _: 0.01
    torch.manual_seed(0)  # the order of the chunks
    before = {name: tensor.detach().clone() for name, tensor in model.policy.named_parameters()}
    model.train()
    return {name: (tensor.detach() - before[name]).cpu() for name, tensor in model.policy.named_parameters()}


class CpuPolicy(MlpLstmPolicy):
    """A policy that stays on the CPU."""

    def to(self, device):
        return self


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_model_on_cuda_sets_torchs_options(deterministic, monkeypatch):
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")  # monkeypatch then restores it
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG")
    settings = {"policy_kwargs": {"lstm_hidden_size": 8}, "normalize_returns": False, "_init_setup_model": False}
    model = make_model(RandomVecEnv(2), policy=CpuPolicy, deterministic=deterministic, **settings)
    model.device, model.env = torch.device("cuda"), None  # the test needs no GPU
    model._setup_model()
    assert torch.backends.cudnn.benchmark != deterministic
    assert torch.backends.cudnn.deterministic == deterministic
    assert torch.backends.cudnn.allow_tf32 == torch.backends.cuda.matmul.allow_tf32 != deterministic
    assert torch.are_deterministic_algorithms_enabled() == deterministic
    assert torch.is_deterministic_algorithms_warn_only_enabled() == deterministic
    assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == (":4096:8" if deterministic else None)
    assert model.policy.encoding_dtype == (None if deterministic else torch.bfloat16)


@pytest.mark.cuda
@may_warn
def test_deterministic_updates_are_reproducible():
    changes = []
    for _ in range(2):
        model = model_on("cuda", deterministic=True)
        model.learn(3 * model.n_steps * model.n_envs)
        changes.append(torch.cat([parameter.detach().flatten() for parameter in model.policy.parameters()]))
    assert torch.equal(*changes)


@pytest.mark.cuda
def test_training_in_bfloat16_is_finite(monkeypatch):
    model = model_on("cuda", batch_size=48, n_epochs=2, accumulate=2)
    encoder_dtypes, lstm_dtypes = [], []
    fused = model.policy.features_extractor.fusion[0]
    fused.register_forward_hook(lambda module, given, result: encoder_dtypes.append(result.dtype))

    def watched(*arguments):
        hidden, cell = lstm_step(*arguments)
        lstm_dtypes.extend((hidden.dtype, cell.dtype))
        return hidden, cell

    monkeypatch.setattr(lstm, "lstm_step", watched)
    model.learn(4 * model.n_steps * model.n_envs)
    assert set(encoder_dtypes) == {torch.bfloat16}
    assert set(lstm_dtypes) == {torch.float32}
    assert model.skipped_minibatches == 0
    for name, parameter in model.policy.named_parameters():
        assert parameter.dtype == torch.float32
        assert torch.isfinite(parameter).all(), name


@pytest.mark.cuda
def test_weights_and_optimizer_move_between_devices():
    cuda, cpu = model_on("cuda"), model_on("cpu")
    cuda.learn(cuda.n_steps * cuda.n_envs)
    cpu.set_parameters(cuda.get_parameters(), device="cpu")
    back = model_on("cuda")
    back.set_parameters(cpu.get_parameters(), device="cuda")
    for one, two in zip(cuda.policy.state_dict().values(), back.policy.state_dict().values(), strict=True):
        assert torch.equal(one, two)
    for model in (cpu, back):
        for parameter, state in model.policy.optimizer.state.items():
            assert state["exp_avg"].device.type == parameter.device.type == model.device.type
        model.learn(model.n_steps * model.n_envs)


@pytest.mark.cuda
@may_warn
@pytest.mark.parametrize(
    "way",
    [{"dense": False}, {"compile_mode": "off"}, {"compile_mode": "graphs"}],
    ids=str,
)
def test_an_update_equals_that_on_the_cpu(way):
    """In eight minibatches: CUDA graphs are recorded in the first and replayed in the others."""
    cpu, cuda = model_on("cpu", batch_size=24), model_on("cuda", batch_size=24, deterministic=True, **way)
    assert (cpu.policy.dense, cuda.policy.dense) == (False, way.get("dense", True))
    for model in (cpu, cuda):
        collect(model)
    copy_rollout(cpu, cuda)
    expected, found = update(cpu), update(cuda)
    size = torch.cat([change.flatten() for change in expected.values()]).norm()
    difference = torch.cat([(expected[name] - found[name]).flatten() for name in expected]).norm()
    assert float(difference / size) < 1e-4


@pytest.mark.cuda
def test_observations_arrive_whole_although_their_memory_is_used_again():
    staging = Staging(torch.device("cuda"))
    given = [torch.full((512, 902), float(step)) for step in range(20)]
    found = []
    for each in given:
        torch.cuda._sleep(10_000_000)  # the copy waits for some milliseconds
        found.append(staging.to_device(each))
    for one, other in zip(given, found, strict=True):
        assert torch.equal(one, other.cpu())
    assert staging._pinned[""].is_pinned()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_observations_of_battles_arrive_whole(device):
    """From page-locked memory on a GPU, although the engine writes into it again."""
    env, twin = (BattleVecEnv("duel-open", 64, maps=2, seed=5, num_threads=2) for _ in range(2))
    model = make_model(env, policy=BattlePolicy, policy_kwargs={"network": NETWORK}, device=device, steps=32)
    collect(model)
    assert torch.from_numpy(model._last_obs).is_pinned() == (device == "cuda")
    assert not model.collector.staging._pinned
    found, actions = model.rollout_buffer.observations.cpu(), model.rollout_buffer.actions
    twin.seed(model.seed)
    expected = twin.reset()
    for step in range(32):
        assert torch.equal(found[step], torch.from_numpy(expected))
        expected, *_ = twin.step(model.policy.environment_actions(actions[step]).cpu().numpy())
    for each in (env, twin):
        each.close()


@pytest.mark.cuda
def test_a_minibatch_without_room_is_split(monkeypatch):
    model = model_on("cuda", batch_size=192)
    collect(model)
    free, _ = torch.cuda.mem_get_info()
    batch = model.rollout_buffer.batch

    def greedy(chunks, *arguments):
        torch.empty(int(1.5 * free * len(chunks) / 24), dtype=torch.uint8, device="cuda")  # only half a minibatch fits
        return batch(chunks, *arguments)

    model.rollout_buffer.batch = greedy
    model.train()
    assert model.update.parts >= 2
