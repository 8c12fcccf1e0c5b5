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


def test_several_processes_have_a_device_each(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(distributed, "world_size", lambda: 4)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert resolve_device("auto") == resolve_device("cuda") == torch.device("cuda:1")
    assert resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(DeviceError, match="'cuda', which gives each process its own"):
        resolve_device("cuda:0")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(DeviceError, match="2 CUDA devices"):
        resolve_device("auto")


@pytest.mark.parametrize("name", ["gpu", "meta", "", "cuda:x"])
def test_unknown_devices_are_errors(name):
    with pytest.raises(DeviceError, match="unknown device"):
        resolve_device(name)


def test_thread_counts_are_given_back():
    before = torch.get_num_threads()
    with torch_threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before
