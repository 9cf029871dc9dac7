/* Evaluates a launch plan: checks the arguments of a call, solves the symbols, runs the host program, hands each launch
 * to the back end. Nothing is launched when a check fails. Allocation-free unless the host half is very long.
 * The order and the texts of the checks are those of the language reference. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "runtime/plan.h"

enum { POLL_TURNS = (1 << 14) - 1 }; /* a loop asks whether to stop every so many turns */

/* ---- faults ------------------------------------------------------------------------------------------------------ */

bool
tx_plan_fault(plan_call *k, tx_call_class cls, const char *fmt, ...)
{
    va_list ap;

    k->e->cls = cls;
    va_start(ap, fmt);
    vsnprintf(k->e->text, sizeof k->e->text, fmt, ap);
    va_end(ap);
    return false;
}

/* "<what> on argument #i ('name') when calling:\n  `S`,\n  expected ..., got ..." */
static bool
arg_fault(plan_call *k, tx_call_class cls, uint32_t i, const char *what, const char *fmt, ...)
{
    const plan_param *p = &k->p->params[i];
    char tail[512], own[80] = "";
    va_list ap;

    if (strcmp(p->name, p->buffer_name) != 0)
        snprintf(own, sizeof own, " (%s)", p->name);
    va_start(ap, fmt);
    vsnprintf(tail, sizeof tail, fmt, ap);
    va_end(ap);
    return tx_plan_fault(k, cls, "%s on argument #%u%s when calling:\n  `%s`,\n  %s", what, i, own, k->p->signature,
                         tail);
}

static const char *
field(char *text, size_t n, const plan_param *p, const char *prefix, const char *what, int dim)
{
    if (dim < 0)
        snprintf(text, n, "%s %s.%s", prefix, p->buffer_name, what);
    else
        snprintf(text, n, "%s %s.%s[%d]", prefix, p->buffer_name, what, dim);
    return text;
}

static void
dtype_text(tx_dtype t, char *text, size_t n)
{
    const tx_kind_info *info = &tx_kinds[tx_kind(t)];

    if (tx_lanes(t) > 1)
        snprintf(text, n, "%sx%u", info->text, tx_lanes(t));
    else
        snprintf(text, n, "%s", info->text);
}

static const char *
device_text(int type)
{
    switch (type) {
    case TX_DEV_CPU: return "cpu";
    case TX_DEV_CUDA: return "cuda";
    case TX_DEV_CUDA_HOST: return "cuda_host";
    case TX_DEV_CUDA_MANAGED: return "cuda_managed";
    default: return "another device";
    }
}

/* ---- scalars ----------------------------------------------------------------------------------------------------- */

static bool
kind_fault(plan_call *k, uint32_t i, const char *want)
{
    return arg_fault(k, TX_CALL_TYPE_ERROR, i, "Mismatched type", "expected %s, got %s", want,
                     k->args[i].type_name ? k->args[i].type_name : "nothing");
}

static bool
int_scalar(plan_call *k, uint32_t i)
{
    const plan_param *p = &k->p->params[i];
    const tx_arg *a = &k->args[i];
    int64_t lo;
    uint64_t hi;
    char what[96], got[32];
    bool fits;

    if (a->kind != TX_ARG_INT && a->kind != TX_ARG_BOOL)
        return kind_fault(k, i, "int");
    tx_int_limits(p->type, &lo, &hi);
    if (a->pos_overflow || a->neg_overflow)
        fits = false;
    else if (a->unsigned_int)
        fits = a->v.u <= hi;
    else
        fits = a->v.i >= lo && (a->v.i < 0 || (uint64_t)a->v.i <= hi);
    if (fits) {
        k->reg[p->reg].i = a->v.i;
        return true;
    }
    if (a->pos_overflow || a->neg_overflow)
        snprintf(got, sizeof got, "%s", a->neg_overflow ? "an int below -2**63" : "an int above 2**64 - 1");
    else if (a->unsigned_int)
        snprintf(got, sizeof got, "%llu", (unsigned long long)a->v.u);
    else
        snprintf(got, sizeof got, "%lld", (long long)a->v.i);
    snprintf(what, sizeof what, "Invalid %s", p->name);
    return arg_fault(k, TX_CALL_VALUE_ERROR, i, what, "%s is out of range for %s (%lld..%llu)", got,
                     tx_kinds[tx_kind(p->type)].text, (long long)lo, (unsigned long long)hi);
}

static bool
scalar(plan_call *k, uint32_t i)
{
    const plan_param *p = &k->p->params[i];
    const tx_arg *a = &k->args[i];
    plan_value *to = &k->reg[p->reg];
    char what[96];

    if (tx_is_bool(p->type)) {
        if (a->kind != TX_ARG_BOOL && a->kind != TX_ARG_INT)
            return kind_fault(k, i, "boolean");
        to->i = a->v.i != 0 || a->pos_overflow || a->neg_overflow;
        return true;
    }
    if (tx_is_int(p->type))
        return int_scalar(k, i);
    if (a->kind == TX_ARG_FLOAT || (a->kind == TX_ARG_INT && (a->pos_overflow || a->neg_overflow)))
        to->f = a->v.f;
    else if (a->kind == TX_ARG_INT || a->kind == TX_ARG_BOOL)
        to->f = a->unsigned_int ? (double)a->v.u : (double)a->v.i;
    else
        return kind_fault(k, i, "float");
    if (a->kind == TX_ARG_INT && isinf(to->f)) {
        snprintf(what, sizeof what, "Invalid %s", p->name);
        return arg_fault(k, TX_CALL_VALUE_ERROR, i, what, "expected a number in the range of a double");
    }
    to->f = tx_decode(p->type, tx_encode(p->type, to->f));
    return true;
}

