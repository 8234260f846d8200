// The Python module: arrays that the caller has shaped already become problems for a kernel.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cpu.hpp"
#include "peaks.hpp"
#include "problem.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace regard {

namespace plain {
extern const Kernels kernels;
}
#if defined(REGARD_AVX2)
namespace avx2 {
extern const Kernels kernels;
}
#endif
#if defined(REGARD_AVX512)
namespace avx512 {
extern const Kernels kernels;
}
#endif

namespace {

// Best first, with what each needs.
struct Choice {
    const Kernels *kernels;
    std::vector<std::string> needs;
};

std::vector<const Kernels *> usable_kernels() {
    const std::vector<Choice> choices{
#if defined(REGARD_AVX512)
        {&avx512::kernels, {"avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"}},
#endif
#if defined(REGARD_AVX2)
        {&avx2::kernels, {"avx2", "fma", "f16c"}},
#endif
        {&plain::kernels, {}},
    };
    const std::vector<std::string> found = instruction_sets();
    std::vector<const Kernels *> usable;
    for (const Choice &choice : choices) {
        const bool has_all = std::all_of(choice.needs.begin(), choice.needs.end(), [&](auto &name) {
            return std::find(found.begin(), found.end(), name) != found.end();
        });
        if (has_all) usable.push_back(choice.kernels);
    }
    return usable;
}

const std::vector<const Kernels *> USABLE = usable_kernels();
std::atomic<const Kernels *> in_use{USABLE.front()};

void use_kernel(const std::string &name) {
    for (const Kernels *kernels : USABLE) {
        if (name == kernels->name) return in_use.store(kernels);
    }
    throw nb::value_error(("this CPU cannot run the kernel '" + name + "'").c_str());
}

DType dtype_named(const std::string &name) {
    if (name == "float16") return DType::float16;
    if (name == "bfloat16") return DType::bfloat16;
    if (name == "float32") return DType::float32;
    if (name == "float64") return DType::float64;
    throw nb::value_error(("unknown dtype '" + name + "'").c_str());
}

Index size_of(DType dtype) {
    if (dtype == DType::float64) return 8;
    return dtype == DType::float32 ? 4 : 2;
}

using Shape = std::vector<Index>;

constexpr bool WRITABLE = true;

void require(bool holds, const char *otherwise) {
    if (!holds) throw nb::value_error(otherwise);
}

// Holds on to Python's buffers while the kernel reads and writes them.
class Buffers {
  public:
    ~Buffers() {
        for (Py_buffer &buffer : held_) PyBuffer_Release(&buffer);
    }

    // The array behind a Python object; nothing for None.
    Array array(const char *name, nb::handle object, Index item, Shape shape, bool writable = false) {
        Array found;
        if (object.is_none()) return found;
        const Py_buffer &buffer = hold(object, writable);
        const auto refuse = [&](const char *why) {
            throw nb::value_error((std::string(name) + ": " + why).c_str());
        };
        if (buffer.itemsize != item) refuse("items of the wrong size");
        if (buffer.ndim != static_cast<int>(shape.size())) refuse("the wrong number of axes");
        for (int axis = 0; axis < buffer.ndim; ++axis) {
            if (buffer.shape[axis] != shape[axis]) refuse("the wrong shape");
            if (buffer.strides[axis] % item != 0) refuse("a stride that is no whole item");
            found.strides[axis] = buffer.strides[axis] / item;
        }
        found.data = static_cast<char *>(buffer.buf);
        if (!found.data) found.data = EMPTY;
        return found;
    }

    // The same without gaps, as the kernel's plain pointers need.
    void *packed(const char *name, nb::handle object, Index item, Shape shape, bool writable = false) {
        const Array found = array(name, object, item, shape, writable);
        if (!found) return nullptr;
        Index stride = 1;
        for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
            if (shape[axis] > 1 && found.strides[axis] != stride) {
                throw nb::value_error((std::string(name) + ": not contiguous").c_str());
            }
        }
        return found.data;
    }

    const Index *integers(const char *name, nb::handle object, Index number) {
        return static_cast<const Index *>(packed(name, object, 8, {number}));
    }

    Shape shape_of(const char *name, nb::handle object, std::size_t axes) {
        const Py_buffer &buffer = hold(object, false);
        if (buffer.ndim != static_cast<int>(axes)) {
            throw nb::value_error((std::string(name) + ": the wrong number of axes").c_str());
        }
        return Shape(buffer.shape, buffer.shape + axes);
    }

  private:
    static inline char EMPTY[1] = {};
    std::deque<Py_buffer> held_;  // which must not move

