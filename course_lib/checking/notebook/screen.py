"""What a graded answer may name: lists of what is allowed, and one sentence for the rest.

`forbidden_source` finds a function by its name, whatever the alias. A stranger who wants to hide
the name needs a name made at run time, or a module handed on as a value; a graded answer does
without both.
"""

import ast
import importlib
import random
import types
import typing
import warnings
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

import numpy
import torch

from course_lib.answers.dotted_names import loaded, resolve
from course_lib.checking.exercise import Exercise
from course_lib.checking.notebook.likeness import is_reference
from course_lib.checking.trying.forbidden_names import in_source
from course_lib.checking.trying.source_names import Import, Mention, chain, names_in

# modules that are made for values alone: whatever they define may be used
WHOLE = frozenset(
    "__future__ abc bisect cmath collections collections.abc decimal fractions heapq itertools math"
    " numbers random statistics time einops einops.layers.torch numpy.fft numpy.linalg numpy.random"
    " numpy.typing torch.autograd.functional torch.fft torch.func torch.linalg torch.nn"
    " torch.nn.functional torch.nn.init torch.nn.parameter torch.nn.utils.rnn torch.optim"
    " torch.optim.lr_scheduler torch.random torch.special torch.types".split()
)
# of other modules, these; of torch, also the functions that its tensors have as methods
NAMED = {
    "builtins": "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict"
    " dir divmod enumerate exit filter float format frozenset hasattr hash hex id input int"
    " isinstance issubclass iter len list map max memoryview min next object oct ord pow print"
    " property quit range repr reversed round set slice sorted staticmethod str sum super tuple"
    " type zip NotImplemented Ellipsis __name__",
    "contextlib": "contextmanager suppress nullcontext",
    "copy": "copy deepcopy",
    "dataclasses": "dataclass field",
    "enum": "Enum IntEnum Flag IntFlag auto unique",
    "functools": "partial reduce cache lru_cache cached_property total_ordering cmp_to_key",
    "operator": "add sub mul truediv floordiv mod neg pos pow matmul eq ne lt le gt ge and_ or_"
    " not_ xor invert abs index is_ is_not truth concat contains getitem setitem itemgetter",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation",
    "sys": "maxsize float_info version version_info platform getsizeof",
    "typing": "Any Annotated Callable ClassVar Dict Final FrozenSet Generic Iterable Iterator List"
    " Literal Mapping NamedTuple Never NewType NoReturn Optional ParamSpec Protocol Self Sequence"
    " Set SupportsFloat SupportsIndex SupportsInt TYPE_CHECKING Tuple Type TypeAlias TypeVar"
    " TypedDict Union cast final overload"
    " runtime_checkable",
    "warnings": "warn filterwarnings simplefilter catch_warnings",
    "numpy": "all allclose amax amin any append apply_along_axis arange argmax argmin argpartition"
    " argsort argwhere around array array_split asanyarray ascontiguousarray bincount block"
    " broadcast_arrays broadcast_shapes choose cumulative_sum diag_indices digitize dsplit dstack"
    " fill_diagonal fliplr flipud fromfunction fromiter geomspace gradient histogram hsplit indices"
    " interp ix_ kron nanmax nanmean nansum partition percentile piecewise ptp quantile rot90"
    " select setdiff1d squeeze triu_indices_from tril_indices_from union1d vsplit"
    " array_equal asarray atleast_1d atleast_2d average broadcast_to clip column_stack concatenate"
    " convolve copy correlate cos count_nonzero cross cumprod cumsum delete diag diagonal diff dot"
    " dtype e einsum empty empty_like expand_dims eye finfo flatnonzero flip float32 float64 full"
    " full_like hstack identity iinfo inf inner int32 int64 isclose isin linspace logspace"
    " matrix_transpose max mean median meshgrid min moveaxis nan nan_to_num ndarray ndim newaxis"
    " nonzero ones ones_like outer pad pi prod ravel repeat reshape roll round searchsorted shape"
    " size sort split squeeze stack std sum swapaxes take take_along_axis tensordot tile trace"
    " transpose tri tril tril_indices triu triu_indices unique unravel_index vander var vdot"
    " vectorize vstack where zeros zeros_like",
    "torch": "Generator Size Tensor FloatTensor LongTensor BoolTensor IntTensor DoubleTensor arange"
    " as_tensor asarray atleast_1d atleast_2d atleast_3d autocast batch_norm bilinear"
    " binary_cross_entropy_with_logits block_diag broadcast_shapes broadcast_tensors bucketize"
    " cartesian_prod cat cdist celu chain_matmul column_stack combinations complex concat"
    " concatenate conv1d conv2d conv3d conv_transpose1d conv_transpose2d cosine_similarity"
    " cumulative_trapezoid device dropout dstack dtype einsum embedding empty empty_like"
    " empty_strided enable_grad eye finfo from_numpy full full_like gradient group_norm gru"
    " gru_cell hstack iinfo inference_mode initial_seed instance_norm is_grad_enabled is_tensor"
    " isin get_default_dtype get_default_device layer_norm linspace logspace lstm lstm_cell"
    " manual_seed max_pool1d meshgrid native_layer_norm no_grad norm normal ones ones_like"
    " pairwise_distance polar promote_types rand rand_like randint randint_like randn randn_like"
    " randperm range result_type rms_norm rnn_relu rnn_tanh row_stack scalar_tensor searchsorted"
    " seed selu set_default_dtype set_grad_enabled set_num_threads set_printoptions stack std_mean"
    " tensor tensordot threshold trapezoid tril_indices triu_indices unravel_index"
    " use_deterministic_algorithms vander var_mean view_as_complex view_as_real vmap vstack zeros"
    " zeros_like strided contiguous_format preserve_format e inf nan newaxis pi __version__",
    "torch.accelerator": "is_available current_accelerator device_count",
    "torch.autograd": "Function Variable grad backward no_grad enable_grad set_grad_enabled",
    "torch.autograd.function": "Function FunctionCtx once_differentiable",
    "torch.backends": "",
    "torch.backends.cuda": "is_built",
    "torch.backends.mps": "is_available is_built",
    "torch.cuda": "is_available device_count current_device manual_seed manual_seed_all empty_cache"
    " get_device_name synchronize",
    "torch.mps": "is_available device_count manual_seed",
    "torch.nn.utils": "clip_grad_norm_ clip_grad_value_ parameters_to_vector vector_to_parameters",
    "torch.version": "cuda",
}
# what notebooks import and the sandbox lacks: an import that fails costs its names alone
ABSENT = frozenset(
    "IPython ipywidgets matplotlib pandas plotly rich scipy seaborn sklearn tokenizers tqdm"
    " transformers".split()
)
# of the course: the components, and what notebooks import from the exercises
COURSE_INSIDE = ("answers", "exercises", "grading")
STUBS = ("check", "hint", "mine", "reveal", "solution", "verdict")
METHODS = frozenset(
    f"__{name}__"
    for name in "init call name doc len iter next getitem setitem contains add radd sub rsub mul"
    " rmul matmul truediv neg pow eq ne lt le gt ge hash bool enter exit post_init repr str class"
    " version delitem floordiv mod abs int float index iadd isub imul and or xor invert reversed"
    " missing all slots annotations_cache".split()
)
# what leads from an object to the code around it
INNER = frozenset(
    name
    for kind in (
        types.FrameType, types.CodeType, types.TracebackType, types.GeneratorType,
        types.CoroutineType, types.AsyncGeneratorType,
    )
    for name in vars(kind)
    if "_" in name and not name.startswith("_")
) | {"obj"}  # fmt: skip
# whose names with an underscore an answer may not take for its own
KNOWN_OBJECTS = (
    torch.Tensor, torch.nn.Module, torch.autograd.Function, numpy.ndarray, type, object, Exception,
    types.FunctionType, random.Random, typing.Optional["int"], typing.TypeVar("T"),
    typing.ForwardRef, warnings.catch_warnings,
)  # fmt: skip


