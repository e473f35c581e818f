'''The rules, one file each, and what a rule's author needs to know.

A rule is a module ``emb<number>_<name>.py`` in this folder. Its docstring is its page; ``emberlint explain`` prints it,
so it has these headings, in this order: ``What it does``, ``Why``, ``Example``, ``Use instead``, ``Fix safety``. Its
body is a ``RULE`` and the checks that belong to it::

    """Page: first line is the title.

    ## What it does
    ...
    """
    import ast

    from emberlint.checks import Truth
    from emberlint.file import File
    from emberlint.rules import Rule

    RULE = Rule("EMB203", "truth-value", "truth value of a tensor", fix="")


    @RULE.on(Truth)
    def check(node: ast.expr, file: File) -> None:
        value = file.value(node)
        if value is not None and value.is_tensor:
            file.report(RULE, node, f"truth value of `{file.text(node)}` ...", because=value)

Nothing else lists rules: the folder is the list, a rule's file name holds its code.

**Events.** ``RULE.on`` takes node classes of ``ast`` and the events of ``emberlint.checks``: ``Truth`` (an expression
whose truth value is asked for: ``if``, ``while``, ``assert``, ``and``/``or``/``not``, conditional expressions,
comprehension conditions), ``Iteration`` (an expression that is iterated over; for ``a, b = x`` the target tuple, whose
value is that of ``x``) and ``Annotation`` (an expression in the place of an annotation). A check is called once for
each node, after the node's parts have been evaluated, so ``file.value`` of each part is known. For a statement with a
body (``for``, ``if``, ``with``, ``def``) the check runs before the body. For ``ast.AugAssign`` it runs before the
target is rebound; ``file.value(node.target)`` is the value before. Expressions are shown to rules only where something
is known of them, for the sake of speed: a name or attribute that is an engine's or an array's, an operator or subscript
whose value is an array (or a string), a call of or with such a thing, ``Truth`` and ``Iteration`` of an array.
Statements are shown wherever they are visited, but for assignments to plain names.

**Names.** A check of calls, attributes or names can say which names it is about: ``RULE.on(ast.Call, named=is_cast)``,
where ``is_cast`` takes a name and answers whether the check can fire on it. The name is the full one of an imported
thing (``numpy.linalg.norm``), that of a built-in function (``float``), or that of a method or attribute of anything
else after a dot (``.item``). It is asked once for each name and not for each node, so that a rule about three functions
costs nothing where another is called. It must not depend on anything but the name. A check that looks at keywords
alone says ``given=KEYWORDS``, one that fires on a tensor among the arguments ``given=TENSORS``.

**Values.** ``file.value(node)`` is a ``kinds.Value`` or ``None`` for unknown, and a rule about tensors never fires on
unknown. ``value.kind`` is one of the words in ``emberlint.kinds``: ``TENSOR``, ``HOST`` (a NumPy array), ``SCALAR``,
``SHAPE``, ``SEQUENCE`` (``element`` or ``items`` tell of what), ``REFERENCE`` (an imported name: ``value.path`` is its
full name), ``FUNCTION``, ``CLASS``, ``INSTANCE``, ``DTYPE``, ``STRING``, ``NONE``. ``value.is_tensor``,
``value.is_array`` (tensor or host array), ``value.is_host`` (number or shape). ``value.engine`` is ``numpy``,
``torch``, ``mlx``, ``jax``, ``tensorflow``, ``cupy`` or ``ember``; ``value.dtype`` is ``int``, ``float``, ``bool``,
``complex`` or ``None``; ``value.argument`` is the parameter's name while the object is the very one that was passed in;
``value.source`` is what it was computed from.

**The file.** ``file.path(node)`` is the full name of an imported thing (``numpy.linalg.norm``, whatever it is called in
the file; ember's operations are ``ember_ml.ops.<name>``, also where the project's ``namespace`` is another) or ``""``.
``file.text(node)``, ``file.span(node)``, ``file.is_builtin(node, "max")``, ``file.loops`` (open loops in this
function), ``file.function``, ``file.klass``, ``file.imports``, ``file.config`` (``targets``, ``target``, ``namespace``,
``matrix`` ...), ``file.allowed`` (the engines that this file's layer may import: ``None`` in a frontend, which is where
purity rules apply; a rule of EMB1 to EMB4 that is to see other files too says ``everywhere=True``), ``file.module``
(its dotted name).

**Reports.** ``file.report(RULE, node, message, fix=None, because=value)``. A message says what is wrong and what to do,
in one line, with code in backticks, without a full stop. ``Fix((edit, ...), SAFE | UNSAFE | SUGGESTION, "what it
does")`` holds ``Edit(start, end, text)``; ``file.edit(node, text)`` makes one for a node, ``name, edits =
file.import_name("ember_ml.ops")`` gives a name for a module and the edits that import it. Edits that overlap with those
of an earlier finding wait for the next round, identical insertions are made once, and a fix after which the file does
not parse is dropped.

**The catalogue.** ``emberlint.catalogue`` knows ember's operations (``operation("sum")``) and the engines' functions
(``function("torch.sum")``) with their parameters; ``emberlint.kinds.answer(path)`` is what a function answers.

**Project rules** see all files at once: ``@RULE.project`` on ``check(project)``; see ``emberlint.project``.

**Tests** find the rules by themselves: ``tests/lint/fixtures/EMB203/bad*.py``, ``good*.py`` (or folders ``bad/``,
``good/`` for several files) and ``bad.txt``, the exact output.
'''

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from emberlint.checks import ALL, Check, Named, Subscription