    const Py_buffer &hold(nb::handle object, bool writable) {
        held_.emplace_back();
        if (PyObject_GetBuffer(object.ptr(), &held_.back(), writable ? PyBUF_STRIDED : PyBUF_STRIDED_RO)) {
            held_.pop_back();
            throw nb::python_error();
        }
        return held_.back();
    }
};

// The arguments of an entry point, taken one after another.
class Arguments {
  public:
    explicit Arguments(nb::args all) : all_(std::move(all)) {}

    nb::handle next() {
        if (at_ == all_.size()) throw nb::type_error("too few arguments");
        return all_[at_++];
    }
    template <class T>
    T next_as() {
        return nb::cast<T>(next());
    }
    void end() const {
        if (at_ != all_.size()) throw nb::type_error("too many arguments");
    }

  private:
    nb::args all_;
    std::size_t at_ = 0;
};

Index computing_size(const Problem &p) { return p.dtype == DType::float64 ? 8 : 4; }

Shape score_shape(const Problem &p) { return {p.batch, p.heads, p.n_q, p.n_k}; }
Shape output_shape(const Problem &p) { return {p.batch, p.heads, p.n_q, p.d_v}; }
Shape query_shape(const Problem &p) { return {p.batch, p.heads, p.n_q}; }

// The arguments that every entry point begins with: see _native.pyi.
Problem next_problem(Arguments &given, Buffers &buffers) {
    Problem p;
    p.dtype = dtype_named(given.next_as<std::string>());
    const Index item = size_of(p.dtype), computing = computing_size(p);
    const nb::handle q = given.next(), k = given.next(), v = given.next();
    const nb::handle past_k = given.next(), past_v = given.next();
    const Shape queries = buffers.shape_of("q", q, 4), keys = buffers.shape_of("k", k, 4);
    p.batch = queries[0], p.heads = queries[1], p.n_q = queries[2], p.d_k = queries[3];
    p.kv_heads = keys[1];
    p.d_v = buffers.shape_of("v", v, 4)[3];
    require(past_k.is_none() == past_v.is_none(), "past: half of it");
    if (!past_k.is_none()) p.n_past = buffers.shape_of("past_k", past_k, 4)[2];
    p.n_k = p.n_past + keys[2];
    require(p.heads == 0 || (p.kv_heads != 0 && p.heads % p.kv_heads == 0), "k: the wrong heads");
    p.q = buffers.array("q", q, item, queries);
    p.k = buffers.array("k", k, item, {p.batch, p.kv_heads, keys[2], p.d_k});
    p.v = buffers.array("v", v, item, {p.batch, p.kv_heads, keys[2], p.d_v});
    p.past_k = buffers.array("past_k", past_k, item, {p.batch, p.kv_heads, p.n_past, p.d_k});
    p.past_v = buffers.array("past_v", past_v, item, {p.batch, p.kv_heads, p.n_past, p.d_v});
    p.mask = buffers.array("mask", given.next(), 1, score_shape(p));
    p.bias = buffers.array("bias", given.next(), computing, score_shape(p));
    p.q_segments = buffers.array("q_segments", given.next(), 8, {p.batch, p.n_q});
    p.k_segments = buffers.array("k_segments", given.next(), 8, {p.batch, p.n_k});
    require(bool(p.q_segments) == bool(p.k_segments), "segments: half of them");
    p.lengths = buffers.integers("lengths", given.next(), p.batch);
    p.prefix = buffers.integers("prefix", given.next(), p.batch);
    p.offsets = buffers.integers("offsets", given.next(), p.batch);
    p.sinks = buffers.packed("sinks", given.next(), computing, {p.heads});
    p.causal = given.next_as<bool>();
    p.left = given.next_as<Index>();
    p.right = given.next_as<Index>();
    p.scale = given.next_as<double>();
    p.softcap = given.next_as<double>();
    return p;
}

void forward(nb::args args) {
    Arguments given(args);
    Buffers buffers;
    Forward call;
    const Problem &p = call.problem = next_problem(given, buffers);
    call.out = buffers.array("out", given.next(), size_of(p.dtype), output_shape(p), WRITABLE);
    call.lse = buffers.packed("lse", given.next(), computing_size(p), query_shape(p), WRITABLE);
    given.end();
    require(bool(call.out), "out: missing");
    nb::gil_scoped_release others_run;
    in_use.load()->forward(call);
}

