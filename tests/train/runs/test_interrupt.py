from types import SimpleNamespace

from echelon_train.runs.callbacks import StopCallback


def test_a_signal_while_processes_wait_for_each_other_is_not_lost(monkeypatch, quiet):
    callback = StopCallback(quiet, lambda: False)
    callback.model = SimpleNamespace(stopping=False)

    def waiting(flag):
        callback.interrupted = True  # by the handler
        return flag

    monkeypatch.setattr("echelon_train.runs.callbacks.stopping.distributed.any_true", waiting)
    callback._on_rollout_start()
    assert (callback.interrupted, callback.stopping) == (True, False), "the other processes do not know yet"
    callback._on_rollout_start()
    assert callback.stopping and callback.model.stopping
