'''The rules, one file each, and a guide to writing one.

A rule is a module ``emb<number>_<name>.py`` in this folder, or in ``opt_in`` if it runs only when it is selected. Its
docstring is its page, which ``emberlint explain`` prints. It has these headings, in this order: ``What it does``,
``Why``, ``Example``, ``Use instead``, ``Fix safety``. The module defines a ``RULE`` and its checks::

    """Page: first line is the title.

    ## What it does
    ...
    """
    import ast

    from emberlint.inference.checks import Truth
    from emberlint.inference.file import File
    from emberlint.rules import Rule

    RULE = Rule("EMB203", "truth-value", "truth value of a tensor", fix="")


    @RULE.on(Truth)
    def check(node: ast.expr, file: File) -> None:
        value = file.value(node)
        if value is not None and value.is_tensor:
            file.report(RULE, node, f"truth value of `{file.text(node)}` ...", because=value)

There is no other list of rules; they are found by their file names. ``evaluation``, ``availability`` and ``operands``
hold code that several rules share.

**Events.** ``RULE.on`` takes node classes of ``ast`` and the events of ``emberlint.inference.checks``: ``Truth`` (an
expression whose truth value is tested: ``if``, ``while``, ``assert``, ``and``/``or``/``not``, conditional expressions,
comprehension conditions), ``Iteration`` (an expression that is iterated over; for ``a, b = x`` the target tuple, whose
value is that of ``x``) and ``Annotation`` (an expression used as an annotation). A check is called once for each node,
after its child nodes have been evaluated, so ``file.value`` of each child is available. For a statement with a body
(``for``, ``if``, ``with``, ``def``) the check runs before the body. For ``ast.AugAssign`` it runs before the target is
rebound; ``file.value(node.target)`` is the old value. For speed, checks see an expression only if something is known
about it: a name or attribute of an engine or an array, an operator or subscript whose value is an array (or a string),
a call of or with such an expression, ``Truth`` and ``Iteration`` of an array. Checks see every statement that is
visited, except assignments to plain names.

**Names.** A check of calls, attributes or names can restrict the names that it sees: ``RULE.on(ast.Call,
named=is_cast)``, where ``is_cast`` takes a name and returns whether the check may apply to it. The name is the full
name of an imported object (``numpy.linalg.norm``), that of a built-in function (``float``), or a dot and the name of
any other method or attribute (``.item``). The function is called once per name, not once per node, so that a rule about
three functions costs nothing for calls of others. Its result must depend on the name only. A check that looks at
keywords only passes ``given=KEYWORDS``; a check about tensors among the arguments passes ``given=TENSORS``.

**Values.** ``file.value(node)`` is an ``inference.values.Value``, or ``None`` if nothing is known; a rule about tensors
never reports an unknown value. ``value.kind`` is one of the constants in ``emberlint.knowledge.types``: ``TENSOR``,
``HOST`` (a NumPy array), ``SCALAR``, ``SHAPE``, ``SEQUENCE`` (with ``element`` or ``items``), ``REFERENCE`` (an
imported name: ``value.path`` is its full name), ``FUNCTION``, ``CLASS``, ``INSTANCE``, ``DTYPE``, ``STRING``, ``NONE``.
``value.is_tensor``, ``value.is_array`` (tensor or host array) and ``value.is_host`` (number or shape) group them.
``value.engine`` is ``numpy``, ``torch``, ``mlx``, ``jax``, ``tensorflow``, ``cupy`` or ``ember``; ``value.dtype`` is
``int``, ``float``, ``bool``, ``complex`` or ``None``; ``value.argument`` is the name of the parameter as long as the
value is the object that the caller passed; ``value.source`` is the value that it was computed from.

**The file.** A rule uses only ``File`` (``emberlint.inference.file``), not the state of the pass. ``file.path(node)``
is the full name of an imported object (``numpy.linalg.norm``, whatever its alias in the file) or ``""``; ember's
operations are ``ember_ml.ops.<name>`` even if the project's ``namespace`` differs. ``file.text(node)``,
``file.span(node)``, ``file.is_builtin(node, "max")``, ``file.loops`` (enclosing loops in this function),
``file.function``, ``file.klass``, ``file.imports`` (``names``, ``entries``, ``engines``), ``file.config`` (``targets``,
``target``, ``namespace``, ``matrix`` ...), ``file.module`` (its dotted name) and ``file.allowed``. The last is the set
of engines that this file's layer may import, ``None`` in a frontend. Rules EMB1 to EMB4 see frontends only, unless they
set ``everywhere=True``.

**Reports.** ``file.report(RULE, node, message, fix=None, because=value)``. A message is one line that says what is
wrong and what to do, with code in backticks and no full stop. ``Fix((edit, ...), SAFE | UNSAFE | SUGGESTION, "what it
does")`` holds ``Edit(start, end, text)``; ``file.edit(node, text)`` creates one for a node, and ``name, edits =
import_name("ember_ml.ops", file)`` of ``emberlint.rewrite.imports`` returns a name for a module and the edits that
import it. Edits that overlap with those of an earlier finding wait for the next round, identical insertions are made
once, and a fix after which the file does not parse is dropped.

**The catalogue.** ``emberlint.knowledge.catalogue`` holds ember's operations (``operation("sum")``) and the engines'
functions (``function("torch.sum")``) with their parameters; ``emberlint.knowledge.returns.result_of(path)`` is the type
of a function's result.

**Project rules** see all files at once: ``@RULE.project`` on ``check(project)``; see ``emberlint.inference.project``.

**The page.** Each block below ``Example`` and ``Use instead`` is a complete file, with imports. If its path matters,
the line before it ends with the path: "`mypackage/ops/math.py`:". ``Use instead`` shows every Python file again; the
settings of the example stay.

**Tests** find the rules by their fixtures: ``tests/lint/fixtures/EMB203/bad*.py``, ``good*.py`` (or folders ``bad/``,
``good/`` for several files) and ``bad.txt``, the exact output. They also lint and run the code of the page: the example
must be reported, the code to use instead must not, and both must have the same results.
'''

from emberlint.rules.rule import Rule, load

__all__ = ["Rule", "load"]
