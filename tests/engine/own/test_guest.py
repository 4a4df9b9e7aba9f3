"""What a guest says of a user's file: judged in this process, since nothing here harms it for good."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from app.core.own import OwnFile
from app.core.workload import Workload
from app.engine import accuracy
from app.engine.inputs import make_inputs
from app.engine.own import protocol
from app.engine.own.guest import LOOK_EVERY, Guest
from app.engine.own.lanes import read_tensors
from app.engine.own.protocol import Checked, Prepare, Prepared, Refused, Reply, Take, Timed
from tests.engine.own.files import GOOD, HEAD, acting, write
from tests.engine.support import TINY, with_

BACKWARD = with_(TINY, mode="forward_backward")


@pytest.fixture(autouse=True)
def torch_put_back() -> Iterator[None]:
    functional = dict(vars(torch.nn.functional))
    modules = set(sys.modules)
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    for name, value in functional.items():
        setattr(torch.nn.functional, name, value)
    for name in set(sys.modules) - modules:
        if name.startswith("own_"):
            del sys.modules[name]


def prepare(guest: Guest, file: OwnFile, workload: Workload = TINY, **changes: Any) -> Reply:
    request = {"id": 1, "workload": workload, "own": file, "baseline": "native", **changes}
    return guest.answer(Prepare(**request))


def refusal(folder: Path, text: str, workload: Workload = TINY) -> Refused:
    reply = prepare(Guest(), write(folder, text), workload)
    assert isinstance(reply, Refused), reply
    return reply


@pytest.mark.parametrize("workload", [TINY, BACKWARD, with_(TINY, causal=False, dtype="bfloat16")])
def test_a_good_file_is_timed_beside_the_baseline_and_right(tmp_path: Path, workload: Workload) -> None:
    guest = Guest()
    reply = prepare(guest, write(tmp_path, GOOD), workload)
    assert isinstance(reply, Prepared), reply
    assert reply.without_baseline == ""
    assert reply.denormal_in == ""
    for number in range(2):
        block = guest.answer(Take(number))
        assert isinstance(block, Timed), block
        assert block.own.seconds > 0
        assert block.beside is not None
        assert block.beside.seconds > 0
    checked = guest.answer(protocol.Check(9, 1, str(tmp_path / "tensors")))
    assert isinstance(checked, Checked), checked
    reference = accuracy.make_reference(accuracy.on_batch_slice(make_inputs(workload), 1))
    judged = accuracy.compare(read_tensors(tmp_path / "tensors", checked.tensors), reference)
    assert judged.ok, judged
    assert ("grad_k_bias" in judged.tensors) == workload.backward


def test_separate_and_packed_parameters_are_the_same_numbers(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
@implementation(title="Mine")
def build(w, p):
    E = w.embed_dim
    assert torch.equal(p.in_proj_weight, torch.cat([p.q_weight, p.k_weight, p.v_weight]))
    assert torch.equal(p.in_proj_bias, torch.cat([p.q_bias, p.k_bias, p.v_bias]))
    assert p.in_proj_weight.data_ptr() == p.q_weight.data_ptr()
    assert p.out_weight.shape == (E, E) and p.out_bias.shape == (E,)
    return attention(w, p)
"""
    )
    assert isinstance(prepare(Guest(), write(tmp_path, text)), Prepared)


