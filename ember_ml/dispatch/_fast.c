/* The fast path of dispatch in C, with the same behavior as the closures in fast.py, where it is documented.

   An operation is a Function: a callable that binds its arguments, checks the types and dtypes of its tensors, and
   calls the engine's function. If the tensors do not match, it calls `general` with the values of all parameters; if
   the engine raises, `retry` with the error and the values. Arguments that do not fit the signature are passed to
   `python`, which raises.

   The type of Function is a subtype of that of built-in functions, because torch's compiler accepts no other callable
   from C in place of a Python function. It has a `__dict__` and binds as a method, as Python functions do. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#define MAX_PARAMETERS 24

/* Roles of the parameters that the fast path checks, numbered as in fast.py. */
enum { TENSOR, INDEX, MASK, UNSET, FLAG, SCALAR, COUNT };

/* What all operations share about an engine. */
typedef struct {
    int stable;              /* whether dtypes can be compared by identity */
    PyObject *active;        /* a list of one bool: whether its types belong to it whatever backend is active */
    PyObject *is_active;     /* called if that is false */
    PyObject *guests;        /* a tuple of types of another engine that its functions accept */
    PyObject *index, *mask;  /* the dtypes of indices and masks */
    PyObject *floats, *ints; /* the sets of dtypes that a Python number does not promote */
    PyObject *scalar_like;
} Engine;

/* How an attribute of a tensor is read. */
typedef struct {
    PyObject *name;
    PyGetSetDef *getset; /* if it is implemented in C */
    PyObject *fget;      /* if it is a property */
} Attribute;

/* A tensor type: its engine, and the attributes that the fast path reads. */
typedef struct {
    PyTypeObject *type;
    Py_ssize_t engine;
    Attribute dtype, itemsize;
} TensorType;

/* What one operation does with the tensors of one engine; `first` is the most frequent dtype. */
typedef struct {
    PyObject *first, *first_run, *runs, *any_run;
    PyObject *bare_runs; /* NULL if there are none */
    long width;
    int raw;
} Row;

typedef struct {
    unsigned char at, role, many, optional;
} Check;

typedef struct {
    PyCFunctionObject base;
    PyObject *dict, *name, *qualname, *doc;
    PyObject *python, *general, *retry;
    PyObject *names, *defaults, *required, *keywords;
    Py_ssize_t parameters, positional, positional_only;
    Py_ssize_t accepted; /* arguments that may be positional; engines receive `positional` of them as such */
    int checks_count, single;
    Check checks[MAX_PARAMETERS];
    Py_ssize_t rows_count;
    Row *rows; /* by engine */
} Function;

static PyTypeObject Function_Type;

static Engine *engines;
static Py_ssize_t engines_count;

/* A hash table by the address of the type, with open addressing; the size is a power of two, at most half is used. */
static TensorType *types;
static size_t types_size, types_count;

static PyObject *dtype_name, *itemsize_name; /* "dtype", "itemsize" */

static size_t
slot_of(TensorType *table, size_t size, PyTypeObject *type)
{
    size_t i = ((size_t)type >> 5) & (size - 1);
    while (table[i].type != NULL && table[i].type != type) {
        i = (i + 1) & (size - 1);
    }
    return i;
}

static inline TensorType *
find_type(PyObject *value)
{
    if (types_size == 0) {
        return NULL;
    }
    TensorType *found = &types[slot_of(types, types_size, Py_TYPE(value))];
    return found->type == NULL ? NULL : found;
}

static inline PyObject *
read_attribute(Attribute *attribute, PyObject *value)
{
    if (attribute->getset != NULL) {
        return attribute->getset->get(value, attribute->getset->closure);
    }
    if (attribute->fget != NULL) {
        return PyObject_CallOneArg(attribute->fget, value);
    }
    return PyObject_GetAttr(value, attribute->name);
}

/* 1 if the elements of a tensor have `width` bytes, 0 if not, -1 on error. */
static inline int
has_width(TensorType *type, PyObject *value, long width)
{
    PyObject *itemsize = read_attribute(&type->itemsize, value);
    if (itemsize == NULL) {
        return -1;
    }
    long own = PyLong_AsLong(itemsize);
    Py_DECREF(itemsize);
    return own == -1 && PyErr_Occurred() ? -1 : own == width;
}

