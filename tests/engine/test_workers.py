"""The thread pool: every call is made once, all threads take part, and exceptions are raised."""

import copy
import gc
import math
import multiprocessing
import os
import pickle
import signal
import threading
import time
import warnings
import weakref

import numpy as np
import pytest

from echelon_env import BattleEngine
from echelon_env.engine.turns import end_of_turn, first_turn, next_turn
from echelon_env.engine.workers import AT_ONCE, SharedKernel, Workers


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 1000])
def test_every_call_is_made_once(threads, count):
    workers = Workers(threads)
    done = []
    for times in range(1, 4):
        workers.for_all(lambda a, b: done.append(a - b), [(3 * i, i) for i in range(count)])
        assert sorted(done) == sorted(times * [2 * i for i in range(count)])
    workers.close()


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("wake", [1, 7])
def test_threads_share_the_rows_of_a_kernel_and_each_has_its_own(threads, wake):
    made, busy, calls = [], set(), []

    def bind(turn):
        number = len(made)
        made.append(number)

        def kernel(values, doubled, at_once):
            assert number not in busy
            busy.add(number)
            calls.append(at_once)
            at = first_turn(turn, 0, at_once)
            while at < len(values):
                rows = slice(at, end_of_turn(at, len(values), at_once))
                doubled[rows] += 2 * values[rows]
                at = next_turn(turn, len(values), at_once)
            busy.remove(number)

        return kernel

    shared, values = SharedKernel(bind, threads, wake), np.arange(50)
    assert made == [*range(threads)]
    for rows in (50, 13, 3, 0):
        doubled = np.zeros(rows, int)
        calls.clear()
        shared(values[:rows], doubled)
        assert (doubled == 2 * values[:rows]).all(), "every row once"
        assert len(calls) == max(1, min(threads, math.isqrt(rows // wake)))
        assert set(calls) == {AT_ONCE if len(calls) > 1 else 0}
    shared.close()
    doubled = np.zeros(50, int)
    shared(values, doubled)
    assert (doubled == 2 * values).all()


@pytest.mark.parametrize("threads", [1, 3])
def test_an_error_is_raised_when_all_threads_have_stopped(threads):
    workers, running = Workers(threads), []

    def fail_at_five(i):
        running.append(i)
        if i == 5:
            raise ValueError("five")
        running.remove(i)

    with pytest.raises(ValueError, match="five"):
        workers.for_all(fail_at_five, [(i,) for i in range(50)])
    assert running == [5]
    running.clear()
    workers.for_all(running.append, [(1,), (2,)])
    assert sorted(running) == [1, 2]
    workers.close()


def test_an_error_of_another_thread_is_raised():
    workers, both, caller = Workers(2), threading.Barrier(2, timeout=60), threading.current_thread()

    def fail_elsewhere(_):
        both.wait()
        if threading.current_thread() is not caller:
            raise ValueError("elsewhere")

    with pytest.raises(ValueError, match="elsewhere"):
        workers.for_all(fail_elsewhere, [(1,), (2,)])
    workers.close()


def test_a_thread_that_has_not_started_is_not_waited_for():
    workers, barrier, end, done = Workers(2), threading.Barrier(3, timeout=60), threading.Event(), []

    def block(_):
        barrier.wait()
        end.wait(60)

    blocked = threading.Thread(target=workers.for_all, args=(block, [(1,), (2,)]))
    blocked.start()
    barrier.wait()  # the only other thread is busy, and so is the caller
    free = threading.Thread(target=workers.for_all, args=(done.append, [(1,), (2,)]), daemon=True)
    free.start()
    free.join(60)
    finished = not free.is_alive()
    end.set()
    blocked.join()
    assert finished
    assert done == [1, 2]
    workers.close()


def answer_of_a_fork(function):
    """What a function returns in a forked process."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=lambda: sender.send(function()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads, since Python 3.12
        child.start()
    answered = receiver.poll(60)
    child.kill()
    child.join()
    assert answered
    return receiver.recv()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_forked_process_has_threads_of_its_own():
    workers = Workers(2)
    barrier = threading.Barrier(2, timeout=60)
    workers.for_all(lambda _: barrier.wait(), [(1,), (2,)])  # the second thread runs

    def work():
        together, done = threading.Barrier(2, timeout=30), []
        workers.for_all(lambda number: done.append((together.wait() >= 0, number)), [(1,), (2,)])
        return sorted(done)

    assert answer_of_a_fork(work) == [(True, 1), (True, 2)]
    workers.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked here")
def test_a_process_that_is_forked_while_another_thread_steps_can_start_its_battles_again():
    engine = BattleEngine("duel-open", 4, num_threads=2)
    engine.reset(range(4))
    expected = engine.state.mechs.tobytes()
    actions, stopped = np.zeros((4, 2, engine.action_dim), np.float32), threading.Event()

    def step():
        while not stopped.is_set():
            engine.step(actions)

    def work():
        engine.reset(range(4))
        return engine.state.mechs.tobytes()

    other = threading.Thread(target=step)
    other.start()
    try:
        assert [answer_of_a_fork(work) == expected for _ in range(8)] == [True] * 8
    finally:
        stopped.set()
        other.join()


@pytest.mark.parametrize("renew", [copy.copy, copy.deepcopy, lambda workers: pickle.loads(pickle.dumps(workers))])
def test_copies_have_their_own_threads(renew):
    workers = Workers(2)
    twin = renew(workers)
    workers.close()
    workers.close()
    barrier, done = threading.Barrier(2, timeout=60), []
    twin.for_all(lambda i: done.append(i + 0 * barrier.wait()), [(1,), (2,)])
    assert sorted(done) == [1, 2]
    twin.close()
    workers.for_all(done.append, [(3,)])
    assert done[-1] == 3


def test_threads_end_with_what_owns_them():
    engine = BattleEngine("duel-open", 3, num_threads=3)
    engine.reset([1, 2, 3])
    threads, gone = engine._workers._threads, weakref.ref(engine)
    assert len(threads) == 2
    assert all(thread.is_alive() for thread in threads)
    del engine
    gc.collect()
    assert gone() is None
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="threads get no signals here")
def test_an_interrupted_wait_goes_on_until_the_other_thread_is_done():
    workers, both, done = Workers(2), threading.Barrier(2, timeout=60), []

    def work(_):
        both.wait()
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.05)  # the main thread waits now, and only a signal interrupts that
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            time.sleep(0.2)
            done.append(7)

    with pytest.raises(KeyboardInterrupt):
        workers.for_all(work, [(1,), (2,)])
    assert done == [7]
    workers.close()