def test_gradients_may_gather_in_some_separate_and_some_packed_parameters(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
@implementation(title="Mine")
def build(w, p):
    return attention(w, p)
"""
    )
    guest = Guest()
    assert isinstance(prepare(guest, write(tmp_path, text), BACKWARD), Prepared)
    checked = guest.answer(protocol.Check(2, TINY.batch, str(tmp_path / "tensors")))
    assert isinstance(checked, Checked), checked
    assert len(checked.tensors) == 10


def test_a_module_may_be_returned_in_the_place_of_a_function(tmp_path: Path) -> None:
    text = (
        HEAD
        + """
class Layer(torch.nn.Module):
    def __init__(self, forward):
        super().__init__()
        self.run = forward
    def forward(self, x):
        return self.run(x)

@implementation(title="Mine")
def build(w, p):
    return Layer(attention(w, p))
"""
    )
    assert isinstance(prepare(Guest(), write(tmp_path, text)), Prepared)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def broken(:\n", "SyntaxError: invalid syntax (mine.py, line 1)"),
        ("import no_such_package_at_all\n" + GOOD, "(mine.py, line 1)"),
        ("x = 1 / 0\n", "ZeroDivisionError: division by zero (mine.py, line 1)"),
        (HEAD, "has no function decorated with @implementation"),
        (GOOD + GOOD.partition(HEAD)[2].replace("build", "other"), "has 2 functions decorated"),
        (GOOD.replace('(title="Mine")', ""), "implementation needs a title"),
        (GOOD.replace("return attention(w, p)", "return 3"), "build returned an object of type int"),
        (GOOD.replace("return attention(w, p)", "pass"), "build returned nothing"),
        (GOOD.replace("def build(w, p)", "def build(w)"), "TypeError: build() takes 1 positional argument"),
        ("raise SystemExit(3)\n", "asked the process to end (exit status 3)"),
        (acting("raise ValueError('boom')"), "ValueError: boom (mine.py, line 24)"),
        (acting("return None"), "forward returned nothing, not a tensor"),
        (acting("return (y, y)"), "forward returned an object of type tuple"),
        (acting("return y[:, 0]"), "returned shape [2, 16]; expected [2, 8, 16]"),
        (acting("return y.double()"), "returned dtype float64; expected float32"),
        (acting("return y.to('meta')"), "returned device meta; expected cpu"),
        (acting("y[0, 0, 0] = float('nan')"), "has 1 of 256 values that are NaN or infinite"),
        (acting("x.mul_(1.0)"), "changed the input x in place"),
        (acting("x.data.add_(1.0)"), "changed the input x"),
        (acting("p.q_bias.data.fill_(2.0)"), "changed the parameter in_proj_bias"),
        (acting("torch.set_num_threads(1 + torch.get_num_threads())"), "changed the thread count from"),
        (acting("torch.set_default_dtype(torch.float64)"), "changed the default dtype from torch.float32"),
        (acting("torch.use_deterministic_algorithms(True)"), "changed deterministic algorithms from False"),
        (acting("torch.set_grad_enabled(True)"), "changed the gradient mode from False to True"),
        (acting("torch.set_flush_denormal(True)"), "changed the flushing of denormal numbers"),
        (acting("torch.set_float32_matmul_precision('medium')"), "changed the precision of float32 products"),
        (acting("F.softmax = lambda *a: None"), "replaced torch.nn.functional.softmax"),
        (acting("time.sleep = lambda s: None"), "replaced time.sleep"),
        (acting("F.relu = F.gelu"), "replaced torch.nn.functional.relu"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) and len(value) < 90 else "file",
)
def test_a_misbehaving_file_fails_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr(time, "sleep", time.sleep)
    reply = refusal(tmp_path, text)
    assert reply.state == "failed"
    assert said in reply.reason


def test_a_file_may_say_itself_that_it_cannot_run_a_workload(tmp_path: Path) -> None:
    supports = 'title="Mine", supports=lambda w: w.head_dim % 16 == 0 or "needs head_dim in steps of 16"'
    reply = refusal(tmp_path, GOOD.replace('title="Mine"', supports))
    assert (reply.state, reply.reason) == ("unavailable", "needs head_dim in steps of 16")
    reply = refusal(tmp_path, GOOD.replace('title="Mine"', 'title="Mine", supports=lambda w: False'))
    assert (reply.state, reply.reason) == ("unavailable", "does not support this workload")
    reply = refusal(tmp_path, GOOD.replace('title="Mine"', 'title="Mine", modes=("forward_backward",)'))
    assert (reply.state, reply.reason) == ("unavailable", "does not declare mode forward")
    assert "modes=" in reply.remedy


DECODING = (
    HEAD
    + """
@implementation(title="Mine", modes=("decode",))
def build(w, p, keys, values):
    assert keys.shape == values.shape == (w.batch, w.num_heads, w.seq_len + 1, w.head_dim)
    def forward(x):
        split = lambda t: t.view(t.shape[0], 1, w.num_heads, w.head_dim).transpose(1, 2)
        q, k, v = (split(t) for t in F.linear(x, p.in_proj_weight, p.in_proj_bias).chunk(3, -1))
        keys[:, :, -1:], values[:, :, -1:] = k, v
        c = F.scaled_dot_product_attention(q, keys, values)
        return F.linear(c.transpose(1, 2).flatten(2), p.out_weight, p.out_bias)
    return forward
"""
)


def test_decoding_must_be_declared_and_is_then_given_a_cache(tmp_path: Path) -> None:
    workload = with_(TINY, mode="decode")
    reply = refusal(tmp_path, GOOD, workload)
    assert (reply.state, reply.reason) == ("unavailable", "does not declare mode decode")
    guest = Guest()
    reply = prepare(guest, write(tmp_path, DECODING), workload)
    assert isinstance(reply, Prepared), reply
    assert isinstance(guest.answer(Take(2)), Timed)
    checked = guest.answer(protocol.Check(3, TINY.batch, str(tmp_path / "tensors")))
    assert isinstance(checked, Checked), checked
    measured = read_tensors(tmp_path / "tensors", checked.tensors)
    assert accuracy.compare(measured, accuracy.make_reference(make_inputs(workload))).ok


def test_without_a_gradient_a_training_step_is_refused_in_plain_words(tmp_path: Path) -> None:
    reply = refusal(tmp_path, acting("y = y.detach()"), BACKWARD)
    assert reply.reason == "its output has no gradient"
    assert "no_grad" in reply.remedy


def test_what_raises_in_call_50_fails_then_and_was_timed_before(tmp_path: Path) -> None:
    guest = Guest()
    slow = acting("raise RuntimeError('boom')", "calls > 50").replace(
        "y = right(x)", "y = right(x); time.sleep(0.003)"
    )
    assert isinstance(prepare(guest, write(tmp_path, slow)), Prepared)
    replies = [guest.answer(Take(number)) for number in range(50)]
    assert isinstance(replies[0], Timed)
    refused = next(reply for reply in replies if isinstance(reply, Refused))
    assert refused.reason.startswith("RuntimeError: boom (mine.py, line ")


def test_what_goes_wrong_late_and_silently_is_noticed(tmp_path: Path) -> None:
    guest = Guest()
    slow = acting("y[0, 0, 0] = float('nan')", "calls > 20").replace(
        "y = right(x)", "y = right(x); time.sleep(0.002)"
    )
    assert isinstance(prepare(guest, write(tmp_path, slow)), Prepared)
    replies = [guest.answer(Take(number)) for number in range(LOOK_EVERY)]
    assert isinstance(replies[-1], Refused)
    assert "NaN" in replies[-1].reason


def test_a_thread_that_never_rests_is_noticed(tmp_path: Path) -> None:
    text = (
        acting("threading.Thread(target=spin, daemon=True).start()", "calls == 1")
        + """
going = True
def spin():
    while going:
        pass
"""
    )
    file = write(tmp_path, text)
    guest = Guest()
    try:
        reply = prepare(guest, file)
    finally:
        vars(sys.modules[file.id.replace("-", "_")])["going"] = False
    assert isinstance(reply, Refused)
    assert "of a processor busy between calls" in reply.reason
    while any(thread.daemon and "spin" in thread.name for thread in threading.enumerate()):
        time.sleep(0.01)


def test_denormal_numbers_are_flagged_and_native_is_as_fast_after_as_before(tmp_path: Path) -> None:
    inputs = make_inputs(TINY)
    guest = Guest()
    reply = prepare(guest, write(tmp_path, acting("y = (y * 1e-39) * 1e38 * 10")))
    assert isinstance(reply, Prepared)
    assert reply.denormal_in == "the result of mul"
    assert math.isclose(float(torch.tensor(1e-39) * 1.0), 1e-39, rel_tol=1e-3)
    assert torch.equal(make_inputs(TINY).x, inputs.x)


def test_wrapping_a_function_of_torch_is_replacing_it(tmp_path: Path) -> None:
    wrap = "import functools; f = F.relu; F.relu = functools.wraps(f)(lambda *a: f(*a))"
    assert "replaced torch.nn.functional.relu" in refusal(tmp_path, acting(wrap, "calls == 1")).reason


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # what the compiler has to say of torch's own parts
def test_a_file_may_compile(tmp_path: Path) -> None:
    text = GOOD.replace("return attention(w, p)", "return torch.compile(attention(w, p))")
    guest = Guest()
    assert isinstance(prepare(guest, write(tmp_path, text)), Prepared)
    replies = [guest.answer(Take(number)) for number in range(LOOK_EVERY + 1)]
    assert all(isinstance(reply, Timed) for reply in replies), replies[-1]


def test_only_what_was_confirmed_runs(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    write(tmp_path, GOOD + "\nraise AssertionError('ran')\n")
    reply = prepare(Guest(), file)
    assert isinstance(reply, Refused)
    assert reply.reason == "mine.py was changed after it was confirmed"
    (tmp_path / "mine.py").unlink()
    reply = prepare(Guest(), file)
    assert isinstance(reply, Refused)
    assert "there is no file" in reply.reason


def test_a_baseline_that_does_not_run_there_is_not_the_users_fault(tmp_path: Path) -> None:
    reply = prepare(Guest(), write(tmp_path, GOOD), baseline="extension-aten")
    assert isinstance(reply, Prepared)
    assert "the extension is not built yet" in reply.without_baseline


def test_inputs_are_those_of_the_sampler_bit_for_bit(tmp_path: Path) -> None:
    text = acting(f"torch.save(x.detach(), {str(tmp_path / 'x.pt')!r})", "calls == 1")
    assert isinstance(prepare(Guest(), write(tmp_path, text), BACKWARD, seed=7), Prepared)
    assert torch.equal(torch.load(tmp_path / "x.pt"), make_inputs(BACKWARD, 7).x.detach())


def test_a_request_survives_the_wire(tmp_path: Path) -> None:
    request = Prepare(3, BACKWARD, write(tmp_path, GOOD), "native", None, "", 7, 2)
    assert protocol.decode_request(protocol.encode(request)) == request
    with pytest.raises(msgspec.DecodeError):
        protocol.decode_request(b'{"type":"Prepare","id":1}')