/* 1 if two dtypes of an engine are the same, 0 if not, -1 on error. */
static inline int
same_dtype(Engine *engine, PyObject *a, PyObject *b)
{
    return a == b ? 1 : engine->stable ? 0 : PyObject_RichCompareBool(a, b, Py_EQ);
}

/* The value of a dtype in a dictionary, a new reference; NULL without an error if there is none. */
static PyObject *
find_dtype(PyObject *dict, PyObject *dtype)
{
    /* Comparing dtypes may run Python code, which may bind the row again. */
    Py_INCREF(dict);
    PyObject *found = Py_XNewRef(PyDict_GetItemWithError(dict, dtype));
    Py_DECREF(dict);
    return found;
}

/* The function for a dtype, a new reference; NULL without an error if there is none. `bare` says whether only
   positional arguments are given; on return, whether the function must be called with these alone. */
static PyObject *
run_of(Engine *engine, Row *row, PyObject *dtype, int *bare)
{
    if (*bare) {
        PyObject *run = row->bare_runs == NULL ? NULL : find_dtype(row->bare_runs, dtype);
        if (run != NULL || PyErr_Occurred()) {
            return run;
        }
        *bare = 0;
    }
    if (dtype == row->first) {
        return Py_NewRef(row->first_run);
    }
    PyObject *runs = row->runs;
    if (!engine->stable && row->first != NULL) {
        PyObject *first = Py_NewRef(row->first), *first_run = Py_NewRef(row->first_run);
        Py_INCREF(runs);
        int same = PyObject_RichCompareBool(dtype, first, Py_EQ);
        Py_DECREF(first);
        if (same != 0) {
            Py_DECREF(runs);
            if (same < 0) {
                Py_CLEAR(first_run);
            }
            return first_run;
        }
        Py_DECREF(first_run);
        PyObject *run = find_dtype(runs, dtype);
        Py_DECREF(runs);
        return run;
    }
    return find_dtype(runs, dtype);
}

static int
holds_type(PyObject *tuple, PyTypeObject *type)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
        if (PyTuple_GET_ITEM(tuple, i) == (PyObject *)type) {
            return 1;
        }
    }
    return 0;
}

static inline int
is_small_number(PyObject *value)
{
    if (PyFloat_CheckExact(value)) {
        return 1;
    }
    if (!PyLong_CheckExact(value)) {
        return 0;
    }
    int overflow;
    long number = PyLong_AsLongAndOverflow(value, &overflow);
    return !overflow && 0 <= number && number < 128;
}

/* Result of matching the values of a call: engine and dtype of its tensors, one of them, and the index of a number. */
typedef struct {
    Py_ssize_t engine;
    TensorType *type;
    PyObject *dtype, *like;
    int number;
    int any; /* whether the dtype does not matter */
} Match;

/* Match one tensor: 1 if it fits, 0 if not, -1 on error. */
static int
match_one(Function *self, Match *match, int role, PyObject *value)
{
    TensorType *type = match->type;
    if (type == NULL || type->type != Py_TYPE(value)) {
        type = find_type(value);
        if (type == NULL) {
            return 0;
        }
        if (match->type == NULL || holds_type(engines[type->engine].guests, match->type->type)) {
            match->type = type;
            match->engine = type->engine;
        }
        else if (type->engine != match->engine && !holds_type(engines[match->engine].guests, type->type)) {
            return 0;
        }
        if (match->engine >= self->rows_count || self->rows[match->engine].runs == NULL) {
            return 0;
        }
    }
    Row *row = &self->rows[match->engine];
    if (row->any_run != NULL && (match->any || match->dtype == NULL)) {
        int wide = row->width == 0 ? self->single : has_width(type, value, row->width);
        if (wide != 0 || match->any) {
            match->any = wide > 0;
            return wide;
        }
    }
    PyObject *dtype = read_attribute(&type->dtype, value);
    if (dtype == NULL) {
        return -1;
    }
    Engine *engine = &engines[match->engine];
    int fits = 1;
    if (role != TENSOR) {
        fits = same_dtype(engine, dtype, role == INDEX ? engine->index : engine->mask);
    }
    else if (match->dtype == NULL) {
        match->dtype = dtype;
        match->like = Py_NewRef(value);
        return 1;
    }
    else {
        fits = same_dtype(engine, dtype, match->dtype);
    }
    Py_DECREF(dtype);
    return fits;
}

