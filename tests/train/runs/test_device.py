import pytest
import torch

from echelon_train.errors import DeviceError
from echelon_train.ppo import distributed
from echelon_train.runs.device import resolve_device


def test_absent_cuda_is_an_error(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_device("auto") == resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(DeviceError, match="no CUDA"):
        resolve_device("cuda")


def test_cuda_numbers_are_checked(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert resolve_device("cuda:0").index == 0
    with pytest.raises(DeviceError, match="1 CUDA devices"):
        resolve_device("cuda:1")


@pytest.fixture
def machine(monkeypatch):
    """A function that makes this one of four processes, on a machine with so many GPUs. It returns the device set."""
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)

    def make(devices, rank=0):
        current = []
        monkeypatch.setattr(torch.cuda, "is_available", lambda: devices > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: devices)
        monkeypatch.setattr(torch.cuda, "set_device", current.append)
        monkeypatch.setattr(distributed, "world_size", lambda: 4)
        monkeypatch.setattr(distributed, "rank", lambda: rank)
        return current

    return make


NCCL, GLOO = "cpu:gloo,cuda:nccl", "gloo"


def test_several_processes_have_a_device_each(machine):
    current = machine(devices=4, rank=1)
    assert resolve_device("cpu") == torch.device("cpu")
    assert current == []
    assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda:1")
    assert current == [torch.device("cuda:1")] * 2
    assert distributed.backend(4) == NCCL
    with pytest.raises(DeviceError, match="use 'cuda' in a distributed run"):
        resolve_device("cuda:0")


@pytest.mark.parametrize(("devices", "shared"), [(1, [0, 0, 0, 0]), (2, [0, 1, 0, 1]), (3, [0, 1, 2, 0])])
def test_processes_share_devices_where_there_are_fewer(machine, devices, shared):
    """NCCL would refuse them."""
    for rank, device in enumerate(shared):
        current = machine(devices, rank)
        assert resolve_device("auto") == torch.device("cuda", device)
        assert current == [torch.device("cuda", device)]
        assert distributed.backend(4) == GLOO


@pytest.mark.parametrize("name", ["gpu", "meta", "", "cuda:x"])
def test_unknown_devices_are_errors(name):
    with pytest.raises(DeviceError, match="unknown device"):
        resolve_device(name)
