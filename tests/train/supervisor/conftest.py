import pytest

from echelon_train.supervisor import tasks


class FakeChild:
    """A child that ends when a test says so."""

    def __init__(self, name):
        self.name = name
        self.code, self.last, self.stopped, self.killed = None, "", 0, 0

    def poll(self):
        return self.code

    def reason(self):
        return self.last

    def stop(self):
        self.stopped += 1

    def kill(self):
        self.killed += 1


class FakeChildren(list):
    """The children that tasks have started; those with a name in `failing` fail at once, with that reason."""

    def __init__(self):
        super().__init__()
        self.failing = {}

    def start(self, command, log):
        child = FakeChild(log.stem)
        if child.name in self.failing:
            child.code, child.last = 2, self.failing[child.name]
        self.append(child)
        return child


@pytest.fixture
def children(monkeypatch):
    found = FakeChildren()
    monkeypatch.setattr(tasks, "Child", found.start)
    return found