static bool
plan_call_pointer(plan_call *k, uint32_t i)
{
    const tx_arg *a = &k->args[i];

    if (a->kind == TX_ARG_NONE || a->kind == TX_ARG_TENSOR || a->kind == TX_ARG_POINTER)
        return true;
    if (a->kind != TX_ARG_INT || a->pos_overflow || a->neg_overflow)
        return kind_fault(k, i, "pointer");
    if (k->device_type == TX_DEV_CPU && a->v.i != 0)
        return arg_fault(k, TX_CALL_TYPE_ERROR, i, "Mismatched type",
                         "expected a tensor: the emulator cannot check what stands behind an address");
    return true;
}

/* ---- tensors ----------------------------------------------------------------------------------------------------- */

static bool
is_empty(const tx_arg *a)
{
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] == 0)
            return true;
    return false;
}

static bool
on_device(const plan_call *k, const tx_arg *a)
{
    if (a->device_type == k->device_type)
        return true;
    if (k->device_type == TX_DEV_CPU)
        return a->device_type == TX_DEV_CUDA_HOST;
    return a->device_type == TX_DEV_CUDA_MANAGED || a->device_type == TX_DEV_CUDA_HOST;
}

static bool
tensor_kind(plan_call *k, uint32_t i)
{
    const plan_param *p = &k->p->params[i];
    const tx_arg *a = &k->args[i];
    char what[160], want[32], got[40];

    if (a->kind != TX_ARG_TENSOR)
        return kind_fault(k, i, "Tensor");
    if (a->ndim != p->rank)
        return arg_fault(k, TX_CALL_VALUE_ERROR, i, field(what, sizeof what, p, "Mismatched", "ndim", -1),
                         "expected %d, got %d", p->rank, a->ndim);
    if (a->dtype != p->type) {
        dtype_text(p->type, want, sizeof want);
        if (a->dtype == TX_VOID)
            snprintf(got, sizeof got, "%s", a->dtype_text);
        else
            dtype_text(a->dtype, got, sizeof got);
        return arg_fault(k, TX_CALL_TYPE_ERROR, i, field(what, sizeof what, p, "Mismatched", "dtype", -1),
                         "expected %s, got %s", want, got);
    }
    if (!on_device(k, a))
        return arg_fault(k, TX_CALL_VALUE_ERROR, i, field(what, sizeof what, p, "Mismatched", "device_type", -1),
                         "expected %s, got %s", device_text(k->device_type), device_text(a->device_type));
    return true;
}

/* Elements between neighbours along `dim`, also where the tensor gives no strides. */
static int64_t
stride_of(const tx_arg *a, int dim)
{
    int64_t s = 1;

    if (a->strides)
        return a->strides[dim];
    for (int d = a->ndim - 1; d > dim; d--)
        if (!tx_mul_i64(s, a->shape[d], &s))
            return INT64_MAX;
    return s;
}

static bool
is_compact(const tx_arg *a)
{
    int64_t want = 1;

    if (!a->strides || is_empty(a))
        return true;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (a->shape[d] != 1 && a->strides[d] != want)
            return false;
        if (!tx_mul_i64(want, a->shape[d], &want))
            return false;
    }
    return true;
}

/* A ready map: an object of tirx.tensor_map, or the address of 128 bytes on the host. */
static bool
map_argument(plan_call *k, uint32_t i)
{
    const tx_arg *a = &k->args[i];
    tx_tensormap t;
    int64_t nbytes;

    if (a->kind == TX_ARG_MAP) {
        if (!on_device(k, a))
            return arg_fault(k, TX_CALL_VALUE_ERROR, i, "Mismatched tensor map",
                             "expected a map over a tensor on %s, got one on %s", device_text(k->device_type),
                             device_text(a->device_type));
        if (a->device_type == TX_DEV_CUDA && k->device_id < 0)
            k->device_id = a->device_id;
        return true;
    }
    if (a->kind == TX_ARG_TENSOR) {
        nbytes = a->ndim == 1 ? a->shape[0] * tx_dtype_bytes(a->dtype) : 0;
        if (a->device_type == TX_DEV_CUDA || nbytes != TX_TM_BYTES || !is_compact(a))
            return arg_fault(k, TX_CALL_TYPE_ERROR, i, "Mismatched tensor map",
                             "expected a map of tirx.tensor_map(...), or a vector of 128 bytes on the host");
    } else if (a->kind != TX_ARG_POINTER || !a->v.p) {
        return kind_fault(k, i, "TensorMap");
    }
    if (tx_tensormap_decode(a->v.p, &t) && t.address != 0)
        return true;
    return arg_fault(k, TX_CALL_VALUE_ERROR, i, "Mismatched tensor map", "the 128 bytes are no tensor map");
}

