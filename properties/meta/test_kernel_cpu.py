"""A first look at the CPU kernel, beside the eager formula; the properties judge it in earnest.

What only this file tests: that the bits of a row depend neither on strides nor on threads nor on the instruction set,
that two copies of the package run their own code, and what is refused with which words.
"""

import dataclasses
import mmap
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad

from kernels import l1_norm as shipped
from kernels.alias import load_module, load_package
from kernels.build import load
from kernels.cpu.op import HUGE_PAGE_THRESHOLD, SOURCES
from kernels.l1_norm import ModelNew, get_init_inputs, l1_norm

KERNELS = Path(shipped.__file__).parent
#: Of Linux; Python's mmap has no name for it before 3.13.
MAP_NORESERVE = 0x4000
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)

# Columns at the edges of a vector, of the 64 lanes, of a block of 512 and of a chunk of 65536.
COLUMNS = (1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 511, 512, 513, 1025, 65535, 65536, 65537, 200001)


def values(*shape: int, dtype: torch.dtype, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def eager(x: torch.Tensor) -> torch.Tensor:
    return x / x.abs().mean(1, keepdim=True)


def assert_near(x: torch.Tensor, y: torch.Tensor) -> None:
    """Within the rounding of the mean (a few units) and of the result, relative to each element."""
    exact = eager(x.double())
    unit = torch.finfo(x.dtype).eps / 2
    bound = exact.abs() * (8 * min(unit, 2**-24) + 1.01 * unit) + torch.finfo(x.dtype).smallest_normal * 2 * unit
    assert bool(((y.double() - exact).abs() <= bound).all())


@pytest.mark.skipif(sys.platform != "linux", reason="how to reserve memory that is never there differs")
@pytest.mark.parametrize("columns_apart", [False, True], ids=["rows", "columns"])
def test_what_lies_two_to_the_31_elements_apart_is_found(columns_apart: bool) -> None:
    """Offsets of 32 bits end before the third; the memory between is reserved and never there."""
    apart = (1 << 31) + 1
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    with mmap.mmap(-1, 2 * (2 * apart + 65), flags=flags) as room:
        x = torch.frombuffer(room, dtype=torch.float16).as_strided((3, 65), (apart, 1))
        x = x.t() if columns_apart else x
        x.copy_(values(*x.shape, dtype=torch.float16))
        y = l1_norm(x)
        assert_near(x.contiguous(), y.contiguous())
        del x


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    return torch.equal(a.contiguous().view(integer), b.contiguous().view(integer))


@pytest.fixture
def threads() -> Iterator[Callable[[int], None]]:
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


# ---- Values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_column_count_is_right_in_every_dtype(dtype: torch.dtype) -> None:
    for columns in COLUMNS:
        x = values(3, columns, dtype=dtype, seed=columns)
        assert_near(x, l1_norm(x))


@pytest.mark.parametrize("shape", [(2, 3, 5), (3, 70, 130), (2, 5, 3, 4), (1, 4, 1), (5, 1, 7), (2, 3, 1, 1, 2)])
def test_every_rank_normalizes_along_dim_1(shape: tuple[int, ...]) -> None:
    for dtype in DTYPES:
        x = values(*shape, dtype=dtype)
        assert_near(x, l1_norm(x))


@pytest.mark.parametrize("shape", [(0, 5), (5, 0), (0, 0), (2, 0, 3), (2, 3, 0)])
def test_an_empty_input_gives_an_empty_result(shape: tuple[int, ...]) -> None:
    assert l1_norm(torch.empty(shape)).shape == shape


def test_special_rows_come_out_as_the_formula_says() -> None:
    inf, nan = float("inf"), float("nan")
    rows = [[0.0, 0, 0, 0], [1, inf, -2, 0], [1, nan, 2, 0], [0.0, -0.0, 4, 0], [1e-39] * 4, [3e38, -3e38, 3e38, -3e38]]
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        x = torch.tensor(rows, dtype=dtype)
        y = l1_norm(x)
        torch.testing.assert_close(y, eager(x), equal_nan=True)
        assert torch.equal(torch.signbit(y[y == 0]), torch.signbit(x[y == 0]))


def test_half_rows_keep_their_mean_in_single_precision() -> None:
    row = torch.zeros(1, 1024, dtype=torch.float16)
    row[0, 7] = 6e-8
    assert l1_norm(row)[0, 7] == 1024
    ones = torch.full((2, 65535), 60000.0, dtype=torch.float16)
    assert bool((l1_norm(ones) == 1).all())


# ---- Bits ----------------------------------------------------------------------------------------------------------

LAYOUTS: dict[str, Callable[[int, int, torch.dtype], torch.Tensor]] = {
    "transposed": lambda rows, columns, dtype: torch.empty(columns, rows, dtype=dtype).t(),
    "column stride": lambda rows, columns, dtype: torch.empty(rows, columns * 3, dtype=dtype)[:, ::3],
    "row pitch and offset": lambda rows, columns, dtype: torch.empty(rows, columns + 5, dtype=dtype)[:, 2:-3],
    "both strided": lambda rows, columns, dtype: torch.empty(columns * 2, rows * 2, dtype=dtype).t()[::2, ::2],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_strides(dtype: torch.dtype, layout: str) -> None:
    for rows, columns in ((70, 3), (3, 17), (130, 600), (5, 70000)):
        x = values(rows, columns, dtype=dtype)
        expected = l1_norm(x)
        assert same_bits(l1_norm(LAYOUTS[layout](rows, columns, dtype).copy_(x)), expected)
        out = LAYOUTS[layout](rows, columns, dtype)
        assert l1_norm(x, out=out) is out
        assert same_bits(out, expected)


def test_an_expanded_row_is_read_in_place() -> None:
    x = values(1, 300, dtype=torch.float32).expand(4, 300)
    assert same_bits(l1_norm(x), l1_norm(x.contiguous()))
    column = values(5, 1, dtype=torch.float32).expand(5, 300)
    assert same_bits(l1_norm(column), l1_norm(column.contiguous()))


def test_bits_do_not_depend_on_threads(threads: Callable[[int], None]) -> None:
    for shape in ((1, 1 << 21), (3, 400001), (5000, 70), (70, 66000)):
        x = values(*shape, dtype=torch.float32)
        results = []
        for count in (1, 2, 5):
            threads(count)
            results.append((l1_norm(x), l1_norm(x.t().contiguous().t())))
        assert all(same_bits(result, results[0][0]) for pair in results for result in pair)


def test_bits_do_not_depend_on_the_instruction_set() -> None:
    portable = load(dataclasses.replace(SOURCES, cpp_flags=("-DKERNELPROOF_PORTABLE",)), "l1_norm_out").default
    every = torch.arange(-(1 << 15), 1 << 15, dtype=torch.int32).to(torch.int16)
    for dtype in DTYPES:
        x = values(40, 1000, dtype=dtype)
        if x.element_size() == 2:
            # Every value of the type that is finite, against a partner that makes the mean one.
            half = every.view(dtype)
            half = half[half.isfinite() & (half.abs() < 2)]
            x = torch.stack((half, (2 - half.abs().float()).to(dtype)), dim=1)
        for shaped in (x, x.t().contiguous().t()):
            out = torch.empty_like(shaped)
            portable(shaped, out)
            assert same_bits(out, l1_norm(shaped))


# ---- The result ----------------------------------------------------------------------------------------------------


def test_the_result_is_fresh_plain_and_strided_as_empty_like() -> None:
    x = values(4, 6, 5, dtype=torch.float32)
    for view in (x, x.transpose(0, 2), x.permute(2, 1, 0)[:, ::2], x[:1].expand(3, 6, 5)):
        kept = view.clone()
        y = l1_norm(view)
        assert type(y) is torch.Tensor
        assert y.stride() == torch.empty_like(view).stride()
        assert y.untyped_storage().data_ptr() != view.untyped_storage().data_ptr()
        assert torch.equal(view, kept)


def test_a_large_result_is_right_in_huge_pages_too() -> None:
    x = values(1, 1000, dtype=torch.float32).expand(HUGE_PAGE_THRESHOLD // 4000 + 1, 1000)
    y = l1_norm(x)
    assert y.nbytes >= HUGE_PAGE_THRESHOLD
    assert y.stride() == torch.empty_like(x).stride()
    assert same_bits(y[-1:], l1_norm(x[:1]))
    assert torch.equal(y[0], y[-1])


def test_a_negated_view_is_resolved() -> None:
    negated = torch.imag(torch.complex(torch.ones(3, 4), values(3, 4, dtype=torch.float32)).conj())
    assert negated.is_neg()
    assert same_bits(l1_norm(negated), l1_norm(negated.resolve_neg()))


def test_the_model_is_in_kernelbench_form() -> None:
    x = values(4, 9, dtype=torch.float32)
    assert same_bits(ModelNew(*get_init_inputs())(x), l1_norm(x))
    assert (shipped.batch_size, shipped.dim) == (32768, 65535)


def test_a_parameter_gives_a_plain_tensor_without_gradients() -> None:
    with torch.no_grad():
        assert type(l1_norm(nn.Parameter(torch.ones(2, 3)))) is torch.Tensor


def test_out_counts_as_modified() -> None:
    out = torch.empty(2, 3)
    version = out._version
    l1_norm(torch.ones(2, 3), out=out)
    assert out._version > version


# ---- What is refused -----------------------------------------------------------------------------------------------


class Marked(torch.Tensor):
    """A subclass, whose meaning we cannot know."""


BASE = torch.zeros(4, 3)


@pytest.mark.parametrize(
    ("x", "error", "words"),
    [
        ([[1.0, 2.0]], TypeError, "plain torch.Tensor, got builtins.list"),
        (torch.ones(2, 3).as_subclass(Marked), TypeError, "got .*Marked"),
        (torch.ones(5), IndexError, "rank >= 2, got shape"),
        (torch.tensor(1.0), IndexError, "rank >= 2"),
        (torch.ones(2, 3, dtype=torch.int64), TypeError, "torch.int64: expected one of float32, float64, float16"),
        (torch.ones(2, 3, dtype=torch.bool), TypeError, "torch.bool"),
        (torch.ones(2, 3, dtype=torch.complex64), TypeError, "torch.complex64"),
        (torch.ones(2, 3, requires_grad=True), RuntimeError, r"forward only .*detach\(\) or .*no_grad"),
        (torch.ones(2, 3).to_sparse(), NotImplementedError, "to_dense"),
        (torch.ones(2, 3, device="meta"), NotImplementedError, "no meta kernel"),
    ],
)
def test_what_is_not_supported_is_refused_in_words(x: torch.Tensor, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        l1_norm(x)


@pytest.mark.parametrize(
    ("out", "error", "words"),
    [
        ("there", TypeError, "out must be a plain"),
        (torch.zeros(3, 4), ValueError, "shape, dtype and device"),
        (torch.zeros(4, 3, dtype=torch.float64), ValueError, "shape, dtype and device"),
        (torch.zeros(4, 3, device="meta"), ValueError, "shape, dtype and device"),
        (BASE, ValueError, "share no memory"),
        (torch.zeros(3).expand(4, 3), ValueError, "share no memory"),
        (torch.zeros(20).as_strided((4, 3), (2, 1)), ValueError, "share no memory"),
        (torch.zeros(4, 3, requires_grad=True), RuntimeError, "forward only"),
    ],
)
def test_an_out_that_does_not_fit_is_refused(out: torch.Tensor, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        l1_norm(BASE, out=out)


# torch scripts its own decompositions when the first dual tensor is made, and warns of that itself.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_tangents_and_transforms_are_refused_not_dropped() -> None:
    with (
        forward_ad.dual_level(),
        pytest.raises(RuntimeError, match="tangent"),
        torch.no_grad(),
    ):
        l1_norm(forward_ad.make_dual(torch.ones(2, 3), torch.ones(2, 3)))
    with pytest.raises(TypeError, match=r"torch\.func"):
        torch.func.vmap(l1_norm)(torch.ones(2, 3, 4))


# ---- Two copies in one process -------------------------------------------------------------------------------------


def test_copies_under_other_names_run_their_own_code(tmp_path: Path) -> None:
    x = values(4, 9, dtype=torch.float32)
    changed = shutil.copytree(KERNELS, tmp_path / "a copy" / "kernels")
    source = changed / "cpu" / "l1_norm.h"
    # The fault a comparison must be able to see: twice the mean.
    text = source.read_text().replace("static_cast<double>(columns)", "(0.5 * static_cast<double>(columns))")
    source.write_text(text)
    other = load_module(changed, "kernels_changed")
    again = load_module(KERNELS, "kernels_again")
    assert torch.equal(other.l1_norm(x), l1_norm(x) / 2)
    assert torch.equal(again.l1_norm(x), l1_norm(x))
    assert again is not shipped
    assert (
        load_module(KERNELS, "kernels_again", "cpu.op")._operator("l1_norm_out") is load(SOURCES, "l1_norm_out").default
    )


def test_an_alias_that_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no Python name"):
        load_package(KERNELS, "a b")
    with pytest.raises(ValueError, match="is taken"):
        load_package(KERNELS, "torch")
    with pytest.raises(FileNotFoundError, match="no package"):
        load_package(tmp_path, "kernels_nowhere")