void backward(nb::args args) {
    Arguments given(args);
    Buffers buffers;
    Backward call;
    const Problem &p = call.problem = next_problem(given, buffers);
    const Index item = size_of(p.dtype), computing = computing_size(p);
    call.out = buffers.array("out", given.next(), item, output_shape(p));
    call.lse = buffers.packed("lse", given.next(), computing, query_shape(p));
    call.d_out = buffers.array("d_out", given.next(), item, output_shape(p));
    call.d_q = buffers.array("d_q", given.next(), item, {p.batch, p.heads, p.n_q, p.d_k}, WRITABLE);
    call.d_k = buffers.array("d_k", given.next(), item, {p.batch, p.kv_heads, p.n_k, p.d_k}, WRITABLE);
    call.d_v = buffers.array("d_v", given.next(), item, {p.batch, p.kv_heads, p.n_k, p.d_v}, WRITABLE);
    call.d_bias = buffers.array("d_bias", given.next(), computing, score_shape(p), WRITABLE);
    given.end();
    require(p.n_past == 0, "past: must be joined to k and v");
    require(call.out && call.lse && call.d_out && call.d_q && call.d_k && call.d_v,
            "backward: an array is missing");
    nb::gil_scoped_release others_run;
    in_use.load()->backward(call);
}

void inspect(nb::args args) {
    Arguments given(args);
    Buffers buffers;
    Inspection call;
    const Problem &p = call.problem = next_problem(given, buffers);
    const Index item = computing_size(p);
    call.lse = buffers.packed("lse", given.next(), item, query_shape(p));
    const nb::handle top_weights = given.next(), top_keys = given.next();
    if (!top_keys.is_none()) {
        call.top = buffers.shape_of("top_keys", top_keys, 4)[3];
        const Shape best{p.batch, p.heads, p.n_q, call.top};
        call.top_keys = static_cast<Index *>(buffers.packed("top_keys", top_keys, 8, best, WRITABLE));
        call.top_weights = buffers.packed("top_weights", top_weights, item, best, WRITABLE);
    }
    call.entropy = buffers.packed("entropy", given.next(), item, query_shape(p), WRITABLE);
    call.received =
        buffers.packed("received", given.next(), item, {p.batch, p.heads, p.n_k}, WRITABLE);
    const nb::handle rows = given.next(), row_places = given.next();
    if (!rows.is_none()) {
        call.n_rows = buffers.shape_of("row_places", row_places, 1)[0];
        call.row_places = buffers.integers("row_places", row_places, call.n_rows);
        const Shape whole{p.batch, p.heads, call.n_rows, p.n_k};
        call.rows = buffers.packed("rows", rows, item, whole, WRITABLE);
    }
    given.end();
    require(call.lse && (call.top == 0 || call.top_weights), "inspect: an array is missing");
    nb::gil_scoped_release others_run;
    in_use.load()->inspect(call);
}

void step(nb::args args) {
    Arguments given(args);
    Buffers buffers;
    Step call;
    call.dtype = dtype_named(given.next_as<std::string>());
    const Index item = size_of(call.dtype), computing = call.dtype == DType::float64 ? 8 : 4;
    const nb::handle wide = given.next(), keys = given.next(), values = given.next();
    const Shape rows = buffers.shape_of("wide", wide, 4), places = buffers.shape_of("keys", keys, 4);
    call.batch = rows[0], call.tokens = rows[1], call.dim = rows[3];
    call.kv_heads = places[1], call.heads = rows[2] - 2 * call.kv_heads;
    require(call.kv_heads > 0 && call.heads > 0 && call.heads % call.kv_heads == 0, "keys: heads");
    call.wide = buffers.packed("wide", wide, item, rows);
    const Shape cache{call.batch, call.kv_heads, places[2], call.dim};
    call.keys = buffers.array("keys", keys, item, cache, WRITABLE);
    call.values = buffers.array("values", values, item, cache, WRITABLE);
    call.filled = given.next_as<Index>();
    require(call.filled >= 0 && call.filled + call.tokens <= places[2], "keys: too few places");
    call.turns =
        buffers.packed("turns", given.next(), computing, {2, call.batch, call.tokens, call.dim});
    call.seen = buffers.array("seen", given.next(), 1, {call.batch, call.tokens, places[2]});
    call.scale = given.next_as<double>();
    const Shape outputs{call.batch, call.tokens, call.heads, call.dim};
    call.out = buffers.packed("out", given.next(), item, outputs, WRITABLE);
    given.end();
    require(call.keys.strides[3] == 1 && call.values.strides[3] == 1, "keys: not contiguous");
    require(call.seen.strides[2] == 1 && call.out, "step: an array is missing");
    nb::gil_scoped_release others_run;
    in_use.load()->step(call);
}

