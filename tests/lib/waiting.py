"""Waiting for a condition, with a deadline."""
import time


def wait_for(what, condition, seconds=60, step=0.03):
    """Waits until `condition()` is true; its value. `what` stands in the failure."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds} s for: {what}")
        time.sleep(step)


def wait_some(condition, seconds):
    """Whether `condition()` became true within that time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False
