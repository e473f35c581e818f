"""The commands ``ember-ml ops``, which list and measure operations and migrate engine code.

``operations.py`` lists the operations, ``measuring.py`` runs them (in the processes of ``workers.py``, with the inputs
and the comparison of ``ember_ml.testing``), ``page.py`` renders the results, and ``migration`` moves engine code of
other packages to a backend.

The matrix
----------

``ember-ml ops measure`` writes one JSON object, which ``ember-ml ops check``, ``ember-ml ops matrix --measured`` and
emberlint read. The distribution includes that of this release, ``ember_ml/tools/matrix.lock.json``
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

Keys of ``operations`` are those of ``REGISTRY``: the name, or ``category.name`` if the name occurs in several
categories. The reference is the NumPy engine. A status is one of these, the worst of several inputs:

- ``same``: value (within the rounding of its dtype), dtype, shape and error class are those of the reference;
- ``refused``: reference and engine raise the same error class for every such input: the operation does not support
  this dtype or keyword value (only in ``dtypes`` and ``keywords``);
- ``unsupported``: the engine does not support the dtype and raises ``UnsupportedError``;
- ``differs``: the engine returns another result than the reference, returns where the reference raises, or raises
  another error class;
- ``fails``: the engine raises where the reference returns;
- ``flaky``: two runs with the same input differ;
- ``hang``: no result within the time limit;
- ``crash``: the process died;
- ``missing``: the engine has neither its own function nor a definition to run;
- ``unmeasured``: no valid input of the operation is known.

``status`` of an engine is the worst over all inputs in dtypes that the engine supports. ``dtypes`` has an entry for
each dtype: all tensors of a call in that dtype. ``keywords`` has an entry for each parameter that is not a required
tensor: calls with that parameter. ``differences`` holds a few examples of differences.

``native`` compares a function of NumPy or torch with the operation of the same name on tensors of that engine: it shows
what changes when one is rewritten as the other. These entries say whether the two agree in value, dtype, shape and
error class: ``arrays`` (all tensors in one dtype; ``dtypes`` has an entry for each; dtypes that both refuse agree),
``mixed`` (two different dtypes), ``python`` (numbers and lists), ``errors`` (rows of different lengths). ``same`` is
true if all four are. ``keywords`` lists the keywords that both accept under the same name, and whether calls with them
agree in the dtypes in which calls without them do. ``parameters`` names the leading parameters that may be given by
position, in the same order for both.
"""

from __future__ import annotations

from pathlib import Path

from ember_ml.errors import EmberError

FORMAT = 1

# The engine that all others are compared with.
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
    """Invalid request: an unknown name, or a file or folder that cannot be used."""
