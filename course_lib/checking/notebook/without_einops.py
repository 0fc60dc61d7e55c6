"""The library's own sources in torch alone: each of their calls of einops as torch has it."""

import ast

# by the pattern, and by what is reduced by; {0} and {1} are the tensors
TORCH = {
    ("... query d_k, ... key d_k -> ... query key", None): "{0} @ {1}.mT",
    ("... query key, ... key d_v -> ... query d_v", None): "{0} @ {1}",
    ("... heads n d_k -> ... n (heads d_k)", None): "{0}.transpose(-2, -3).flatten(-2)",
    ("... n (heads d_k) -> ... heads n d_k", None): (
        "{0}.unflatten(-1, (heads, -1)).transpose(-2, -3)"
    ),
    ("... query key -> ... 1 query key", None): "{0}.unsqueeze(-3)",
    ("... key -> ... 1", "max"): "{0}.amax(-1, keepdim=True)",
    ("... key -> ... 1", "sum"): "{0}.sum(-1, keepdim=True)",
    ("... d -> ... 1", "mean"): "{0}.mean(-1, keepdim=True)",
    ("wave n c -> n (c wave)", None): "{0}.permute(1, 2, 0).flatten(1)",
}


def without_einops(tree: ast.AST) -> ast.AST:
    """Put torch's own operations in the place of einops' calls, where we know them."""
    return ast.fix_missing_locations(_WithoutEinops().visit(tree))


class _WithoutEinops(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Call(ast.Name("einsum"), [*given, ast.Constant(pattern)], _):
                key = pattern, None
            case ast.Call(ast.Name("rearrange"), [*given, ast.Constant(pattern)], _):
                key = pattern, None
            case ast.Call(ast.Name("reduce"), [*given, ast.Constant(pattern), ast.Constant(by)], _):
                key = pattern, by
            case _:
                return node
        if key not in TORCH:
            return node
        return ast.parse(TORCH[key].format(*map(_operand, given)), mode="eval").body


def _operand(node: ast.expr) -> str:
    """Write an operand so that a method can be called on it."""
    text = ast.unparse(node)
    return f"({text})" if isinstance(node, ast.BinOp | ast.UnaryOp) else text