static int
match_many(Function *self, Match *match, int role, PyObject *values)
{
    if ((!PyList_CheckExact(values) && !PyTuple_CheckExact(values)) || PySequence_Fast_GET_SIZE(values) == 0) {
        return 0;
    }
    /* Reading a dtype may run Python code, which may change a list. */
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(values); i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(values, i);
        Py_INCREF(item);
        int fits = match_one(self, match, role, item);
        Py_DECREF(item);
        if (fits <= 0) {
            return fits;
        }
    }
    return 1;
}

/* 1 if the values fit the fast path, 0 if not, -1 on error; the caller releases the references in `match`. */
static int
match_values(Function *self, PyObject *const *values, Match *match)
{
    for (int i = 0; i < self->checks_count; i++) {
        Check check = self->checks[i];
        PyObject *value = values[check.at];
        int fits;
        switch (check.role) {
        case UNSET:
            fits = value == Py_None;
            break;
        case FLAG:
            fits = PyBool_Check(value) || (check.optional && value == Py_None);
            break;
        case SCALAR:
            fits = PyFloat_CheckExact(value) || PyLong_CheckExact(value) || (check.optional && value == Py_None);
            break;
        case COUNT:
            fits = PyLong_CheckExact(value) || (check.optional && value == Py_None);
            break;
        default:
            if (check.many) {
                fits = match_many(self, match, check.role, value);
            }
            else if (check.optional && value == Py_None) {
                fits = 1;
            }
            else if (check.role == TENSOR && (match->dtype != NULL || match->any) && match->number < 0 &&
                     is_small_number(value)) {
                match->number = check.at;
                fits = 1;
            }
            else {
                fits = match_one(self, match, check.role, value);
            }
        }
        if (fits <= 0) {
            return fits;
        }
    }
    if (match->engine < 0) {
        return 0;
    }
    if (match->number >= 0) {
        Engine *engine = &engines[match->engine];
        if (match->any) {
            return self->rows[match->engine].raw;
        }
        return PySet_Contains(PyFloat_CheckExact(values[match->number]) ? engine->floats : engine->ints, match->dtype);
    }
    return 1;
}

/* The function for a match, a new reference; NULL without an error if the general path must be taken. */
static PyObject *
find_run(Function *self, Match *match, int *bare)
{
    Engine *engine = &engines[match->engine];
    if (PyList_GET_ITEM(engine->active, 0) != Py_True) {
        PyObject *result = PyObject_CallNoArgs(engine->is_active);
        if (result == NULL) {
            return NULL;
        }
        int active = PyObject_IsTrue(result);
        Py_DECREF(result);
        if (active <= 0) {
            return NULL;
        }
        engine = &engines[match->engine];
    }
    Row *row = &self->rows[match->engine];
    PyObject *run;
    if (match->dtype != NULL) {
        run = run_of(engine, row, match->dtype, bare);
    }
    else if (match->any) {
        *bare = 0;
        run = Py_NewRef(row->any_run);
    }
    else {
        /* Only indices or masks, whose dtype is checked by match_one. */
        *bare = 0;
        run = find_dtype(row->runs, self->checks[0].role == INDEX ? engine->index : engine->mask);
    }
    return run;
}

/* The result after the engine raised an exception. */
static PyObject *
retry(Function *self, PyObject *const *values)
{
    PyObject *error;
#if PY_VERSION_HEX >= 0x030C0000
    error = PyErr_GetRaisedException();
#else
    PyObject *kind, *trace;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (trace != NULL) {
        PyException_SetTraceback(error, trace);
    }
    Py_XDECREF(kind);
    Py_XDECREF(trace);
#endif
    PyObject *arguments[MAX_PARAMETERS + 1];
    arguments[0] = error;
    for (Py_ssize_t i = 0; i < self->parameters; i++) {
        arguments[i + 1] = values[i];
    }
    PyObject *result = PyObject_Vectorcall(self->retry, arguments, (size_t)self->parameters + 1, NULL);
    Py_DECREF(error);
    return result;
}