// --- The calls that most people make: arrays of NumPy alike in everything, and what hides keys is
// --- causality, a window or a mask. They are told apart here because Python would take longer than
// --- a short computation.

// NumPy's types, looked up once; they live as long as the process.
struct NumPy {
    PyObject *array, *empty, *float32, *float64;

    static const NumPy &get() {
        static const NumPy found = [] {
            const nb::module_ numpy = nb::module_::import_("numpy");
            const auto dtype = [&](const char *name) { return numpy.attr("dtype")(name).release().ptr(); };
            return NumPy{nb::object(numpy.attr("ndarray")).release().ptr(),
                         nb::object(numpy.attr("empty")).release().ptr(), dtype("float32"),
                         dtype("float64")};
        }();
        return found;
    }
};

struct Buffer {
    Py_buffer held{};

    explicit Buffer(nb::handle object) {
        if (object.is_none()) return;
        if (PyObject_GetBuffer(object.ptr(), &held, PyBUF_RECORDS_RO)) PyErr_Clear();
    }
    Buffer(const Buffer &) = delete;
    ~Buffer() { PyBuffer_Release(&held); }

    bool is_plain(const Buffer &like) const {
        if (!held.obj || held.ndim < 2 || held.ndim > 4 || held.ndim != like.held.ndim) return false;
        if (std::strcmp(held.format, like.held.format) != 0) return false;
        for (int axis = 0; axis < held.ndim; ++axis) {
            if (held.strides[axis] % held.itemsize != 0) return false;
        }
        return true;
    }
    // Counted from the last axis; axes that are not there have one entry.
    Index size(int from_last) const {
        return from_last < held.ndim ? held.shape[held.ndim - 1 - from_last] : 1;
    }
    Array array() const {
        Array found;
        found.data = static_cast<char *>(held.buf);
        for (int axis = 0; axis < held.ndim; ++axis) {
            found.strides[4 - held.ndim + axis] = held.strides[axis] / held.itemsize;
        }
        return found;
    }
};

// Whether the sizes fit together; a call for which they do not is explained in Python.
bool set_sizes(Problem &p, const Buffer &q, const Buffer &k, const Buffer &v) {
    p.batch = q.size(3), p.heads = q.size(2), p.n_q = q.size(1), p.d_k = q.size(0);
    p.kv_heads = k.size(2), p.n_k = k.size(1), p.d_v = v.size(0);
    return k.size(3) == p.batch && v.size(3) == p.batch && v.size(2) == p.kv_heads &&
           k.size(0) == p.d_k && v.size(1) == p.n_k && p.d_k > 0 && p.kv_heads > 0 &&
           p.heads % p.kv_heads == 0;
}

bool is_word(nb::handle object, const char *word) {
    return PyUnicode_CheckExact(object.ptr()) &&
           PyUnicode_CompareWithASCIIString(object.ptr(), word) == 0;
}

bool set_scale(Problem &p, nb::handle scale) {
    if (PyFloat_CheckExact(scale.ptr())) {
        p.scale = PyFloat_AS_DOUBLE(scale.ptr());
        return std::isfinite(p.scale);
    }
    p.scale = 1 / std::sqrt(static_cast<double>(p.d_k));
    return is_word(scale, "sqrt");
}

// A mask whose axes are 1 or those of the scores.
bool set_mask(Problem &p, const Buffer &mask, int axes) {
    if (!mask.held.obj || std::strcmp(mask.held.format, "?") != 0 || mask.held.ndim > axes) return false;
    const Index scores[] = {p.n_k, p.n_q, p.heads, p.batch};
    p.mask.data = static_cast<char *>(mask.held.buf);
    for (int axis = 0; axis < mask.held.ndim; ++axis) {  // from the last
        if (mask.size(axis) != 1 && mask.size(axis) != scores[axis]) return false;
        const Index stride = mask.held.strides[mask.held.ndim - 1 - axis];
        p.mask.strides[3 - axis] = mask.size(axis) == 1 ? 0 : stride;
    }
    return true;
}

// How many keys on one side of a window.
bool set_side(Index &side, nb::handle object) {
    if (!PyLong_CheckExact(object.ptr())) return false;
    int overflow = 0;
    side = PyLong_AsLongLongAndOverflow(object.ptr(), &overflow);
    return overflow == 0 && side >= -1 && side < Index{1} << 31;
}