static bool
plan_call_check_extents(plan_call *k, uint32_t i, const plan_extent *e, bool strides)
{
    const plan_param *p = &k->p->params[i];
    const tx_arg *a = &k->args[i];
    char what[160];

    for (int d = 0; d < p->rank; d++) {
        int64_t want = e[d].reg == PLAN_NO_REG ? e[d].value : k->reg[e[d].reg].i;
        int64_t got = strides ? stride_of(a, d) : a->shape[d];
        const char *name = strides ? "strides" : "shape";

        if (e[d].defines || got == want || (strides && a->shape[d] <= 1))
            continue;
        if (e[d].is_symbol)
            return arg_fault(k, TX_CALL_VALUE_ERROR, i, field(what, sizeof what, p, "Mismatched", name, d),
                             "expected to match %s = %lld, got %lld", e[d].text, (long long)want, (long long)got);
        if (e[d].text)
            return arg_fault(k, TX_CALL_VALUE_ERROR, i, field(what, sizeof what, p, "Invalid", name, d),
                             "expected %s = %lld, got %lld", e[d].text, (long long)want, (long long)got);
        return arg_fault(k, TX_CALL_VALUE_ERROR, i, field(what, sizeof what, p, "Invalid", name, d),
                         "expected %lld, got %lld", (long long)want, (long long)got);
    }
    return true;
}

static bool
tensor_memory(plan_call *k, uint32_t i, uint32_t *first)
{
    const plan_param *p = &k->p->params[i];
    const tx_arg *a = &k->args[i];
    char what[160];
    int64_t align = p->align;

    if (p->compact && !is_compact(a))
        return arg_fault(k, TX_CALL_VALUE_ERROR, i, field(what, sizeof what, p, "Mismatched", "strides", -1),
                         "expected to be compact array");
    if (p->written && a->readonly)
        return arg_fault(k, TX_CALL_VALUE_ERROR, i, "Read-only tensor", "%s is written by the kernel", p->buffer_name);
    if (!is_empty(a)) {
        if (!a->v.p) {
            snprintf(what, sizeof what, "%s data pointer is NULL", p->buffer_name);
            return arg_fault(k, TX_CALL_VALUE_ERROR, i, what, "expected non-NULL data pointer");
        }
        if (k->device_type == TX_DEV_CPU && align > 16)
            align = 16; /* host allocators promise no more; the emulator counts from there */
        if (p->factor) {
            int64_t at = p->offset.reg == PLAN_NO_REG ? p->offset.value : k->reg[p->offset.reg].i;
            if (at % p->factor != 0)
                return arg_fault(k, TX_CALL_VALUE_ERROR, i, "Misaligned Tensor data",
                                 "expected data alignment=%lld bytes, got elem_offset %lld, no multiple of %d",
                                 (long long)p->factor * p->elem, (long long)at, (int)p->factor);
        }
        if (align > 1 && (uintptr_t)a->v.p % (uintptr_t)align != 0)
            return arg_fault(k, TX_CALL_VALUE_ERROR, i, "Misaligned Tensor data",
                             "expected data alignment=%lld bytes, got an address that is a multiple of %d",
                             (long long)p->align, (int)((uintptr_t)a->v.p & -(uintptr_t)a->v.p));
    }
    if (k->device_type != TX_DEV_CUDA || a->device_type != TX_DEV_CUDA)
        return true;
    if (*first == UINT32_MAX) {
        *first = i;
        k->device_id = a->device_id;
    } else if (a->device_id != k->device_id) {
        return arg_fault(k, TX_CALL_VALUE_ERROR, i, field(what, sizeof what, p, "Mismatched", "device_id", -1),
                         "expected to match %s.device_id = %d, got %d", k->p->params[*first].buffer_name, k->device_id,
                         a->device_id);
    }
    return true;
}

/* ---- the host program -------------------------------------------------------------------------------------------- */

static int64_t
plan_call_floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - ((a % b != 0) && ((a < 0) != (b < 0)));
}

static int64_t
plan_call_int_binary(unsigned op, bool is_unsigned, unsigned bits, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;

    switch (op) {
    case TX_OP_EQ: return a == b;
    case TX_OP_NE: return a != b;
    case TX_OP_LT: return is_unsigned ? ua < ub : a < b;
    case TX_OP_GE: return is_unsigned ? ua >= ub : a >= b;
    case TX_OP_GT: return is_unsigned ? ua > ub : a > b;
    case TX_OP_LE: return is_unsigned ? ua <= ub : a <= b;
    case TX_OP_ADD: return (int64_t)(ua + ub);
    case TX_OP_SUB: return (int64_t)(ua - ub);
    case TX_OP_MUL: return (int64_t)(ua * ub);
    case TX_OP_MIN: return is_unsigned ? (int64_t)(ua < ub ? ua : ub) : a < b ? a : b;
    case TX_OP_MAX: return is_unsigned ? (int64_t)(ua > ub ? ua : ub) : a > b ? a : b;
    case TX_OP_BAND:
    case TX_OP_AND: return a & b;
    case TX_OP_BOR:
    case TX_OP_OR: return a | b;
    case TX_OP_BXOR: return a ^ b;
    case TX_OP_SHL: return ub >= bits ? 0 : (int64_t)(ua << ub);
    case TX_OP_SHR:
        if (is_unsigned)
            return ub >= bits ? 0 : (int64_t)(ua >> ub);
        return a >> (ub >= bits ? bits - 1 : ub);
    default: return 0;
    }
}