/* The values of all parameters, borrowed; 0 if the arguments do not fit the signature. */
static int
bind_arguments(Function *self, PyObject *const *args, Py_ssize_t count, PyObject *kwnames, PyObject **values)
{
    if (count > self->accepted) {
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        values[i] = args[i];
    }
    for (Py_ssize_t i = count; i < self->parameters; i++) {
        values[i] = PyTuple_GET_ITEM(self->defaults, i);
    }
    Py_ssize_t named = kwnames == NULL ? 0 : PyTuple_GET_SIZE(kwnames);
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GET_ITEM(kwnames, i);
        Py_ssize_t place = count > self->positional_only ? count : self->positional_only;
        while (place < self->parameters && PyTuple_GET_ITEM(self->names, place) != name) {
            place++;
        }
        if (place == self->parameters) {
            /* Names created at run time may not be interned. */
            place = count > self->positional_only ? count : self->positional_only;
            while (place < self->parameters && PyUnicode_Compare(PyTuple_GET_ITEM(self->names, place), name) != 0) {
                place++;
            }
        }
        if (place == self->parameters) {
            return 0;
        }
        values[place] = args[count + i];
    }
    for (Py_ssize_t i = count; i < self->parameters; i++) {
        if (values[i] == self->required) {
            return 0;
        }
    }
    return 1;
}

static PyObject *
call(PyObject *callable, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    Function *self = (Function *)callable;
    Py_ssize_t count = PyVectorcall_NARGS(nargsf);
    PyObject *buffer[MAX_PARAMETERS + 1]; /* the vectorcall protocol lets a callee use the slot in front */
    PyObject *const *values = args;
    int plain = kwnames == NULL && count == self->parameters && self->positional == count;
    if (!plain) {
        if (!bind_arguments(self, args, count, kwnames, buffer + 1)) {
            return PyObject_Vectorcall(self->python, args, nargsf, kwnames);
        }
        values = buffer + 1;
    }
    Match match = {.engine = -1, .number = -1};
    int fits = match_values(self, values, &match);
    int bare = !plain && kwnames == NULL && count == self->positional && match.number < 0;
    PyObject *run = fits > 0 ? find_run(self, &match, &bare) : NULL;
    PyObject *result = NULL;
    if (run == NULL) {
        if (fits >= 0 && !PyErr_Occurred()) {
            result = PyObject_Vectorcall(self->general, values, (size_t)self->parameters, NULL);
        }
        Py_XDECREF(match.dtype);
        Py_XDECREF(match.like);
        return result;
    }
    if (match.number >= 0 && !self->rows[match.engine].raw) {
        PyObject *pair[2] = {values[match.number], match.like};
        PyObject *scalar = PyObject_Vectorcall(engines[match.engine].scalar_like, pair, 2, NULL);
        if (scalar != NULL) {
            PyObject *given[MAX_PARAMETERS + 1];
            for (Py_ssize_t i = 0; i < self->parameters; i++) {
                given[i + 1] = i == match.number ? scalar : values[i];
            }
            size_t flags = (size_t)self->positional | PY_VECTORCALL_ARGUMENTS_OFFSET;
            result = PyObject_Vectorcall(run, given + 1, flags, self->keywords);
            Py_DECREF(scalar);
        }
    }
    else if (plain || bare) {
        result = PyObject_Vectorcall(run, args, nargsf, NULL);
    }
    else {
        size_t flags = (size_t)self->positional | PY_VECTORCALL_ARGUMENTS_OFFSET;
        result = PyObject_Vectorcall(run, values, flags, self->keywords);
    }
    Py_DECREF(run);
    Py_XDECREF(match.dtype);
    Py_XDECREF(match.like);
    if (result == NULL && PyErr_ExceptionMatches(PyExc_Exception)) {
        return retry(self, values);
    }
    return result;
}

static int
Function_traverse(PyObject *op, visitproc visit, void *arg)
{
    Function *self = (Function *)op;
    Py_VISIT(self->base.m_module);
    Py_VISIT(self->dict);
    Py_VISIT(self->name);
    Py_VISIT(self->qualname);
    Py_VISIT(self->doc);
    Py_VISIT(self->python);
    Py_VISIT(self->general);
    Py_VISIT(self->retry);
    Py_VISIT(self->names);
    Py_VISIT(self->defaults);
    Py_VISIT(self->required);
    Py_VISIT(self->keywords);
    for (Py_ssize_t i = 0; i < self->rows_count; i++) {
        Py_VISIT(self->rows[i].first);
        Py_VISIT(self->rows[i].first_run);
        Py_VISIT(self->rows[i].runs);
        Py_VISIT(self->rows[i].any_run);
        Py_VISIT(self->rows[i].bare_runs);
    }
    return 0;
}

