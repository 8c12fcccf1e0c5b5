import pytest
import torch

from echelon_train.errors import DeviceError
from echelon_train.ppo import distributed
from echelon_train.runs.device import resolve_device
from echelon_train.threads import torch_threads


def test_cpu_is_always_available():
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cpu", "cuda")


def test_absent_cuda_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == torch.device("cpu")
    with pytest.raises(DeviceError, match="no CUDA"):
        resolve_device("cuda")


def test_cuda_numbers_are_checked(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert resolve_device("cuda:0").index == 0
    with pytest.raises(DeviceError, match="1 CUDA devices"):
        resolve_device("cuda:1")


@pytest.fixture
def four_processes(monkeypatch):
    """Return a function that makes this the process with a local rank, on a machine with so many GPUs."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    monkeypatch.setattr(distributed, "world_size", lambda: 4)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")

    def make(rank, devices):
        monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
        monkeypatch.setenv("LOCAL_RANK", str(rank))

    return make


def test_several_processes_have_a_device_each(four_processes):
    four_processes(rank=1, devices=4)
    assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda:1")
    assert resolve_device("cpu") == torch.device("cpu")
    assert distributed.backend() == "cpu:gloo,cuda:nccl"
    with pytest.raises(DeviceError, match="'cuda', which distributes the devices"):
        resolve_device("cuda:0")


@pytest.mark.parametrize(("devices", "shared"), [(1, [0, 0, 0, 0]), (2, [0, 1, 0, 1]), (3, [0, 1, 2, 0])])
def test_processes_share_devices_where_there_are_fewer(four_processes, devices, shared):
    """NCCL would refuse them."""
    for rank, device in enumerate(shared):
        four_processes(rank, devices)
        assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda", device)
        assert distributed.backend() == "gloo"


@pytest.mark.parametrize("name", ["gpu", "meta", "", "cuda:x"])
def test_unknown_devices_are_errors(name):
    with pytest.raises(DeviceError, match="unknown device"):
        resolve_device(name)


def test_thread_counts_are_given_back():
    before = torch.get_num_threads()
    with torch_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