def screened(source: str, exercise: Exercise) -> str | None:
    """Say why a source would not be graded, if it would not be: in one sentence."""
    # the solution may stand on helpers that no answer may call
    forbidden = () if is_reference(source, exercise) else exercise.forbidden
    if called := in_source(source, {}, forbidden):
        return f"This calls `{called[0]}`: here you build it yourself."
    return refusal(source)


@lru_cache(maxsize=256)
def refusal(source: str) -> str | None:
    """Say in one sentence what in a source may not be used, and what to write instead."""
    names = names_in(source, {})
    nodes = list(ast.walk(names.tree))
    annotations = set(map(id, _annotations(nodes)))
    questions = set(map(id, _types_asked(nodes))) | annotations
    own = {node.attr for node in nodes if isinstance(node, ast.Attribute) and _is_set(node)}
    own |= {x.id for x in nodes if isinstance(x, ast.Name) and isinstance(x.ctx, ast.Store)}
    own |= {x.name for x in nodes if isinstance(x, ast.FunctionDef | ast.ClassDef)}
    said = [
        *map(_of_import, names.imports),
        *(_of_mention(x, annotations, questions, own) for x in names.mentions),
        *map(_of_node, nodes),
    ]
    return next(filter(None, said), None)


def _of_import(given: Import) -> str | None:
    """Refuse an import in a class, and a star whose names are not known."""
    if given.in_class:
        return (
            f"This imports `{given.target}` inside a class, where any name can be hidden: "
            "put the import at the top of the cell."
        )
    module = given.target.removesuffix(".*")
    if module != given.target and _is_there(module) and not _is_known(module):
        return _not_allowed(given.target)
    return None