/* Division family; b is not 0. */
static int64_t
int_divide(unsigned op, bool is_unsigned, int64_t a, int64_t b)
{
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    bool is_mod = op == TX_OP_MOD || op == TX_OP_FLOORMOD;

    if (is_unsigned) {
        if (op == TX_OP_CEILDIV)
            return (int64_t)(ua / ub + (ua % ub != 0));
        return (int64_t)(is_mod ? ua % ub : ua / ub);
    }
    if (b == -1) /* INT64_MIN / -1 traps in C and wraps here */
        return is_mod ? 0 : (int64_t)(0 - ua);
    switch (op) {
    case TX_OP_DIV: return a / b;
    case TX_OP_MOD: return a % b;
    case TX_OP_FLOORDIV: return plan_call_floor_div(a, b);
    case TX_OP_FLOORMOD: return a - plan_call_floor_div(a, b) * b;
    default: return -plan_call_floor_div(-a, b); /* CEILDIV */
    }
}

static double
plan_call_float_binary(unsigned op, double a, double b)
{
    switch (op) {
    case TX_OP_ADD: return a + b;
    case TX_OP_SUB: return a - b;
    case TX_OP_MUL: return a * b;
    case TX_OP_DIV: return a / b;
    case TX_OP_MIN: return fmin(a, b);
    case TX_OP_MAX: return fmax(a, b);
    default: return 0;
    }
}

static int64_t
float_compare(unsigned op, double a, double b)
{
    switch (op) {
    case TX_OP_EQ: return a == b;
    case TX_OP_NE: return a != b;
    case TX_OP_LT: return a < b;
    case TX_OP_GE: return a >= b;
    case TX_OP_GT: return a > b;
    default: return a <= b;
    }
}

static bool
plan_call_binary(plan_call *k, const plan_instr *i)
{
    plan_value a = k->reg[i->a], b = k->reg[i->b], *to = &k->reg[i->dst];
    bool is_unsigned = tx_class(i->from) == TX_CLS_U || tx_is_bool(i->from);

    if (tx_is_float(i->from)) {
        if (tx_is_bool(i->type))
            to->i = float_compare(i->sub, a.f, b.f);
        else
            to->f = tx_decode(i->type, tx_encode(i->type, plan_call_float_binary(i->sub, a.f, b.f)));
        return true;
    }
    if (i->sub >= TX_OP_DIV && i->sub <= TX_OP_CEILDIV) {
        if (b.i == 0)
            return tx_plan_fault(k, TX_CALL_VALUE_ERROR, "division by zero in a host expression when calling:\n  `%s`",
                                 k->p->signature);
        to->i = tx_wrap(i->type, int_divide(i->sub, is_unsigned, a.i, b.i));
        return true;
    }
    to->i = plan_call_int_binary(i->sub, is_unsigned, tx_bits(i->from), a.i, b.i);
    if (!tx_is_bool(i->type))
        to->i = tx_wrap(i->type, to->i);
    return true;
}

static void
unary(plan_call *k, const plan_instr *i)
{
    plan_value a = k->reg[i->a], *to = &k->reg[i->dst];

    if (tx_is_float(i->type)) {
        to->f = i->sub == TX_OP_ABS ? fabs(a.f) : -a.f;
        return;
    }
    switch (i->sub) {
    case TX_OP_NOT: to->i = !a.i; return;
    case TX_OP_BNOT: to->i = tx_is_bool(i->type) ? !a.i : tx_wrap(i->type, ~a.i); return;
    case TX_OP_ABS: to->i = tx_wrap(i->type, a.i < 0 ? (int64_t)(0 - (uint64_t)a.i) : a.i); return;
    default: to->i = tx_wrap(i->type, (int64_t)(0 - (uint64_t)a.i)); return;
    }
}

/* Saturating, NaN gives 0, as everywhere in the language. */
static int64_t
plan_call_float_to_int(tx_dtype t, double v)
{
    int64_t lo;
    uint64_t hi;

    tx_int_limits(t, &lo, &hi);
    if (v != v)
        return 0;
    if (v <= (double)lo)
        return lo;
    if (v >= (double)hi)
        return (int64_t)hi;
    return v < 0 ? (int64_t)v : (int64_t)(uint64_t)v;
}

static void
plan_call_cast(plan_call *k, const plan_instr *i)
{
    plan_value a = k->reg[i->a], *to = &k->reg[i->dst];
    bool was_float = tx_is_float(i->from);

    if (tx_is_bool(i->type))
        to->i = was_float ? a.f != 0 : a.i != 0;
    else if (tx_is_float(i->type))
        to->f = tx_decode(i->type, tx_encode(i->type, was_float                       ? a.f
                                                      : tx_class(i->from) == TX_CLS_U ? (double)(uint64_t)a.i
                                                                                      : (double)a.i));
    else
        to->i = was_float ? plan_call_float_to_int(i->type, a.f) : tx_wrap(i->type, a.i);
}

