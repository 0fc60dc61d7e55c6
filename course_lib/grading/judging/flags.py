"""What is unusual in an answer: lines for the instructor, which decide no grade without --strict.

In Python, code that runs beside a check can be made to call whatever it likes, and a list of what
is allowed costs honest answers more than hostile ones. So these lists are short: what looks behind
names, what makes code of text, and what changes the classes and modules that an answer runs on.
"""

import ast
from collections.abc import Iterator, Sequence

from course_lib.answers.source import Mention, Source, chain, names_in
from course_lib.grading.marks.entries import plain
from course_lib.grading.marks.schema import Flag

MOST = 20
# modules and functions by which any other can be reached, or code be made of text
REACH_ANYTHING = frozenset(
    "abc.ABCMeta ast builtins code codeop course_lib.answers course_lib.checking course_lib.grading"
    " ctypes"
    " dataclasses.make_dataclass dis gc importlib inspect io linecache marshal"
    " operator.attrgetter operator.methodcaller os pathlib pickle pkgutil pydoc runpy socket"
    " string.Formatter subprocess symtable sys timeit torch.CompilationUnit torch.classes"
    " torch.fx torch.hub torch.jit.CompilationUnit torch.library torch.load torch.ops"
    " torch.overrides torch.package torch.utils.cpp_extension traceback types typing.ForwardRef"
    " typing.get_args typing.get_type_hints unittest".split()
) | frozenset(
    f"builtins.{name}"
    for name in "__import__ breakpoint compile delattr eval exec getattr globals locals open"
    " setattr vars".split()
)
# the same, as attributes of another module or of a frame
BEHIND = frozenset(
    "bltns builtins ctypes cr_frame f_back f_builtins f_globals f_locals gi_frame importlib inspect"
    " os sys tb_frame".split()
)
HARMLESS = frozenset(
    "os.environ sys.float_info sys.getsizeof sys.maxsize sys.platform sys.version sys.version_info"
    " types.SimpleNamespace".split()
)
# names with an underscore in front that code usually reads
USUAL = frozenset(
    "_asdict _fields _make _replace __call__ __class__ __doc__ __file__ __future__ __init__"
    " __len__ __name__ __new__ __post_init__ __version__".split()
)
# methods by which a class decides what is done with it, or what its name stands for
DECIDE = frozenset(
    "__class_getitem__ __delattr__ __getattr__ __getattribute__ __init_subclass__"
    " __instancecheck__ __match_args__ __mro_entries__ __prepare__ __reduce__ __reduce_ex__"
    " __set_name__ __setattr__ __subclasscheck__ __torch_dispatch__ __torch_function__".split()
)
BASES = ("ABCMeta", "EnumMeta", "Parameter", "Tensor", "TorchDispatchMode", "TorchFunctionMode")
MAKE_SUBCLASS = ("_make_subclass", "_make_wrapper_subclass", "as_subclass")
THEIRS = ("torch", "numpy", "einops", "builtins", "math", "course_lib")


def flags(source: Source, places: Sequence[tuple[int, int]]) -> list[Flag]:
    """List what is unusual in a source, the first of each line.

    `places` holds, for each line of the source, its cell and the line there.
    """
    found = names_in(source, {})
    own = _own_names(found.tree)
    seen = [(_line(x.node), said) for x in found.mentions for said in _of_mention(x, own)]
    seen += [(_line(x), said) for x in ast.walk(found.tree) for said in _of_node(x)]
    first: dict[tuple[int, int], str] = {}
    for line, said in sorted(seen):
        if line <= len(places):
            first.setdefault(places[line - 1], said)
    listed = [Flag(cell=place[0], line=place[1], seen=plain(x)) for place, x in first.items()]
    return listed[:MOST]


def _of_mention(mention: Mention, own: set[str]) -> Iterator[str]:
    written = ast.unparse(mention.node)
    if any(map(_reaches_anything, mention.targets)):
        yield f"`{written}` reaches any function"
    if behind := BEHIND.intersection(mention.path):
        yield f"`{written}` looks for `{min(behind)}` behind an object"
    for name in chain(mention.node):
        if name.startswith("_") and name.strip("_") and name not in own | USUAL:
            yield f"`{name}` is a hidden name"
    is_set = mention.path and not isinstance(mention.node.ctx, ast.Load)
    if is_set and any(x.partition(".")[0] in THEIRS for x in mention.targets):
        yield f"`{written}` is changed"


def _of_node(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names):
            yield from _of_imports([x.name for x in names])
        case ast.ImportFrom(module, names):
            yield from _of_imports([f"{module}.{x.name}".removesuffix(".*") for x in names])
        case ast.ClassDef(name, bases, keywords) if keywords or any(
            chain(x)[-1] in BASES or ast.unparse(x) == "type" for x in bases
        ):
            yield f"the class `{name}` decides what is done with it"
        case ast.FunctionDef(name) | ast.Name(name, ast.Store()) if name in DECIDE:
            yield f"`{name}` decides what is done with a class"
        case ast.Attribute(_, name) if name in MAKE_SUBCLASS:
            yield f"`{name}` gives a tensor another class"
        case ast.Call(ast.Name("type"), [_, _, *_]) | ast.Call(ast.Call(ast.Name("type"))):
            yield f"`{ast.unparse(node)}` makes a class"
        case ast.MatchClass(kwd_attrs=[_, *_]):
            yield f"`case {ast.unparse(node)}` reads attributes"
        case ast.Constant(str(text)) if "__" in text.replace("__main__", "") and " " not in text:
            yield f"the text {text!r} has a hidden name"


def _of_imports(targets: list[str]) -> Iterator[str]:
    for target in targets:
        # what is read of these is looked at where it is read
        if _reaches_anything(target) and target not in ("os", "sys", "types"):
            yield f"`{target}` is imported"
        elif any(x.startswith("_") and x not in USUAL for x in target.split(".")):
            yield f"`{target}` is hidden"


def _reaches_anything(target: str) -> bool:
    parts = target.split(".")
    known = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    if parts[1:]:  # every built-in function is one of `builtins`
        known.discard("builtins")
    return bool(known & REACH_ANYTHING) and not known & HARMLESS


def _own_names(tree: ast.Module) -> set[str]:
    """Find the names with one underscore that a source gives its own variables and methods."""
    own = set()
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name) | ast.arg(name) | ast.Name(name, ast.Store()):
                own.add(name)
            case ast.Attribute(ast.Name("self"), name, ast.Store()):
                own.add(name)
    return {name for name in own if not name.startswith("__")}


def _line(node: ast.AST) -> int:
    """Return a node's line; `getattr(x, "y")` reads as `x.y`, which has none of its own."""
    return next((line for x in ast.walk(node) if (line := getattr(x, "lineno", None))), 1)
