# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the documents: on the emulator, as text, through NVRTC, and on a GPU."""

import numpy as np
import pytest
from seed_kernels import SEEDS, compile_seed, run

import tirx

ARCHS = ("sm_80", "sm_90a", "sm_100a")
every = pytest.mark.parametrize("name", SEEDS)


@every
def test_on_the_emulator(name):
    exe = compile_seed(name, "cpu")
    for n in SEEDS[name].sizes:
        run(exe, SEEDS[name], n)


@every
def test_unchecked_on_the_emulator(name):
    exe = compile_seed(name, "cpu")
    for n in SEEDS[name].sizes:
        run(lambda *a: exe(*a, check=False), SEEDS[name], n)


@every
def test_text_reads_as_the_document_shows(name, golden):
    exe = compile_seed(name, "cpu")
    for piece in SEEDS[name].text:
        assert piece in exe.source, exe.source
    assert exe.mod.imports[0].inspect_source() == exe.source
    golden(f"seeds/{name}.cu", exe.source)


@every
@pytest.mark.parametrize("arch", ARCHS)
def test_nvrtc_accepts_it(name, arch, nvrtc):
    if SEEDS[name].launch > int(arch.strip("sm_a")):
        pytest.skip(f"clusters need sm_{SEEDS[name].launch}")
    exe = compile_seed(name, f"cuda:{arch}")
    assert exe.cubin[:4] == b"\x7fELF"


@every
def test_round_trip(name, golden):
    f = SEEDS[name].make()
    again = tirx.from_source(f.script())
    assert tirx.structural_equal(f, again)
    assert again.script() == f.script()
    golden(f"seeds/{name}.py.txt", f.script())


@pytest.mark.gpu
@every
def test_on_the_gpu(name, torch):
    exe = compile_seed(name, "cuda")
    for n in SEEDS[name].sizes:
        run(exe, SEEDS[name], n, lambda a: torch.from_numpy(a).cuda(), lambda t: t.cpu().numpy())


def test_split_forwards_the_size():
    """The listing after SplitHostDevice: the kernel takes n, the host half forwards it."""
    module = tirx.IRModule({"main": SEEDS["scale_dyn"].make()})
    for name in ("LowerTIRx", "FlattenBuffer", "UnrollLoop", "SplitHostDevice"):
        module = getattr(tirx.transform, name)()(module)
    text = module.script()
    assert "def scale_dyn_kernel(A_ptr: T.handle(" in text
    assert "n: T.int32" in text
    assert 'T.call_packed("scale_dyn_kernel", A.data, B.data, n, 1, 1)' in text


def test_packed_api_reads_the_size_and_checks_it():
    module = tirx.lower(SEEDS["scale_dyn"].make(), target="cpu")
    text = tirx.transform.MakePackedAPI()(module).script()
    assert "T.tvm_struct_get(" in text
    assert "B.shape[0]" in text


def test_one_kernel_serves_every_size_and_sizes_must_agree():
    exe = compile_seed("scale_dyn", "cpu")
    with pytest.raises(ValueError) as info:
        exe(np.zeros(100, np.float32), np.zeros(101, np.float32))
    assert str(info.value) == (
        "Mismatched B.shape[0] on argument #1 (b) when calling:\n"
        "  `scale_dyn(A: Tensor([n], float32), B: Tensor([n], float32))`,\n"
        "  expected to match A.shape[0] = 100, got 101"
    )