static void
clear_row(Row *row)
{
    Py_CLEAR(row->first);
    Py_CLEAR(row->first_run);
    Py_CLEAR(row->runs);
    Py_CLEAR(row->any_run);
    Py_CLEAR(row->bare_runs);
}

static void
Function_dealloc(PyObject *op)
{
    Function *self = (Function *)op;
    PyObject_GC_UnTrack(op);
    if (self->base.m_weakreflist != NULL) {
        PyObject_ClearWeakRefs(op);
    }
    Py_CLEAR(self->base.m_module);
    Py_CLEAR(self->dict);
    Py_CLEAR(self->name);
    Py_CLEAR(self->qualname);
    Py_CLEAR(self->doc);
    Py_CLEAR(self->python);
    Py_CLEAR(self->general);
    Py_CLEAR(self->retry);
    Py_CLEAR(self->names);
    Py_CLEAR(self->defaults);
    Py_CLEAR(self->required);
    Py_CLEAR(self->keywords);
    for (Py_ssize_t i = 0; i < self->rows_count; i++) {
        clear_row(&self->rows[i]);
    }
    PyMem_Free(self->rows);
    PyObject_GC_Del(op);
}

static int
Function_clear(PyObject *op)
{
    /* Only attributes set by Python code form cycles: an operation and its function refer to each other. */
    Py_CLEAR(((Function *)op)->dict);
    return 0;
}

static PyObject *
Function_repr(PyObject *op)
{
    return PyUnicode_FromFormat("<function %U at %p>", ((Function *)op)->qualname, op);
}

static PyObject *
Function_get(PyObject *op, PyObject *instance, PyObject *Py_UNUSED(type))
{
    if (instance == NULL || instance == Py_None) {
        return Py_NewRef(op);
    }
    return PyMethod_New(op, instance);
}

static PyObject *
Function_reduce(PyObject *op, PyObject *Py_UNUSED(ignored))
{
    return Py_NewRef(((Function *)op)->qualname);
}

PyDoc_STRVAR(bind_doc, "bind(engine, first, runs, any_run, width, raw, bare_runs)\n--\n\nSet the row of an engine.");

static PyObject *
Function_bind(PyObject *op, PyObject *args)
{
    Function *self = (Function *)op;
    Py_ssize_t engine;
    PyObject *first, *runs, *any_run, *bare_runs;
    long width;
    int raw;
    if (!PyArg_ParseTuple(args, "nOO!OlpO!:bind", &engine, &first, &PyDict_Type, &runs, &any_run, &width, &raw,
                          &PyDict_Type, &bare_runs)) {
        return NULL;
    }
    if (engine < 0 || engine >= engines_count) {
        PyErr_SetString(PyExc_IndexError, "bind: engine must be registered");
        return NULL;
    }
    if (engine >= self->rows_count) {
        Row *rows = PyMem_Realloc(self->rows, (size_t)(engine + 1) * sizeof(Row));
        if (rows == NULL) {
            return PyErr_NoMemory();
        }
        memset(rows + self->rows_count, 0, (size_t)(engine + 1 - self->rows_count) * sizeof(Row));
        self->rows = rows;
        self->rows_count = engine + 1;
    }
    PyObject *first_run = PyDict_GetItemWithError(runs, first);
    if (first_run == NULL && PyErr_Occurred()) {
        return NULL;
    }
    Row row = {
        .first = first_run == NULL ? NULL : Py_NewRef(first),
        .first_run = Py_XNewRef(first_run),
        .runs = Py_NewRef(runs),
        .any_run = any_run == Py_None ? NULL : Py_NewRef(any_run),
        .bare_runs = PyDict_GET_SIZE(bare_runs) == 0 ? NULL : Py_NewRef(bare_runs),
        .width = width,
        .raw = raw,
    };
    Row old = self->rows[engine];
    self->rows[engine] = row;
    clear_row(&old);
    Py_RETURN_NONE;
}

