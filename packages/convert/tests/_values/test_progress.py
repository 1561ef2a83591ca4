"""What a long task is at is shown, and of a short one nothing."""

import io
import logging
import sys
import time

import jax
import jax.numpy as jnp
import pytest
import tensorflow as tf

from jaxtf.convert import to_tflite, verify
from jaxtf.convert._values import progress
from jaxtf.convert._values.progress import Progress


def waited(task, condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)


def test_a_long_task_is_logged_with_its_steps(caplog):
    with Progress("task", after=0.01) as task:
        task.at("first")
        waited(task, lambda: caplog.messages)
        for _ in task.over("ab", "letter", 2):
            pass
    task.at("after its end")
    assert caplog.messages == ["task: first", "task: letter 1 of 2", "task: letter 2 of 2"]
    assert {record.name for record in caplog.records} == {"jaxtf.convert"}


def test_of_a_short_task_nothing_is_shown(caplog):
    with Progress("task") as task:
        task.at("first")
    assert not caplog.messages


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_in_a_terminal_rich_shows_it(monkeypatch, caplog):
    pytest.importorskip("rich")
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress("task", after=0.01) as task:
        task.at("first")
        waited(task, lambda: "task: first" in terminal.getvalue())
    assert "task: first" in terminal.getvalue()
    assert not caplog.messages


def test_verify_and_tflite_with_samples_say_what_they_are_at(monkeypatch, caplog):
    class FromTheStart(Progress):
        def __enter__(self):
            self._shows = True
            return self

    monkeypatch.setattr("jaxtf.convert._verify.verify.Progress", FromTheStart)
    monkeypatch.setattr("jaxtf.convert._tflite.to_tflite.Progress", FromTheStart)
    caplog.set_level(logging.INFO, logger=progress.__name__.partition("._")[0])
    verify(jnp.sin, jax.ShapeDtypeStruct((2,), jnp.float32), backends=["exported"], gradients=False)
    signature = [tf.TensorSpec((1, 2))]
    to_tflite(lambda x: x * 2, input_signature=signature, representative_data=[[[[1.0, 2.0]]]] * 2)
    shown = [message for message in caplog.messages if "made" not in message]
    assert shown[:2] == ["verify sin: exported: run 1 of 2", "verify sin: exported: run 2 of 2"]
    assert {"to_tflite: sample 1 of 2", "to_tflite: sample 2 of 2"} <= set(shown)
