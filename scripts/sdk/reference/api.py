"""Prints the API of the Python package as JSON: the names in its `__all__`, their signatures and docstrings."""

import ast
import json
import pathlib
import sys

package = pathlib.Path(sys.argv[1])


def parsed(module):
    return ast.parse((package / f"{module}.py").read_text("utf-8"))


def exported():
    """Names in the order of `__all__`, each with the module that it is imported from."""
    tree = parsed("__init__")
    modules = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.level == 1
        for alias in node.names
    }
    lists = [node.value for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"]
    return [(name, modules[name]) for name in ast.literal_eval(lists[0])]


def annotation(node):
    """Without the quotes of an annotation that is written as a string."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ast.unparse(node)


class Unquoted(ast.NodeTransformer):
    def visit_arg(self, node):
        if node.annotation is not None:
            node.annotation = ast.parse(annotation(node.annotation), mode="eval").body
        return node


def signature(function, name=None, is_method=False):
    arguments = Unquoted().visit(function.args)
    if is_method:
        arguments.args = arguments.args[1:]
    returned = "" if function.returns is None or name else f" -> {annotation(function.returns)}"
    return f"{name or function.name}({ast.unparse(arguments)}){returned}"


def text(node):
    return ast.get_docstring(node) or ""


def describe(node):
    if isinstance(node, ast.FunctionDef):
        return {"signature": signature(node), "text": text(node), "members": []}
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    fields = [each for each in node.body if isinstance(each, ast.AnnAssign)]
    init = next((each for each in methods if each.name == "__init__"), None)
    bases = ", ".join(ast.unparse(base) for base in node.bases if not isinstance(base, ast.IfExp))
    # What overrides a method of a base class has no docstring: the base describes it.
    public = [each for each in methods if not each.name.startswith("_") and text(each)]
    members = [{"signature": f"{each.target.id}: {annotation(each.annotation)}", "text": ""} for each in fields]
    members += [{"signature": signature(each, is_method=True), "text": text(each)} for each in public]
    called = f"class {node.name}({bases})" if bases and init is None else f"class {node.name}"
    if init is not None:
        called = "class " + signature(init, node.name, is_method=True)
        members += [{"signature": name, "text": ""} for name in attributes(init)]
    return {"signature": called, "text": text(node), "members": members}


def attributes(init):
    """Public attributes that `__init__` sets."""
    targets = [each.targets[0] for each in ast.walk(init) if isinstance(each, ast.Assign)]
    return [each.attr for each in targets if isinstance(each, ast.Attribute) and not each.attr.startswith("_")]


def entry(name, module):
    found = next(each for each in parsed(module).body if getattr(each, "name", None) == name)
    return {"name": name, **describe(found)}


print(json.dumps([entry(name, module) for name, module in exported()]))