/* Bytes that shape and strides reach: from the first element on, and before it where strides are negative. */
void
tx_arg_reach(const tx_arg *a, size_t *from, size_t *before)
{
    int64_t last = 0, first = 0, bits = (int64_t)tx_bits(a->dtype) * tx_lanes(a->dtype);

    *from = *before = 0;
    if (is_empty(a))
        return;
    for (int d = 0; d < a->ndim; d++) {
        int64_t stride = stride_of(a, d), *end = stride < 0 ? &first : &last, part;
        if (!tx_mul_i64(a->shape[d] - 1, stride, &part) || !tx_add_i64(*end, part, end)) {
            *from = SIZE_MAX / 2;
            return;
        }
    }
    if (bits < 8 && bits > 0 && tx_bits(a->dtype) == 4) {
        *from = (size_t)((last + 1) * bits + 7) / 8;
        *before = (size_t)(-first * bits + 7) / 8;
        return;
    }
    *from = (size_t)(last + 1) * (size_t)tx_dtype_bytes(a->dtype);
    *before = (size_t)-first * (size_t)tx_dtype_bytes(a->dtype);
}

static void
kernel_argument(plan_call *k, const plan_operand *o, tx_emu_arg *to)
{
    memset(to, 0, sizeof *to);
    if (o->kind == PLAN_MAP || (o->kind == PLAN_TENSOR && k->p->params[o->param].kind == PLAN_P_MAP)) {
        tx_plan_map_operand(k, o, to);
        return;
    }
    if (o->kind == PLAN_TENSOR) {
        const tx_arg *a = &k->args[o->param];
        bool tensor = a->kind == TX_ARG_TENSOR;
        to->v.p = a->kind == TX_ARG_NONE ? NULL : a->v.p;
        if (tensor)
            tx_arg_reach(a, &to->nbytes, &to->before);
        to->readonly = tensor && a->readonly;
        return;
    }
    to->v.i = k->reg[o->reg].i; /* floats as doubles: the back ends narrow them */
}

/* Grid, block, cluster: false with a message when out of the hardware's range (CUDA guide, compute capabilities). */
static bool
dimension(plan_call *k, const plan_launch *l, int first, const char *what, const int64_t *limits, uint32_t *out)
{
    for (int d = 0; d < 3; d++) {
        uint16_t r = l->reg[first + d];
        int64_t v = r == PLAN_NO_REG ? 1 : k->reg[r].i;

        if (v < 0 || v > limits[d])
            return tx_plan_fault(k, TX_CALL_VALUE_ERROR,
                                 "%s.%c of %s is %lld when calling:\n  `%s`,\n  expected 0..%lld", what, "xyz"[d],
                                 l->name, (long long)v, k->p->signature, (long long)limits[d]);
        out[d] = (uint32_t)v;
    }
    return true;
}

static bool
launch_shape(plan_call *k, const plan_launch *l, tx_resolved_launch *r)
{
    static const int64_t grid[3] = {2147483647, 65535, 65535}, block[3] = {1024, 1024, 64};
    static const int64_t cluster[3] = {TX_MAX_CLUSTER, TX_MAX_CLUSTER, TX_MAX_CLUSTER};
    uint64_t threads;

    if (!dimension(k, l, TX_L_GRID_X, "grid", grid, r->grid) ||
        !dimension(k, l, TX_L_BLOCK_X, "block", block, r->block) ||
        !dimension(k, l, TX_L_CLUSTER_X, "cluster", cluster, r->cluster) ||
        !dimension(k, l, TX_L_PREFERRED_X, "preferred_cluster", cluster, r->preferred))
        return false;
    threads = (uint64_t)r->block[0] * r->block[1] * r->block[2];
    if (threads > TX_MAX_THREADS)
        return tx_plan_fault(k, TX_CALL_VALUE_ERROR,
                             "block of %s has %llu threads when calling:\n  `%s`,\n  expected at most %d", l->name,
                             (unsigned long long)threads, k->p->signature, TX_MAX_THREADS);
    for (int d = 0; d < 3; d++) {
        uint32_t c = r->cluster[d];
        if (c == 0 || r->preferred[d] == 0)
            return tx_plan_fault(k, TX_CALL_VALUE_ERROR, "cluster.%c of %s is 0 when calling:\n  `%s`", "xyz"[d],
                                 l->name, k->p->signature);
        if (r->grid[d] % c != 0)
            return tx_plan_fault(
                k, TX_CALL_VALUE_ERROR,
                "grid.%c of %s is %u when calling:\n  `%s`,\n  expected a multiple of the cluster size %u", "xyz"[d],
                l->name, r->grid[d], k->p->signature, c);
    }
    return true;
}

