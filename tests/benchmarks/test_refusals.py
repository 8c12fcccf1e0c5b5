from benchmarks import refusals


def test_every_reason_is_counted_and_ruled_out():
    counts = refusals.measure(battles=4, decisions=120)
    assert sum(refused > 0 for refused, _ in counts.values()) >= 6
    assert all(0.99 * refused <= caught <= refused for refused, caught in counts.values())
    assert refusals.table(counts).count("\n") == 1 + len(counts)