static PyMethodDef Function_methods[] = {
    {"bind", Function_bind, METH_VARARGS, bind_doc},
    {"__reduce__", Function_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef Function_members[] = {
    {"__name__", T_OBJECT, offsetof(Function, name), 0, NULL},
    {"__qualname__", T_OBJECT, offsetof(Function, qualname), 0, NULL},
    {"__doc__", T_OBJECT, offsetof(Function, doc), 0, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef Function_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyTypeObject Function_Type = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ember_ml.dispatch._fast.Function",
    .tp_basicsize = sizeof(Function),
    .tp_dealloc = Function_dealloc,
    .tp_vectorcall_offset = offsetof(Function, base.vectorcall),
    .tp_repr = Function_repr,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = PyObject_GenericGetAttr,
    .tp_setattro = PyObject_GenericSetAttr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_traverse = Function_traverse,
    .tp_clear = Function_clear,
    .tp_weaklistoffset = offsetof(Function, base.m_weakreflist),
    .tp_methods = Function_methods,
    .tp_members = Function_members,
    .tp_getset = Function_getset,
    .tp_descr_get = Function_get,
    .tp_dictoffset = offsetof(Function, dict),
};

/* The definition that every built-in function has; the subtype overrides its attributes. */
static PyMethodDef function_definition = {"function", (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL};

PyDoc_STRVAR(function_doc,
             "function(python, general, retry, names, defaults, required, positional, positional_only, checks, accepted)\n"
             "--\n\n"
             "A function that behaves as ``python`` does; ``fast.py`` describes it.");

static PyObject *
make_function(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *python, *general, *retry, *names, *defaults, *required, *checks;
    Py_ssize_t positional, positional_only, accepted;
    if (!PyArg_ParseTuple(args, "OOOO!O!OnnO!n:function", &python, &general, &retry, &PyTuple_Type, &names, &PyTuple_Type,
                          &defaults, &required, &positional, &positional_only, &PyTuple_Type, &checks,
                          &accepted)) {
        return NULL;
    }
    Py_ssize_t parameters = PyTuple_GET_SIZE(names);
    if (parameters > MAX_PARAMETERS || PyTuple_GET_SIZE(defaults) != parameters ||
        PyTuple_GET_SIZE(checks) > MAX_PARAMETERS || positional > parameters || positional_only > positional ||
        accepted < positional || accepted > parameters) {
        PyErr_SetString(PyExc_ValueError, "function: the parameters do not fit together");
        return NULL;
    }
    Function *self = PyObject_GC_New(Function, &Function_Type);
    if (self == NULL) {
        return NULL;
    }
    memset((char *)self + sizeof(PyObject), 0, sizeof(Function) - sizeof(PyObject));
    self->base.m_ml = &function_definition;
    self->base.vectorcall = call;
    self->python = Py_NewRef(python);
    self->general = Py_NewRef(general);
    self->retry = Py_NewRef(retry);
    self->names = Py_NewRef(names);
    self->defaults = Py_NewRef(defaults);
    self->required = Py_NewRef(required);
    self->parameters = parameters;
    self->positional = positional;
    self->positional_only = positional_only;
    self->accepted = accepted;
    self->name = PyUnicode_FromString("function");
    self->qualname = Py_XNewRef(self->name);
    if (self->name == NULL) {
        goto failed;
    }
    if (positional < parameters) {
        self->keywords = PyTuple_GetSlice(names, positional, parameters);
        if (self->keywords == NULL) {
            goto failed;
        }
    }
    int tensors = 0;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(checks); i++) {
        Check *check = &self->checks[i];
        int at, role, many, optional;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(checks, i), "iipp", &at, &role, &many, &optional)) {
            goto failed;
        }
        if (at < 0 || at >= parameters || role < TENSOR || role > COUNT) {
            PyErr_SetString(PyExc_ValueError, "function: a check must name a parameter and a role");
            goto failed;
        }
        *check = (Check){(unsigned char)at, (unsigned char)role, (unsigned char)many, (unsigned char)optional};
        self->checks_count++;
        if (role <= MASK) {
            tensors += many ? 2 : 1;
        }
    }
    self->single = tensors == 1;
    PyObject_GC_Track(self);
    return (PyObject *)self;

failed:
    PyObject_GC_Track(self);
    Py_DECREF(self);
    return NULL;
}

/* Find how an attribute of instances of a type is read; -1 on error. */
static int
find_attribute(PyTypeObject *type, PyObject *name, Attribute *found)
{
    found->name = name;
    PyObject *attribute = PyObject_GetAttr((PyObject *)type, name);
    if (attribute == NULL) {
        PyErr_Clear(); /* instances may still have it */
        return 0;
    }
    if (Py_IS_TYPE(attribute, &PyGetSetDescr_Type) && PyType_IsSubtype(type, PyDescr_TYPE(attribute))) {
        found->getset = ((PyGetSetDescrObject *)attribute)->d_getset; /* lives as long as the type */
    }
    else if (Py_IS_TYPE(attribute, &PyProperty_Type)) {
        found->fget = PyObject_GetAttrString(attribute, "fget");
    }
    int failed = PyErr_Occurred() != NULL;
    Py_DECREF(attribute);
    return failed ? -1 : 0;
}

/* Add a tensor type, and double the table if it would be more than half full. */
static int
add_type(PyTypeObject *type, Py_ssize_t engine)
{
    if (types_size < 2 * (types_count + 1)) {
        size_t size = types_size == 0 ? 64 : 2 * types_size;
        TensorType *table = PyMem_Calloc(size, sizeof(TensorType));
        if (table == NULL) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < types_size; i++) {
            if (types[i].type != NULL) {
                table[slot_of(table, size, types[i].type)] = types[i];
            }
        }
        /* The old table, a few kilobytes, is not freed: a call in progress may point into it. */
        types = table;
        types_size = size;
    }
    TensorType *entry = &types[slot_of(types, types_size, type)];
    if (entry->type != NULL) {
        entry->engine = engine;
        return 0;
    }
    TensorType made = {.type = type, .engine = engine};
    if (find_attribute(type, dtype_name, &made.dtype) < 0 || find_attribute(type, itemsize_name, &made.itemsize) < 0) {
        return -1;
    }
    Py_INCREF(type);
    *entry = made;
    types_count++;
    return 0;
}

