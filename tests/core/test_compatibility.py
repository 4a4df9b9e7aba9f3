"""Which builds of torch run on which GPU, and advice that does no harm."""

from __future__ import annotations

import itertools

import pytest

from app.core.compatibility import CU126, parse_architecture, remedy, runs_on

PASCAL = (6, 1)


@pytest.mark.parametrize(
    ("capability", "architectures", "expected"),
    [
        (PASCAL, ["sm_50", "sm_60", "sm_70"], True),
        (PASCAL, ["sm_61"], True),
        (PASCAL, ["sm_70", "sm_75"], False),
        (PASCAL, ["sm_50", "sm_52"], False),
        (PASCAL, ["sm_62"], False),
        (PASCAL, ["compute_50"], True),
        (PASCAL, ["sm_75", "compute_61"], True),
        (PASCAL, ["compute_70"], False),
        ((7, 5), ["sm_70"], True),
        ((8, 6), ["sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((9, 0), ["sm_90a"], True),
        ((12, 0), ["sm_120"], True),
        ((12, 0), ["sm_90", "compute_90"], True),
        ((12, 0), ["sm_90"], False),
        ((10, 0), ["sm_90a"], False),
        (PASCAL, [], None),
        (None, ["sm_60"], None),
        (PASCAL, ["gfx90a"], None),
    ],
)
def test_code_runs_on_its_own_family_and_ptx_on_everything_newer(capability, architectures, expected):
    assert runs_on(capability, architectures) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sm_61", ("sm", (6, 1))),
        ("compute_120", ("compute", (12, 0))),
        ("sm_90a", ("sm", (9, 0))),
        ("x", None),
    ],
)
def test_names_of_architectures(name, expected):
    assert parse_architecture(name) == expected


def test_a_pascal_owner_is_sent_to_cuda_12_6_with_a_command_that_keeps_the_version():
    way_out = remedy(PASCAL, "2.13.0+cu130", "Linux")
    assert "whl/cu126" in way_out.sentence
    assert way_out.command == f"pip install torch==2.13.0 --index-url {CU126}"
    assert "2.7.1" in way_out.sentence
    assert "2.7.1" not in remedy(PASCAL, "2.13.0+cpu", "Windows").sentence


def test_a_torch_without_a_cuda_12_build_is_replaced_by_one_that_has():
    assert remedy(PASCAL, "2.15.0+cu130", "Linux").command == f"pip install 'torch<2.15' --index-url {CU126}"


def test_no_advice_for_a_pascal_owner_breaks_a_working_machine():
    versions = ("2.6.0+cu124", "2.7.1", "2.8.0+cu128", "2.13.0+cpu", "2.14.1+cu132", "2.15.0", "nightly")
    for version, system in itertools.product(versions, ("Linux", "Windows", "Darwin")):
        for capability in (PASCAL, (6, 0), None):
            way_out = remedy(capability, version, system)
            text = f"{way_out.sentence} {way_out.command}".lower()
            for harmful in ("latest", "newest", "update your driver", "upgrade", "cudnn", "--pre"):
                assert harmful not in text
            assert "cu126" in text


def test_an_unknown_card_is_called_unknown_and_offered_the_cpu():
    text = remedy(None, "2.13.0+cu130", "Linux").sentence
    assert "not known" in text
    assert "CPU" in text


def test_a_new_card_is_not_sent_to_an_old_build():
    assert "cu126" not in remedy((12, 0), "2.13.0+cu126", "Linux").sentence
    assert remedy((8, 6), "2.13.0+cpu", "Windows").command


def test_a_card_older_than_any_build_is_told_so():
    way_out = remedy((3, 5), "2.13.0", "Linux")
    assert "use the CPU" in way_out.sentence
    assert way_out.command == ""
