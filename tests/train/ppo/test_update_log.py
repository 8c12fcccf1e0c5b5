import math

import pytest
import torch

from echelon_train.ppo.losses import Losses
from echelon_train.ppo.update_log import UpdateLog, explained_variance


def losses_of(start):
    singles = (torch.tensor(start + number) for number in range(7))
    return Losses(*singles, torch.tensor([start, 3.0, 0.0]))


def test_means_over_minibatches():
    log = UpdateLog(("motion", "target", "electronics"))
    log.add(losses_of(0.0), torch.tensor(10.0))
    log.add(losses_of(2.0), torch.tensor(20.0))
    assert log.means() == {
        "loss": 1.0,
        "policy_gradient_loss": 2.0,
        "value_loss": 3.0,
        "entropy": 4.0,
        "entropy_loss": -4.0,
        "kickstart_loss": 5.0,
        "kickstart_loss_motion": 1.0,
        "kickstart_loss_target": 3.0,
        "approx_kl": 6.0,
        "clip_fraction": 7.0,
        "grad_norm": 15.0,
        "minibatches": 2.0,
    }


def test_explained_variance():
    returns = torch.tensor([1.0, 2.0, 3.0, 4.0])
    assert explained_variance(returns, returns) == 1.0
    assert explained_variance(torch.zeros(4), returns) == pytest.approx(0.0)
    assert explained_variance(-returns, returns) == pytest.approx(-3.0)
    assert math.isnan(explained_variance(returns, torch.ones(4)))