PyDoc_STRVAR(register_doc,
             "register(types, stable, active, is_active, guests, index, mask, floats, ints, scalar_like)\n--\n\n"
             "Make the tensor types of an engine known; returns its number.");

static PyObject *
register_engine(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *own;
    Engine engine;
    if (!PyArg_ParseTuple(args, "O!pO!OO!OOOOO:register", &PyTuple_Type, &own, &engine.stable, &PyList_Type,
                          &engine.active, &engine.is_active, &PyTuple_Type, &engine.guests, &engine.index, &engine.mask,
                          &engine.floats, &engine.ints, &engine.scalar_like)) {
        return NULL;
    }
    if (PyList_GET_SIZE(engine.active) != 1) {
        PyErr_SetString(PyExc_ValueError, "register: active must hold one truth value");
        return NULL;
    }
    Engine *grown = PyMem_Realloc(engines, (size_t)(engines_count + 1) * sizeof(Engine));
    if (grown == NULL) {
        return PyErr_NoMemory();
    }
    engines = grown;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(own); i++) {
        if (!PyType_Check(PyTuple_GET_ITEM(own, i))) {
            PyErr_SetString(PyExc_TypeError, "register: types must be types");
            return NULL;
        }
        if (add_type((PyTypeObject *)PyTuple_GET_ITEM(own, i), engines_count) < 0) {
            return NULL;
        }
    }
    Py_INCREF(engine.active);
    Py_INCREF(engine.is_active);
    Py_INCREF(engine.guests);
    Py_INCREF(engine.index);
    Py_INCREF(engine.mask);
    Py_INCREF(engine.floats);
    Py_INCREF(engine.ints);
    Py_INCREF(engine.scalar_like);
    engines[engines_count] = engine;
    return PyLong_FromSsize_t(engines_count++);
}

static PyMethodDef module_methods[] = {
    {"function", make_function, METH_VARARGS, function_doc},
    {"register", register_engine, METH_VARARGS, register_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_fast",
    .m_doc = "The fast path of dispatch in C.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC
PyInit__fast(void)
{
    dtype_name = PyUnicode_InternFromString("dtype");
    itemsize_name = PyUnicode_InternFromString("itemsize");
    if (dtype_name == NULL || itemsize_name == NULL) {
        return NULL;
    }
    Function_Type.tp_base = &PyCFunction_Type;
    /* Built-in functions compare equal if their definitions do, and these share one. */
    Function_Type.tp_richcompare = PyBaseObject_Type.tp_richcompare;
    Function_Type.tp_hash = PyBaseObject_Type.tp_hash;
    if (PyType_Ready(&Function_Type) < 0) {
        return NULL;
    }
    PyObject *module = PyModule_Create(&module_definition);
    if (module == NULL || PyModule_AddObjectRef(module, "Function", (PyObject *)&Function_Type) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