def _of_mention(
    mention: Mention, annotations: set[int], questions: set[int], own: set[str]
) -> str | None:
    node = mention.node
    written = ast.unparse(node)
    for target in sorted(mention.targets):
        if target == "builtins.type" and id(node) not in questions:
            return (
                "This uses `type` to make a class, or hands it on: write `class` for the one, and "
                "`type(x)` to ask for the other."
            )
        if target.startswith("jaxtyping.") and id(node) not in annotations:
            return f"This uses `{target}` outside of an annotation: compare shapes by `x.shape`."
        if said := _of_target(target, mention.renamed):
            return said
    # what a module has is judged above; an object's attributes are judged by their names
    inner = [name for name in mention.path if not _is_plain(name, own)]
    if inner and not (mention.targets and all(map(_of_module, mention.targets))):
        return (
            f"This reads `{written}`: `{inner[0]}` belongs to the inside of Python or of a "
            "library, by which any function can be reached; call what you need by its name."
        )
    return None


def _of_target(target: str, renamed: bool) -> str | None:
    """Say why a dotted name is not allowed, if it is not."""
    parts = target.split(".")
    if not _is_there(target):
        return None
    if not _is_known(parts[0]) and not any(x.startswith(f"{parts[0]}.") for x in WHOLE):
        return _not_allowed(target)
    value = importlib.import_module(parts[0])
    for place, name in enumerate(parts[1:], start=1):
        if not isinstance(value, types.ModuleType):
            return None
        module = value.__name__
        submodule = ".".join([module, name])
        value = getattr(value, name, None)
        # to import is to run: this is done for known modules alone, and never for a stranger's
        if value is None and _is_known(submodule):
            value = resolve(submodule)
        if isinstance(value, types.ModuleType):
            if not _is_known(value.__name__) and not _leads_on(value.__name__):
                return _not_allowed(".".join(parts[: place + 1]))
        elif not _is_listed(module, name, value):
            return _not_allowed(".".join(parts[: place + 1]))
    if isinstance(value, types.ModuleType) and not renamed:
        return (
            f"This hands on the module `{target}`, by which any function can be reached under "
            f"another name: name what you call, as in `{target}.…`."
        )
    return None


def _of_node(node: ast.AST) -> str | None:
    match node:
        # `case P(softmax=f)` is an attribute, and so is a place that `__match_args__` names
        case ast.MatchClass(patterns=[_, *_]) | ast.MatchClass(kwd_attrs=[_, *_]):
            return (
                f"This uses `case {ast.unparse(node)}`, which reads attributes: read them by "
                "their names, as in `x.shape`."
            )
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.Name(id=name):
            if _is_special(name):
                return (
                    f"This uses `{name}`, which belongs to the inside of Python: a graded answer "
                    "does without it."
                )
    return None