static bool
plan_call_launch(plan_call *k, const plan_launch *l)
{
    tx_resolved_launch r = {.kernel = l->kernel,
                            .attrs = &l->attrs,
                            .args = k->out,
                            .nargs = l->nargs,
                            .nvisible = l->nvisible,
                            .stream = k->stream,
                            .device_id = k->device_id};
    uint16_t smem = l->reg[TX_L_DYN_SMEM], priority = l->reg[TX_L_PRIORITY];
    tx_launch_extra extras[TX_MAX_LAUNCH_EXTRAS];

    if (!launch_shape(k, l, &r))
        return false;
    if (smem != PLAN_NO_REG) {
        if (k->reg[smem].i < 0 || k->reg[smem].i > UINT32_MAX)
            return tx_plan_fault(k, TX_CALL_VALUE_ERROR,
                                 "dynamic shared memory of %s is %lld bytes when calling:\n  `%s`", l->name,
                                 (long long)k->reg[smem].i, k->p->signature);
        r.dyn_smem = (uint64_t)k->reg[smem].i;
        if (k->device_type == TX_DEV_CPU && r.dyn_smem > TX_MAX_DYN_SMEM) /* the driver knows what its GPU has */
            return tx_plan_fault(
                k, TX_CALL_VALUE_ERROR,
                "dynamic shared memory of %s is %lld bytes when calling:\n  `%s`,\n  expected at most %d", l->name,
                (long long)r.dyn_smem, k->p->signature, TX_MAX_DYN_SMEM);
    }
    r.extras = extras;
    r.nextras = l->nextras;
    if (l->nextras && !tx_plan_extra_values(k, l, extras))
        return false;
    r.priority = priority == PLAN_NO_REG ? 0 : k->reg[priority].i;
    if (l->reg[TX_L_STREAM] != PLAN_NO_REG)
        r.stream = k->reg[l->reg[TX_L_STREAM]].p;
    if ((uint64_t)r.grid[0] * r.grid[1] * r.grid[2] == 0 || (uint64_t)r.block[0] * r.block[1] * r.block[2] == 0)
        return true; /* nothing to do, as in NumPy */
    for (uint32_t i = 0; i < l->nargs; i++) {
        if (l->args[i].kind == PLAN_MAP && !tx_plan_map_ready(k, l, i))
            return false;
        kernel_argument(k, &l->args[i], &k->out[i]);
    }
    return k->host->launch(k->host->self, &r, k->e);
}

static void
give_value(tx_arg *to, tx_dtype t, plan_value v)
{
    memset(to, 0, sizeof *to);
    to->dtype = t;
    to->kind = tx_is_bool(t) ? TX_ARG_BOOL : tx_is_float(t) ? TX_ARG_FLOAT : TX_ARG_INT;
    to->unsigned_int = tx_class(t) == TX_CLS_U && v.i < 0;
    if (to->kind == TX_ARG_FLOAT)
        to->v.f = v.f;
    else
        to->v.i = v.i;
}

static bool
plan_call_packed(plan_call *k, const plan_instr *i)
{
    const plan_packed *call_of = &k->p->packed[i->imm.i];
    tx_arg result = {0};

    for (uint32_t j = 0; j < call_of->nargs; j++) {
        const plan_operand *o = &call_of->args[j];
        if (o->kind == PLAN_TENSOR) {
            k->packed[j] = k->args[o->param];
        } else if (o->kind == PLAN_MAP) { /* the address of its 128 bytes */
            memset(&k->packed[j], 0, sizeof k->packed[j]);
            k->packed[j].kind = TX_ARG_POINTER;
            k->packed[j].v.p = k->maps + (size_t)o->param * TX_TM_BYTES;
        } else if (o->kind == PLAN_STRING) {
            memset(&k->packed[j], 0, sizeof k->packed[j]);
            k->packed[j].kind = TX_ARG_OTHER;
            k->packed[j].type_name = o->text;
        } else {
            give_value(&k->packed[j], o->type, k->reg[o->reg]);
        }
    }
    if (call_of->occupancy)
        return tx_plan_answer(k, call_of, &result.v.i) &&
               (i->dst == PLAN_NO_REG || (k->reg[i->dst].i = result.v.i, true));
    if (!k->host->packed)
        return tx_plan_fault(k, TX_CALL_RUNTIME_ERROR, "packed function '%s' is not registered", call_of->name);
    if (!k->host->packed(k->host->self, call_of->name, k->packed, call_of->nargs, &result, k->e))
        return false;
    if (i->dst == PLAN_NO_REG)
        return true;
    if (result.kind != TX_ARG_INT && result.kind != TX_ARG_BOOL && result.kind != TX_ARG_FLOAT)
        return tx_plan_fault(k, TX_CALL_TYPE_ERROR, "packed function '%s' gave %s, expected %s", call_of->name,
                             result.type_name ? result.type_name : "nothing", tx_kinds[tx_kind(i->type)].text);
    if (tx_is_float(i->type))
        k->reg[i->dst].f = result.kind == TX_ARG_FLOAT ? result.v.f : (double)result.v.i;
    else
        k->reg[i->dst].i =
            result.kind == TX_ARG_FLOAT ? plan_call_float_to_int(i->type, result.v.f) : tx_wrap(i->type, result.v.i);
    return true;
}

