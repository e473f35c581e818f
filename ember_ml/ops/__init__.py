"""What: one documented signature per operation, one file per category, all of them here under one roof."""

from ember_ml.dtypes import *
from ember_ml.ops import bitwise as bitwise
from ember_ml.ops import stats as stats
from ember_ml.ops.bitwise import *
from ember_ml.ops.comparison import *
from ember_ml.ops.creation import *
from ember_ml.ops.device import *
from ember_ml.ops.dtypes import *
from ember_ml.ops.indexing import *
from ember_ml.ops.manipulation import *
from ember_ml.ops.math import *
from ember_ml.ops.stats import *