def _not_allowed(target: str) -> str:
    name = target.removeprefix("builtins.")
    if name in ("getattr", "setattr", "vars", "locals", "globals", "eval", "exec"):
        return (
            f"This uses `{name}`, by which any function can be reached under another name: write "
            "attributes and variables by their own names, as in `x.shape`."
        )
    return (
        f"This uses `{name}`, which a graded answer may not: it stands on Python's own types, "
        "on math, torch, numpy and einops, and on the components of earlier lessons."
    )


def _is_there(target: str) -> bool:
    """Tell whether the sandbox may have a module: what it lacks reaches nothing."""
    return target.partition(".")[0] not in (*ABSENT, "")


def _is_known(module: str) -> bool:
    root, *path = module.split(".")
    if any(_is_special(name) for name in path):  # `__main__` is a program
        return False
    if root == "course_lib":
        return path == ["exercises"] or not path or path[0] not in COURSE_INSIDE
    return module in WHOLE or module in NAMED or module == "jaxtyping"


def _leads_on(module: str) -> bool:
    """Tell whether a module has known ones inside."""
    return any(x.startswith(f"{module}.") for x in (*WHOLE, *NAMED))


def _of_module(target: str) -> bool:
    """Tell whether a dotted name is a module's own. Nothing is imported for it."""
    return isinstance(loaded(target.rpartition(".")[0]), types.ModuleType)


@cache
def _listed(module: str) -> frozenset[str]:
    names = NAMED.get(module, "").split()
    if module == "torch":
        names += [name for name in dir(torch.Tensor) if hasattr(torch, name)]
    return frozenset(names)


def _is_listed(module: str, name: str, value: Any) -> bool:
    """Tell whether a module's own name may be used."""
    if name in _listed(module):
        return not isinstance(value, types.ModuleType)
    if module == "course_lib.exercises":
        return name in STUBS
    if module.startswith("course_lib") and not _is_special(name):
        kinds = types.FunctionType, types.BuiltinFunctionType, type
        return not isinstance(value, kinds) or _defined_in(value, "course_lib")
    if name.startswith("_"):
        return False
    if module == "builtins":
        return isinstance(value, type) and issubclass(value, BaseException)
    if module == "torch":
        return isinstance(value, torch.dtype)
    if module == "numpy":
        kinds = isinstance(value, type) and issubclass(value, numpy.generic)
        return kinds or isinstance(value, numpy.ufunc)
    if module == "jaxtyping":
        return True
    return module in WHOLE and _defined_in(value, module.partition(".")[0])


def _defined_in(value: Any, package: str) -> bool:
    """Tell whether a value is of this package, or a constant."""
    origin = getattr(value, "__module__", None) or package
    return origin.lstrip("_").partition(".")[0] == package


def _is_plain(name: str, own: set[str]) -> bool:
    """Tell whether an attribute of any object may be read."""
    if name in INNER:
        return False
    if name.startswith("__"):
        return name in METHODS
    return not name.startswith("_") or (name in own and not _is_known_objects(name))


def _is_known_objects(name: str) -> bool:
    return any(hasattr(x, name) for x in KNOWN_OBJECTS)


def _is_special(name: str) -> bool:
    return name[:2] == name[-2:] == "__" and name not in METHODS


def _is_set(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and chain(node)[0] == "self"


def _annotations(nodes: list[ast.AST]) -> Iterable[ast.AST]:
    for node in nodes:
        for name in ("annotation", "returns"):
            if isinstance(annotation := getattr(node, name, None), ast.AST):
                yield from ast.walk(annotation)


def _types_asked(nodes: list[ast.AST]) -> Iterable[ast.AST]:
    for node in nodes:
        match node:
            case ast.Call(function, [argument], []) if not isinstance(argument, ast.Starred):
                yield function
