'''The rules, one file each, and what a rule's author needs to know.

A rule is a module ``emb<number>_<name>.py`` in this folder, or in ``opt_in`` if it runs only when it is selected. Its
docstring is its page; ``emberlint explain`` prints it, so it has these headings, in this order: ``What it does``,
``Why``, ``Example``, ``Use instead``, ``Fix safety``. Its body is a ``RULE`` and the checks that belong to it::

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

Nothing else lists rules: the folders are the list, a rule's file name holds its code. ``evaluation``, ``availability``
and ``operands`` hold what several rules have in common.

**Events.** ``RULE.on`` takes node classes of ``ast`` and the events of ``emberlint.inference.checks``: ``Truth`` (an
expression whose truth value is asked for: ``if``, ``while``, ``assert``, ``and``/``or``/``not``, conditional
expressions, comprehension conditions), ``Iteration`` (an expression that is iterated over; for ``a, b = x`` the target
tuple, whose value is that of ``x``) and ``Annotation`` (an expression in the place of an annotation). A check is called
once for each node, after the node's parts have been evaluated, so ``file.value`` of each part is known. For a statement
with a body (``for``, ``if``, ``with``, ``def``) the check runs before the body. For ``ast.AugAssign`` it runs before
the target is rebound; ``file.value(node.target)`` is the value before. Expressions are shown to rules only where
something is known of them, for the sake of speed: a name or attribute that is an engine's or an array's, an operator or
subscript whose value is an array (or a string), a call of or with such a thing, ``Truth`` and ``Iteration`` of an
array. Statements are shown wherever they are visited, but for assignments to plain names.

**Names.** A check of calls, attributes or names can say which names it is about: ``RULE.on(ast.Call, named=is_cast)``,
where ``is_cast`` takes a name and returns whether the check can fire on it. The name is the full one of an imported
thing (``numpy.linalg.norm``), that of a built-in function (``float``), or that of a method or attribute of anything
else after a dot (``.item``). It is asked once for each name and not for each node, so that a rule about three functions
costs nothing where another is called. It must not depend on anything but the name. A check that looks at keywords alone
says ``given=KEYWORDS``, one that fires on a tensor among the arguments ``given=TENSORS``.

**Values.** ``file.value(node)`` is an ``inference.values.Value`` or ``None`` for unknown, and a rule about tensors
never fires on unknown. ``value.kind`` is one of the words in ``emberlint.knowledge.types``: ``TENSOR``, ``HOST`` (a
NumPy array), ``SCALAR``, ``SHAPE``, ``SEQUENCE`` (``element`` or ``items`` tell of what), ``REFERENCE`` (an imported
name: ``value.path`` is its full name), ``FUNCTION``, ``CLASS``, ``INSTANCE``, ``DTYPE``, ``STRING``, ``NONE``.
``value.is_tensor``, ``value.is_array`` (tensor or host array), ``value.is_host`` (number or shape). ``value.engine`` is
``numpy``, ``torch``, ``mlx``, ``jax``, ``tensorflow``, ``cupy`` or ``ember``; ``value.dtype`` is ``int``, ``float``,
``bool``, ``complex`` or ``None``; ``value.argument`` is the parameter's name while the object is the very one that was
passed in; ``value.source`` is what it was computed from.

**The file.** ``File`` (``emberlint.inference.file``) is all that a rule sees; the state of the pass is not its matter.
``file.path(node)`` is the full name of an imported thing (``numpy.linalg.norm``, whatever it is called in the file;
ember's operations are ``ember_ml.ops.<name>``, also where the project's ``namespace`` is another) or ``""``.
``file.text(node)``, ``file.span(node)``, ``file.is_builtin(node, "max")``, ``file.loops`` (open loops in this
function), ``file.function``, ``file.klass``, ``file.imports`` (``names``, ``entries``, ``engines``), ``file.config``
(``targets``, ``target``, ``namespace``, ``matrix`` ...), ``file.allowed`` (the engines that this file's layer may
import: ``None`` in a frontend, which is where purity rules apply; a rule of EMB1 to EMB4 that is to see other files too
says ``everywhere=True``), ``file.module`` (its dotted name).

**Reports.** ``file.report(RULE, node, message, fix=None, because=value)``. A message says what is wrong and what to do,
in one line, with code in backticks, without a full stop. ``Fix((edit, ...), SAFE | UNSAFE | SUGGESTION, "what it
does")`` holds ``Edit(start, end, text)``; ``file.edit(node, text)`` makes one for a node, ``name, edits =
import_name("ember_ml.ops", file)`` of ``emberlint.rewrite.imports`` gives a name for a module and the edits that import
it. Edits that overlap with those of an earlier finding wait for the next round, identical insertions are made once, and
a fix after which the file does not parse is dropped.

**The catalogue.** ``emberlint.knowledge.catalogue`` knows ember's operations (``operation("sum")``) and the engines'
functions (``function("torch.sum")``) with their parameters; ``emberlint.knowledge.returns.result_of(path)`` is what a
function returns.

**Project rules** see all files at once: ``@RULE.project`` on ``check(project)``; see ``emberlint.inference.project``.

**Tests** find the rules by themselves: ``tests/lint/fixtures/EMB203/bad*.py``, ``good*.py`` (or folders ``bad/``,
``good/`` for several files) and ``bad.txt``, the exact output.
'''

from emberlint.rules.rule import Rule, load

__all__ = ["Rule", "load"]
