"""The check that BBRv3 stays fit for BPF reads LLVM's intermediate code; `make test-bpf` compiles it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "crates" / "cc" / "tests" / "bpf" / "check.py"


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bpf_check", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["bpf_check"] = module
    spec.loader.exec_module(module)
    return module


check = loaded()


def message(body: str) -> set[str]:
    """What is said of a function with this body."""
    code = f"define noundef i64 @f(i64 noundef %a, ptr %p) unnamed_addr #0 {{\nstart:\n{body}\n}}\n"
    found: dict[str, set[str]] = check.complaints(code)
    assert set(found) <= {"f"}
    return found.get("f", set())


@pytest.mark.parametrize(
    "body",
    [
        "  %b = mul i64 %a, 277\n  %c = udiv i64 %b, 100\n  ret i64 %c",
        "  %b = tail call i64 @llvm.umin.i64(i64 %a, i64 4)\n  ret i64 %b",
        "  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 464, i1 false)\n  ret i64 0",
        "  %b = tail call fastcc i64 @f(i64 %a, ptr %p)\n  ret i64 %b",
        # Names and comments that look like types.
        '  %i128.i = add i64 %a, 1\n; call panicking\n  %"float x" = add i64 %a, 1 ; double\n  ret i64 0',
        # Blocks that join again are no loop.
        "  br i1 %x, label %one, label %two\none:\n  br label %two\ntwo:\n  ret i64 0",
        "  switch i64 %a, label %two [\n    i64 1, label %one\n  ]\none:\n  br label %two\ntwo:\n  ret i64 0",
        "  %b = alloca [512 x i8], align 8\n  ret i64 0",
    ],
)
def test_what_bpf_has_is_no_complaint(body: str) -> None:
    assert message(body) == set()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("  %b = zext i64 %a to i128\n  ret i64 0", "an integer of more than 64 bits"),
        ("  %b = uitofp i64 %a to double\n  ret i64 0", "floating point (double)"),
        ("  %b = sdiv i64 %a, %a\n  ret i64 %b", "a signed division"),
        ("  %b = srem i32 %a, 7\n  ret i64 0", "a signed division"),
        ("  tail call void @_RNvCs_4core9panicking9panic_fmt() #1\n  unreachable", "a panic"),
        (
            "  %b = tail call { i64, i1 } @llvm.umul.with.overflow.i64(i64 %a, i64 %a)\n  ret i64 0",
            "a product that needs 128 bits (llvm.umul.with.overflow.i64)",
        ),
        ("  %b = call i64 %p(i64 %a)\n  ret i64 %b", "a call by address"),
        ("  %b = call i64 @__udivti3(i64 %a)\n  ret i64 %b", "a call to __udivti3"),
        (
            "  %b = call i64 @llvm.sqrt.i64(i64 %a)\n  ret i64 %b",
            "llvm.sqrt.i64, which is not known to be harmless",
        ),
        (
            "  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 %a, i1 false)\n  ret i64 0",
            "a copy of a length that is not constant",
        ),
        ("  br label %one\none:\n  br i1 %x, label %one, label %two\ntwo:\n  ret i64 0", "a loop"),
        ("  br label %start", "a loop"),
        (
            "  br label %b\nb:\n  switch i64 %a, label %c [\n    i64 1, label %b\n  ]\nc:\n  ret i64 0",
            "a loop",
        ),
        (
            "  %b = alloca [448 x i8], align 8\n  %c = alloca [72 x i8], align 8\n  ret i64 0",
            "520 bytes of stack",
        ),
    ],
)
def test_unsupported_bpf_feature_is_detected(body: str, expected: str) -> None:
    assert message(body) == {expected}


def test_code_without_function_is_an_error() -> None:
    assert check.complaints("") == {"": {"there is no function"}}
