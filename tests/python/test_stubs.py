"""The hand-written stub of the native module says what the module is, checked both ways.

``mypy.stubtest`` sees missing and superfluous names but no misnamed keyword, because a pybind11 function has
no signature that can be inspected; it has one in its docstring. So that text is compared with the syntax tree
of the stub: the same callables, the same parameter names in the same order, the same ones optional.
"""

from __future__ import annotations

import ast
import enum
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamjoin._core as native

# What pybind11 puts into every module of its own; a stub cannot and need not say it.
PYBIND11_ARTEFACTS = (
    "is inconsistent, metaclass differs",
    "__pybind11_native_enum__ is not present in stub",
    '__init__ is inconsistent, stub does not have *args parameter "args"',  # a class that only C++ makes
)

# A face maps a dotted name to its signatures, one per overload. A signature is a list of parameters: "x", or
# "x=" when it is optional, "*" and "/" as written. A property has ["property"] or
# ["property", "setter"]; anything else that is public has none.
Face = dict[str, list[list[str]]]


def test_stubtest_finds_no_difference() -> None:
    command = [sys.executable, "-m", "mypy.stubtest", "--concise", "streamjoin._core"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = (result.stdout + result.stderr).splitlines()
    differences = [line for line in lines if line and not line.endswith(PYBIND11_ARTEFACTS)]
    assert result.returncode in (0, 1), "\n".join(lines)
    assert differences == []


def test_stub_and_docstring_signatures_agree() -> None:
    stub = Path(str(native.__file__)).with_name("_core.pyi")
    assert stub.exists(), "the stub is not installed beside the module"
    assert differences(module_face(native), stub_face(stub.read_text(encoding="utf-8"))) == []


# The judge itself: each kind of drift is seen.


class Lookalike(types.ModuleType):
    """Stands for a native module: functions whose only signature is the docstring."""


def lookalike(**docstrings: str) -> types.ModuleType:
    module = Lookalike("lookalike")
    for name, docstring in docstrings.items():

        def function(*args: Any, **kwargs: Any) -> None: ...

        function.__doc__ = docstring
        setattr(module, name, function)
    return module


JOIN = (
    "join(left: int, *, right: object = (1, 'x, y'), lower: Annotated[A, 'B'] = <C: 2>) -> tuple[int, int]\n"
)
OVER = (
    "over(*args, **kwargs)\nOverloaded function.\n\n"
    "1. over(x: int) -> int\n\n2. over(x: str, y: int) -> str\n\nText.\n"
)
JOIN_STUB = "def join(left: int, *, right: object = ..., lower: float = 2) -> tuple[int, int]: ...\n"
OVER_STUB = "@overload\ndef over(x: int) -> int: ...\n@overload\ndef over(x: str, y: int) -> str: ...\n"


def test_equal_faces_have_no_difference() -> None:
    module = lookalike(join=JOIN, over=OVER, bare="bare(arg0: int, arg1: int) -> None\n")
    stub = JOIN_STUB + OVER_STUB + "def bare(a: int, b: int, /) -> None: ...\n"
    assert module_face(module)["join"] == [["left", "*", "right=", "lower="]]
    assert differences(module_face(module), stub_face(stub)) == []


@pytest.mark.parametrize(
    "stub",
    [
        pytest.param(JOIN_STUB.replace("lower", "upper") + OVER_STUB, id="misnamed-keyword"),
        pytest.param(JOIN_STUB.replace(" = 2", "") + OVER_STUB, id="default-missing"),
        pytest.param(JOIN_STUB.replace("*, ", "") + OVER_STUB, id="keyword-only-lost"),
        pytest.param(JOIN_STUB + "def over(x: int) -> int: ...\n", id="overload-missing"),
        pytest.param(JOIN_STUB, id="function-missing"),
        pytest.param(JOIN_STUB + OVER_STUB + "def more() -> None: ...\n", id="function-invented"),
        pytest.param(JOIN_STUB + OVER_STUB + "limit: int\n", id="constant-invented"),
        pytest.param(JOIN_STUB + OVER_STUB + "class C:\n    def f(self) -> int: ...\n", id="class-invented"),
    ],
)
def test_a_drifted_stub_is_noticed(stub: str) -> None:
    module = lookalike(join=JOIN, over=OVER)
    assert len(differences(module_face(module), stub_face(stub))) >= 1


def test_an_unnamed_argument_must_be_positional_in_the_stub() -> None:
    module = module_face(lookalike(bare="bare(arg0: int) -> None\n"))
    assert len(differences(module, stub_face("def bare(a: int) -> None: ...\n"))) == 1


# Comparing


def differences(module: Face, stub: Face) -> list[str]:
    found = [f"{name}: not in the stub" for name in sorted(module.keys() - stub.keys())]
    found += [f"{name}: only in the stub" for name in sorted(stub.keys() - module.keys())]
    for name in sorted(module.keys() & stub.keys()):
        theirs, ours = module[name], stub[name]
        same = len(theirs) == len(ours) and all(_agree(*pair) for pair in zip(theirs, ours, strict=True))
        if not same:
            found.append(f"{name}: the module has {_shown(theirs)}, the stub {_shown(ours)}")
    return found


def _agree(module: list[str], stub: list[str]) -> bool:
    """Whether two signatures are one. ``argN`` is pybind11's word for a nameless, so positional, one."""
    positional = stub.index("/") if "/" in stub else 0
    module = [parameter for parameter in module if parameter != "/"]
    stub = [parameter for parameter in stub if parameter != "/"]
    if len(module) != len(stub):
        return False
    for place, (theirs, ours) in enumerate(zip(module, stub, strict=True)):
        nameless = re.fullmatch(r"arg\d+(=?)", theirs)
        if nameless is None and theirs != ours:
            return False
        if nameless and (place >= positional or nameless.group(1) != ours[len(ours.rstrip("=")) :]):
            return False
    return True


def _shown(signatures: list[list[str]]) -> str:
    return " | ".join(f"({', '.join(parameters)})" for parameters in signatures)


# Reading the module


def module_face(module: types.ModuleType) -> Face:
    return dict(_members(vars(module), ""))


def _members(members: Any, prefix: str) -> Iterator[tuple[str, list[list[str]]]]:
    for name, member in members.items():
        function = member.__func__ if isinstance(member, staticmethod) else member
        signatures = _docstring_signatures(name, function)
        public = not name.startswith("_")
        if isinstance(member, type) and public:
            yield prefix + name, []
            if issubclass(member, enum.Enum):
                yield from ((f"{prefix}{name}.{value}", []) for value in member.__members__)
            else:
                yield from _members(vars(member), f"{prefix}{name}.")
        elif isinstance(member, property) and public:
            yield prefix + name, [["property", "setter"] if member.fset else ["property"]]
        elif signatures:  # private and special names too, when they were bound by hand
            yield prefix + name, signatures
        elif public or name == "__version__":
            yield prefix + name, []


def _docstring_signatures(name: str, member: Any) -> list[list[str]]:
    docstring = getattr(member, "__doc__", None)
    if not callable(member) or not isinstance(docstring, str):
        return []
    start = re.escape(name) + r"\((.*)\) -> .*$"
    if "\nOverloaded function.\n" in docstring:
        lines = re.findall(r"^\d+\. " + start, docstring, re.MULTILINE)
    else:
        lines = re.findall("^" + start, docstring.splitlines()[0] if docstring else "")
    return [[_parameter(text) for text in _split(line)] for line in lines]


def _split(parameters: str) -> list[str]:
    """Splits at the commas that stand outside of brackets and quotes; defaults may hold any repr."""
    parts, depth, quote, start = [], 0, "", 0
    for place, letter in enumerate(parameters):
        if quote:
            quote = "" if letter == quote and parameters[place - 1] != "\\" else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{<":
            depth += 1
        elif letter in ")]}" or (letter == ">" and parameters[place - 1] != "-"):
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(parameters[start:place])
            start = place + 1
    return [part.strip() for part in [*parts, parameters[start:]] if part.strip()]


def _parameter(text: str) -> str:
    """`x: int = 5` becomes `x=`. A type never holds ` = ` outside of brackets."""
    name = re.match(r"[*/]*\w*", text)
    assert name is not None
    return name.group() + ("=" if " = " in text else "")


# Reading the stub


def stub_face(text: str) -> Face:
    face: Face = {}
    _read_body(ast.parse(text).body, "", face)
    return face


def _read_body(body: list[ast.stmt], prefix: str, face: Face) -> None:
    for statement in body:
        if isinstance(statement, ast.ClassDef):
            if any(ast.unparse(decorator) == "type_check_only" for decorator in statement.decorator_list):
                continue  # says itself that it is in the stub alone
            face[prefix + statement.name] = []
            _read_body(statement.body, f"{prefix}{statement.name}.", face)
        elif isinstance(statement, ast.FunctionDef):
            _read_function(statement, prefix + statement.name, face)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if ast.unparse(statement.annotation).rpartition(".")[2] != "TypeAlias":
                face[prefix + statement.target.id] = []
        elif isinstance(statement, ast.Assign):
            face.update({prefix + ast.unparse(target): [] for target in statement.targets})


def _read_function(function: ast.FunctionDef, name: str, face: Face) -> None:
    decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
    if "property" in decorators:
        face[name] = [["property"]]
    elif f"{function.name}.setter" in decorators:
        face[name][0].append("setter")
    else:
        face.setdefault(name, []).append(_stub_parameters(function.args))


def _stub_parameters(arguments: ast.arguments) -> list[str]:
    plain = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args]]
    first_optional = len(plain) - len(arguments.defaults)
    parameters = [name + "=" * (place >= first_optional) for place, name in enumerate(plain)]
    if arguments.posonlyargs:
        parameters.insert(len(arguments.posonlyargs), "/")
    if arguments.vararg:
        parameters.append(f"*{arguments.vararg.arg}")
    elif arguments.kwonlyargs:
        parameters.append("*")
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        parameters.append(argument.arg + "=" * (default is not None))
    if arguments.kwarg:
        parameters.append(f"**{arguments.kwarg.arg}")
    return parameters