if TYPE_CHECKING:
    from emberlint.project import Project

_FILE = re.compile(r"^(emb(\d{3}))_\w+\.py$")


class Rule:
    """A rule: its code, a name of words and hyphens, its subject in a few words, and the best fix it has.

    ``fix`` is ``safe``, ``unsafe``, ``sometimes`` (safe or not, as the case is) or empty; ``optional`` rules run only
    when they are selected by their code. Rules about purity and portability (EMB1 to EMB4) see frontends only, but for
    those that say ``everywhere``; the others see every file. ``files`` says which files a rule is about, by their paths
    relative to the root.
    """

    def __init__(
        self,
        code: str,
        name: str,
        summary: str,
        *,
        fix: str = "",
        optional: bool = False,
        everywhere: bool = False,
        files: Callable[[str], bool] | None = None,
    ) -> None:
        self.code = code
        self.name = name
        self.summary = summary
        self.fix = fix
        self.optional = optional
        self.everywhere = everywhere or not code.startswith(("EMB1", "EMB2", "EMB3", "EMB4"))
        self.files = files
        self.checks: list[Subscription] = []
        self.project_check: Callable[[Project], None] | None = None
        self.facts: Callable[[Any], Any] | None = None
        self.page = ""

    def on(
        self, *events: type, named: Named | None = None, given: int = ALL, host: bool = False
    ) -> Callable[[Check], Check]:
        """A decorator that makes a function a check of the rule, for nodes and events of these classes.

        Of calls, attributes and names, it is shown those that ``named`` accepts, and calls only if they have what
        ``given`` says. Where all checks say ``host``, only functions that can have to do with host values are visited.
        """

        def subscribe(check: Check) -> Check:
            self.checks += [Subscription(event, check, named, given, host) for event in events]
            return check

        return subscribe

    def project(self, check: Callable[[Project], None]) -> Callable[[Project], None]:
        """A decorator that makes a function the rule's check of a whole project."""
        self.project_check = check
        return check


@cache
def modules() -> dict[str, str]:
    """The module of each rule, by its code, from the names of the files."""
    found = {}
    for name in sorted(os.listdir(os.path.dirname(__file__))):
        match = _FILE.match(name)
        if match:
            found[match[1].upper()] = name[:-3]
    return found


@cache
def load(code: str) -> Rule:
    """The rule with a code."""
    module = importlib.import_module(f"emberlint.rules.{modules()[code]}")
    rule: Rule = module.RULE
    if rule.code != code:
        raise RuntimeError(f"{module.__file__} holds {rule.code}")
    rule.page = module.__doc__ or ""
    return rule


def chosen(select: Iterable[str], ignore: Iterable[str]) -> list[str]:
    """The codes that a selection means: prefixes such as ``EMB2``; optional rules only by their whole code.

    >>> chosen(["EMB310"], [])
    ['EMB310']
    """
    selected = tuple(select)
    ignored = tuple(ignore)
    found = []
    for code in modules():
        exact = code in selected or "ALL" in selected
        if not (exact or code.startswith(selected)) or (ignored and code.startswith(ignored)):
            continue
        if exact or code not in optional():
            found.append(code)
    return found


@cache
def optional() -> frozenset[str]:
    """The codes of the rules that run only when asked for; they say so in the first lines of their files."""
    folder = os.path.dirname(__file__)
    found = set()
    for code, module in modules().items():
        with open(os.path.join(folder, module + ".py"), encoding="utf-8") as file:
            if re.search(r"^RULE = Rule\([^\n]*(?:\n[^)]*)?optional=True", file.read(), re.MULTILINE):
                found.add(code)
    return frozenset(found)