static bool
run(plan_call *k, uint32_t from, uint32_t to)
{
    const plan_assert *a;
    int value;

    for (uint32_t pc = from; pc < to; pc++) {
        const plan_instr *i = &k->p->instrs[pc];

        switch ((plan_code)i->code) {
        case PLAN_CONST: k->reg[i->dst] = i->imm; break;
        case PLAN_MOVE: k->reg[i->dst] = k->reg[i->a]; break;
        case PLAN_UNARY: unary(k, i); break;
        case PLAN_CAST: plan_call_cast(k, i); break;
        case PLAN_JUMP:
            if (i->imm.i <= pc && (++k->turns & POLL_TURNS) == 0 && k->host->poll && k->host->poll(k->host->self))
                return tx_plan_fault(k, TX_CALL_HOST_ERROR, "interrupted");
            pc = (uint32_t)i->imm.i - 1;
            break;
        case PLAN_JUMP_UNLESS:
            if (!k->reg[i->a].i)
                pc = (uint32_t)i->imm.i - 1;
            break;
        case PLAN_BINARY:
            if (!plan_call_binary(k, i))
                return false;
            break;
        case PLAN_LAUNCH:
            if (!plan_call_launch(k, &k->p->launches[i->imm.i]))
                return false;
            break;
        case PLAN_PACKED:
            if (!plan_call_packed(k, i))
                return false;
            break;
        case PLAN_ASSERT:
            if (k->reg[i->a].i)
                break;
            a = &k->p->asserts[i->imm.i];
            snprintf(k->e->kind, sizeof k->e->kind, "%s", a->kind);
            return tx_plan_fault(k, TX_CALL_ASSERTION, "%s", a->text);
        case PLAN_ENCODE:
            if (!tx_plan_encode(k, &k->p->encodes[i->imm.i]))
                return false;
            break;
        case PLAN_DEVICE:
            if (!tx_plan_device_value(i->imm.p, k->device_type, k->device_id, &value, k->e))
                return false;
            k->reg[i->dst].i = value;
            break;
        case PLAN_RETURN:
            if (i->a != PLAN_NO_REG)
                give_value(k->result, i->type, k->reg[i->a]);
            return true;
        }
    }
    return true;
}

/* ---- the call ---------------------------------------------------------------------------------------------------- */

static bool
plan_call_define(plan_call *k, const plan_define *d)
{
    const tx_arg *a = &k->args[d->param];
    int64_t extent = d->stride ? stride_of(a, d->dim) : a->shape[d->dim], v = extent, offset = 0, lo;
    uint64_t hi;
    char what[160];
    const char *name = d->stride ? "strides" : "shape";

    if (!run(k, d->from, d->until))
        return false;
    if (d->d != PLAN_NO_REG)
        offset = k->reg[d->d].i;
    if (!tx_sub_i64(extent, offset, &v) || v % d->c != 0)
        return arg_fault(k, TX_CALL_VALUE_ERROR, d->param,
                         field(what, sizeof what, &k->p->params[d->param], "Invalid", name, d->dim),
                         "expected %lld * %s + %lld, got %lld", (long long)d->c, d->name, (long long)offset,
                         (long long)extent);
    v /= d->c;
    tx_int_limits(d->type, &lo, &hi);
    if (v < (d->stride ? lo : 0) || (v > 0 && (uint64_t)v > hi))
        return arg_fault(k, TX_CALL_VALUE_ERROR, d->param,
                         field(what, sizeof what, &k->p->params[d->param], "Invalid", name, d->dim),
                         "%s would be %lld, which is out of range for a size of type %s", d->name, (long long)v,
                         tx_kinds[tx_kind(d->type)].text);
    k->reg[d->symbol].i = v;
    return true;
}

static bool
check(plan_call *k)
{
    const tx_plan *p = k->p;
    uint32_t first = UINT32_MAX;

    if (k->nargs != p->nparams)
        return tx_plan_fault(k, TX_CALL_TYPE_ERROR, "Expected %u argument%s when calling:\n  `%s`, got %u", p->nparams,
                             p->nparams == 1 ? "" : "s", p->signature, k->nargs);
    for (uint32_t i = 0; i < p->nparams; i++) {
        bool ok = true;
        switch (p->params[i].kind) {
        case PLAN_P_TENSOR: ok = tensor_kind(k, i); break;
        case PLAN_P_SCALAR: ok = scalar(k, i); break;
        case PLAN_P_POINTER: ok = plan_call_pointer(k, i); break;
        case PLAN_P_MAP: ok = map_argument(k, i); break;
        case PLAN_P_ABSENT: ok = k->args[i].kind == TX_ARG_NONE || kind_fault(k, i, "None"); break;
        }
        if (!ok)
            return false;
    }
    for (uint32_t i = 0; i < p->ndefines; i++)
        if (!plan_call_define(k, &p->defines[i]))
            return false;
    if (!run(k, p->extents, p->body))
        return false;
    for (uint32_t i = 0; i < p->nparams; i++)
        if (p->params[i].kind == PLAN_P_TENSOR && !plan_call_check_extents(k, i, p->params[i].shape, false))
            return false;
    for (uint32_t i = 0; i < p->nparams; i++)
        if (p->params[i].kind == PLAN_P_TENSOR &&
            ((p->params[i].strides && !plan_call_check_extents(k, i, p->params[i].strides, true)) ||
             !tensor_memory(k, i, &first)))
            return false;
    return true;
}