bool set_window(Problem &p, nb::handle window) {
    if (!PyTuple_CheckExact(window.ptr())) return set_side(p.left, window) && set_side(p.right, window);
    return PyTuple_GET_SIZE(window.ptr()) == 2 && set_side(p.left, PyTuple_GET_ITEM(window.ptr(), 0)) &&
           set_side(p.right, PyTuple_GET_ITEM(window.ptr(), 1));
}

nb::object new_array(const Problem &p, int axes) {
    const Index shape[] = {p.batch, p.heads, p.n_q, p.d_v};
    nb::object sizes = nb::steal(PyTuple_New(axes));
    for (int axis = 0; axis < axes; ++axis) {
        PyTuple_SET_ITEM(sizes.ptr(), axis, PyLong_FromSsize_t(shape[4 - axes + axis]));
    }
    const NumPy &numpy = NumPy::get();
    PyObject *dtype = p.dtype == DType::float64 ? numpy.float64 : numpy.float32;
    PyObject *arguments[] = {sizes.ptr(), dtype};
    nb::object made = nb::steal(PyObject_Vectorcall(numpy.empty, arguments, 2, nullptr));
    if (!made.is_valid()) throw nb::python_error();
    return made;
}

// attention(q, k, v) for such a call, and None for every other.
nb::object plain_attention(nb::handle q, nb::handle k, nb::handle v, nb::handle mask,
                           nb::handle causal, nb::handle window, nb::handle scale,
                           nb::handle layout) {
    PyTypeObject *const array = reinterpret_cast<PyTypeObject *>(NumPy::get().array);
    for (const nb::handle given : {q, k, v, mask.is_none() ? q : mask}) {
        if (Py_TYPE(given.ptr()) != array) return nb::none();
    }
    if (causal.ptr() != Py_True && causal.ptr() != Py_False) return nb::none();
    if (!is_word(layout, "head-token")) return nb::none();
    const Buffer queries(q), keys(k), values(v), hiding(mask);
    if (!queries.held.obj || !queries.is_plain(queries) || !keys.is_plain(queries) ||
        !values.is_plain(queries)) {
        return nb::none();
    }
    Forward call;
    Problem &p = call.problem;
    const char *const format = queries.held.format;
    if (std::strcmp(format, "f") != 0 && std::strcmp(format, "d") != 0) return nb::none();
    p.dtype = *format == 'd' ? DType::float64 : DType::float32;
    p.causal = causal.ptr() == Py_True;
    if (!set_sizes(p, queries, keys, values) || !set_scale(p, scale)) return nb::none();
    if (p.causal && p.n_q != p.n_k) return nb::none();
    if (!mask.is_none() && !set_mask(p, hiding, queries.held.ndim)) return nb::none();
    if (!window.is_none() && !set_window(p, window)) return nb::none();
    const std::vector<Index> last_at_last(window.is_none() ? 0 : p.batch, p.n_k - p.n_q);
    if (!window.is_none()) p.offsets = last_at_last.data();
    p.q = queries.array(), p.k = keys.array(), p.v = values.array();
    nb::object out = new_array(p, queries.held.ndim);
    const Buffer result(out);
    call.out = result.array();
    nb::gil_scoped_release others_run;
    in_use.load()->forward(call);
    return out;
}

double fma_gigaflops(Index rounds) {
    nb::gil_scoped_release others_run;
    return measure_fma(*in_use.load(), rounds);
}

double memory_gigabytes(Index megabytes) {
    nb::gil_scoped_release others_run;
    return measure_memory(*in_use.load(), megabytes);
}

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const Kernels *kernels : USABLE) names.push_back(kernels->name);
    return names;
}

}  // namespace
}  // namespace regard

NB_MODULE(_native, module) {
    using namespace regard;
    module.def("instruction_sets", &instruction_sets);
    module.def("kernels", &kernel_names);
    module.def("kernel", [] { return in_use.load()->name; });
    module.def("use_kernel", &use_kernel, "name"_a);
    module.def("threads", &threads);
    module.def("set_threads", &set_threads, "number"_a);
    module.def("use_torch_threads", &use_torch_threads, "to_work"_a);
    module.def("forward", &forward);
    module.def("backward", &backward);
    module.def("inspect", &inspect);
    module.def("step", &step);
    module.def("plain_attention", &plain_attention, "q"_a.none(), "k"_a.none(), "v"_a.none(),
               "mask"_a.none(), "causal"_a.none(), "window"_a.none(), "scale"_a.none(),
               "layout"_a.none());
    module.def("fma_gigaflops", &fma_gigaflops, "rounds"_a);
    module.def("memory_gigabytes", &memory_gigabytes, "megabytes"_a);
}
