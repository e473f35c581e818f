"""Programs that read the operations and run them: ``ember-ml ops``.

``operations.py`` says what there is, ``measuring.py`` runs it (in the processes of ``workers.py``, over the inputs and
with the comparison of ``ember_ml.testing``), ``page.py`` shows it, ``migration.py`` moves engine code of other packages
to where it belongs.

The matrix
----------

``ember-ml ops measure`` writes, and ``ember-ml ops check``, ``ember-ml ops matrix --measured`` and emberlint read, one
JSON object. The one of this release is ``ember_ml/tools/matrix.lock.json``, a part of the distribution
(``ember_ml.tools.LOCK`` is its path)::

    {
      "format": 1,
      "versions": {"ember_ml": "0.1.0", "python": "3.11.2", "numpy": "2.4.0", "torch": "2.13.0", "mlx": "0.32.0"},
      "operations": {
        "sum": {
          "category": "math",
          "engines": {
            "mlx": {
              "status": "same",
              "provider": "own",
              "cases": 71,
              "dtypes": {"float32": "same", "complex128": "unsupported", ...},
              "keywords": {"axis": "same", "keepdims": "same", "dtype": "same"},
              "differences": [
                {"input": "sum(float32[2, 3], axis=1)", "what": "value", "reference": "[3.0]", "engine": "[4.0]"}
              ]
            }, ...
          }
        }, ...
      },
      "native": {
        "numpy": {
          "numpy.sum": {
            "op": "sum",
            "same": false,
            "arrays": true,
            "mixed": true,
            "python": false,
            "errors": true,
            "dtypes": {"float32": true, ...},
            "keywords": {"axis": true, "keepdims": true, "dtype": true},
            "parameters": ["x", "axis", ...],
            "differences": [...]
          }, ...
        },
        "torch": {"torch.sum": {...}, "torch.nn.functional.relu": {...}, ...}
      }
    }

Keys of ``operations`` are those of ``REGISTRY``: the name, or ``category.name`` where another category has the name.
The reference is the NumPy engine. A status is one of these, the worst of several inputs counting:

- ``same``: value (within the rounding of its dtype), dtype, shape and class of error are the reference's;
- ``refused``: reference and engine raise the same class of error for every such input: the operation does not take
  this dtype or keyword value (of ``dtypes`` and ``keywords`` only);
- ``unsupported``: the engine has no such dtype and says so (``UnsupportedError``);
- ``differs``: the engine answers otherwise than the reference, or answers where that raises, or raises another class;
- ``fails``: the engine raises where the reference answers;
- ``flaky``: the same input has two answers;
- ``hang``: no answer within the time limit;
- ``crash``: the process died;
- ``missing``: the engine has neither a function of its own nor a definition to run;
- ``unmeasured``: no input is known that the operation takes.

``status`` of an engine is the worst over all inputs in dtypes that the engine has. ``dtypes`` has an entry for each
dtype: all tensors of a call in that dtype. ``keywords`` has an entry for each parameter that is not a required tensor:
the call with that parameter given. ``differences`` holds a few examples of what is not the same.

``native`` compares a function of NumPy or torch with the operation of the same name on that engine's own tensors: what
a rewrite of the one into the other changes. These say where the two agree in value, dtype, shape and class of error:
``arrays`` (all tensors in one dtype; ``dtypes`` has each; dtypes that both refuse agree), ``mixed`` (two different
dtypes), ``python`` (numbers and lists), ``errors`` (rows of different lengths). ``same`` is true if all four are.
``keywords`` are those that both take under one name, and whether calls with it agree in the dtypes in which calls
without it do; a keyword that is not listed is not known to both. ``parameters`` names the leading parameters that may
be given by position, in the same order on both sides.
"""

from __future__ import annotations

from pathlib import Path

from ember_ml.errors import EmberError

FORMAT = 1

# The engine that the others are compared with.
REFERENCE = "numpy"

LOCK = Path(__file__).with_name("matrix.lock.json")

# From the best to the worst.
STATUSES = (
    "same",
    "refused",
    "unsupported",
    "unmeasured",
    "differs",
    "fails",
    "flaky",
    "hang",
    "crash",
    "missing",
)


class UsageError(EmberError, ValueError):
    """Something that was asked for and cannot be: a name, a file, a folder."""