bool
tx_plan_call(const tx_plan *p, tx_arg *args, uint32_t nargs, int device_type, void *stream, const tx_plan_host *h,
             tx_arg *result, tx_call_error *e)
{
    plan_value regs[PLAN_STACK_REGS];
    tx_emu_arg out[PLAN_STACK_ARGS];
    plan_call k = {.p = p,
                   .args = args,
                   .nargs = nargs,
                   .device_type = device_type,
                   .device_id = -1,
                   .stream = stream,
                   .host = h,
                   .result = result,
                   .e = e,
                   .reg = regs,
                   .out = out};
    bool ok = false;
    _Alignas(TX_TM_ALIGN) uint8_t map_bytes[PLAN_STACK_MAPS * TX_TM_BYTES];
    plan_slot slots[PLAN_STACK_MAPS];
    void *heap = NULL;

    memset(result, 0, sizeof *result);
    e->cls = TX_CALL_OK;
    k.maps = map_bytes;
    k.slot = slots;
    if (TX_UNLIKELY(p->nmaps > PLAN_STACK_MAPS)) {
        heap = tx_malloc((p->nmaps + 1) * (size_t)TX_TM_BYTES);
        k.maps = heap ? (uint8_t *)(((uintptr_t)heap + TX_TM_ALIGN - 1) & ~(uintptr_t)(TX_TM_ALIGN - 1)) : NULL;
        k.slot = tx_malloc(p->nmaps * sizeof *k.slot);
    }
    if (p->nmaps && k.slot)
        memset(k.slot, 0, p->nmaps * sizeof *k.slot);
    if (p->nregs > PLAN_STACK_REGS)
        k.reg = tx_malloc(p->nregs * sizeof *k.reg);
    if (p->max_args > PLAN_STACK_ARGS)
        k.out = tx_malloc(p->max_args * sizeof *k.out);
    if (p->npacked)
        k.packed = tx_calloc(p->max_args ? p->max_args : 1, sizeof *k.packed);
    if (!k.reg || !k.out || !k.maps || !k.slot || (p->npacked && !k.packed))
        tx_plan_fault(&k, TX_CALL_MEMORY_ERROR, "out of memory");
    else
        ok = check(&k) && run(&k, p->body, p->ninstrs);
    if (k.reg != regs)
        tx_free(k.reg);
    if (k.out != out)
        tx_free(k.out);
    tx_free(k.packed);
    tx_free(heap);
    if (k.slot != slots)
        tx_free(k.slot);
    return ok;
}

/* ---- reading a plan ---------------------------------------------------------------------------------------------- */

static void
print_instr(const tx_plan *p, uint32_t pc, tx_sb *out)
{
    const plan_instr *i = &p->instrs[pc];

    tx_sb_f(out, "%4u  ", pc);
    switch ((plan_code)i->code) {
    case PLAN_CONST:
        if (tx_is_float(i->type))
            tx_sb_f(out, "r%u = %.17g\n", i->dst, i->imm.f);
        else
            tx_sb_f(out, "r%u = %lld\n", i->dst, (long long)i->imm.i);
        break;
    case PLAN_MOVE: tx_sb_f(out, "r%u = r%u\n", i->dst, i->a); break;
    case PLAN_UNARY: tx_sb_f(out, "r%u = %s r%u\n", i->dst, tx_ops[i->sub].name, i->a); break;
    case PLAN_BINARY: tx_sb_f(out, "r%u = r%u %s r%u\n", i->dst, i->a, tx_ops[i->sub].name, i->b); break;
    case PLAN_CAST: tx_sb_f(out, "r%u = %s(r%u)\n", i->dst, tx_kinds[tx_kind(i->type)].text, i->a); break;
    case PLAN_JUMP: tx_sb_f(out, "jump %lld\n", (long long)i->imm.i); break;
    case PLAN_JUMP_UNLESS: tx_sb_f(out, "jump %lld unless r%u\n", (long long)i->imm.i, i->a); break;
    case PLAN_LAUNCH: tx_sb_f(out, "launch %s\n", p->launches[i->imm.i].name); break;
    case PLAN_PACKED: tx_sb_f(out, "call %s\n", p->packed[i->imm.i].name); break;
    case PLAN_ASSERT: tx_sb_f(out, "assert r%u, %s\n", i->a, p->asserts[i->imm.i].text); break;
    case PLAN_RETURN: tx_sb_puts(out, "return\n"); break;
    case PLAN_DEVICE: tx_sb_f(out, "r%u = %s\n", i->dst, ((const plan_device *)i->imm.p)->name); break;
    case PLAN_ENCODE:
        tx_sb_f(out, "tensor map %s from %s\n", p->encodes[i->imm.i].name, p->params[p->encodes[i->imm.i].param].name);
        break;
    }
}

void
tx_plan_print(const tx_plan *p, tx_sb *out)
{
    tx_sb_f(out, "%s\n", p->signature);
    for (uint32_t i = 0; i < p->ndefines; i++) {
        const plan_define *d = &p->defines[i];
        tx_sb_f(out, "  %s (r%u) from %s.%s[%u]", d->name, d->symbol, p->params[d->param].buffer_name,
                d->stride ? "strides" : "shape", d->dim);
        if (d->c != 1 || d->d != PLAN_NO_REG)
            tx_sb_f(out, " = %lld * %s + ...", (long long)d->c, d->name);
        tx_sb_putc(out, '\n');
    }
    for (uint32_t pc = 0; pc < p->ninstrs; pc++)
        print_instr(p, pc, out);
}
