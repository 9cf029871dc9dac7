/* Calls: coordinates, synchronisation, warp exchange, reductions, atomics, injected and extern functions, printf. One row
 * an op; what a CUDA builtin or a piece of the prelude does by itself needs no function here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cuda/emit.h"
#include "cuda/ptx.h"

#include <stdio.h>

typedef struct intrin_row intrin_row;
typedef void (*intrin_fn)(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec);
struct intrin_row {
    intrin_fn fn;
    const char *text; /* C name */
    em_helper needs;
    int arch;
    uint8_t nargs; /* arguments that are written; the others are dropped */
    bool mask;     /* the first one is a member mask, written in hexadecimal */
};
static const intrin_row intrin_rows[TX_OP__COUNT];

static void
intrin_arg(em *e, tx_sb *o, const tx_node *n, bool mask)
{
    int64_t v;

    if (mask && tx_const_i64(n, &v))
        tx_sb_f(o, "0x%X", (unsigned)v);
    else
        em_operand(e, o, n, EM_ARG);
}

static void
intrin_call(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)prec;
    tx_sb_puts(o, r->text);
    tx_sb_putc(o, '(');
    for (uint32_t i = 0; i < n->nargs && i < r->nargs; i++) {
        if (i)
            tx_sb_puts(o, ", ");
        intrin_arg(e, o, n->arg[i], r->mask && i == 0);
    }
    tx_sb_putc(o, ')');
}

/* A call whose C result has another type than the node. */
static void
intrin_cast_call(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    bool p = em_paren(o, EM_UNARY, prec);

    tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
    intrin_call(e, o, n, r, EM_UNARY);
    em_close(o, p);
}

static void
intrin_coord(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    bool p = em_paren(o, EM_UNARY, prec);

    tx_sb_f(o, "(%s)%s.%c", em_elem_type(e, n->dtype), r->text, "xyz"[n->u.i % 3]);
    em_close(o, p);
}

static void
intrin_cluster_coord(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)prec;
    em_use(e, (em_helper)(r->needs + n->u.i % 3));
    tx_sb_f(o, "%s_%c()", r->text, "xyz"[n->u.i % 3]);
}

/* x + bx * (y + by * z) over the block, as short as its shape allows. */
static void
intrin_linear(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    const tx_node *const *block = e->fn->block;
    bool flat = tx_is_const(block[1], 1) && tx_is_const(block[2], 1), p;

    (void)n;
    p = em_paren(o, *r->text ? EM_BAND : flat ? EM_UNARY : EM_ADD, prec);
    tx_sb_puts(o, flat ? "(int)threadIdx.x"
                       : "(int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))");
    tx_sb_puts(o, r->text);
    em_close(o, p);
}

static void
intrin_pointer(em *e, tx_sb *o, const tx_node *p, tx_dtype elem)
{
    if (tx_kind(p->elem) == tx_kind(elem)) {
        em_expr(e, o, p, EM_ARG);
        return;
    }
    tx_sb_putc(o, '(');
    em_pointer_type(e, elem, o);
    tx_sb_putc(o, ')');
    em_expr(e, o, p, EM_UNARY);
}

/* ---- warps --------------------------------------------------------------------------------------------------------------- */

/* The builtins know int, long long, float and double; what is kept in a narrower type comes back as int. */
static void
intrin_shuffle(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    bool narrow = tx_bits(n->dtype) < 32, p;

    if (tx_bits(n->dtype) > 64 || tx_is_handle(n->dtype)) {
        tx_fail(e->c, n->span, TX_E_CUDA_DTYPE, tx_ops[n->op].spelling, tx_dtype_name(e->c, n->dtype));
        return;
    }
    p = narrow && em_paren(o, EM_UNARY, prec);
    if (narrow)
        tx_sb_f(o, "(%s)", em_elem_type(e, n->dtype));
    tx_sb_f(o, "%s(", r->text);
    intrin_arg(e, o, n->arg[0], true);
    tx_sb_puts(o, ", ");
    if (narrow)
        tx_sb_puts(o, "(int)");
    em_expr(e, o, n->arg[1], narrow ? EM_UNARY : EM_ARG);
    tx_sb_puts(o, ", ");
    em_operand(e, o, n->arg[2], EM_ARG);
    tx_sb_puts(o, ", ");
    em_operand(e, o, n->arg[3], EM_ARG);
    tx_sb_putc(o, ')');
    em_close(o, p);
}

static void
intrin_warp_sync(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)prec;
    tx_sb_f(o, "%s(", r->text);
    if (n->nargs)
        intrin_arg(e, o, n->arg[0], true);
    tx_sb_putc(o, ')');
}

/* "a op b" of dtype t as C++ text. */
static void
intrin_reduce_step(em *e, tx_sb *o, tx_dtype t, char op, const char *a, const char *b)
{
    unsigned kind = tx_kind(t);
    const char *s = em_suffix(t), *type = em_elem_type(e, t);
    const char *fn = op == 'n' ? "min" : "max";

    if (kind == TX_KIND_F32 || kind == TX_KIND_F64) {
        if (op == '+')
            tx_sb_f(o, "%s + %s", a, b);
        else
            tx_sb_f(o, "f%s%s(%s, %s)", fn, kind == TX_KIND_F32 ? "f" : "", a, b);
    } else if (kind == TX_KIND_F16 || kind == TX_KIND_BF16) {
        em_use(e, kind == TX_KIND_F16 ? EM_H_F16_ADD : EM_H_BF16_ADD);
        em_use(e, kind == TX_KIND_F16 ? EM_H_F16_TO_F32 : EM_H_BF16_TO_F32);
        em_use(e, kind == TX_KIND_F16 ? EM_H_F32_TO_F16 : EM_H_F32_TO_BF16);
        if (op == '+')
            tx_sb_f(o, "tirx_%s_add(%s, %s)", s, a, b);
        else
            tx_sb_f(o, "tirx_f32_to_%s(f%sf(tirx_%s_to_f32(%s), tirx_%s_to_f32(%s)))", s, fn, s, a, s, b);
    } else if (op == '+') {
        tx_sb_f(o, "(%s)((unsigned long long)%s + (unsigned long long)%s)", type, a, b);
    } else {
        tx_sb_f(o, "(%s)%s(%s, %s)", type, fn, a, b);
    }
}

static char
intrin_reduce_op(em *e, const tx_node *n, const char **name)
{
    const char *op = n->arg[1]->op == TX_OP_STR ? n->arg[1]->u.s->text : "";

    *name = strcmp(op, "sum") == 0 ? "sum" : strcmp(op, "min") == 0 ? "min" : strcmp(op, "max") == 0 ? "max" : NULL;
    if (!*name || (tx_is_float(n->dtype) && tx_bits(n->dtype) < 16) || tx_bits(n->dtype) > 64) {
        tx_fail(e->c, n->span, TX_E_CUDA_DTYPE, tx_ops[n->op].spelling, tx_dtype_name(e->c, n->dtype));
        *name = NULL;
        return 0;
    }
    return **name == 's' ? '+' : (*name)[1] == 'i' ? 'n' : 'x';
}

/* Makes tirx_cuda_warp_<op>_<dtype> and gives its name. */
static const char *
intrin_make_warp_reduce(em *e, tx_dtype t, char op, const char *opname)
{
    const tx_str *name = tx_intern_f(e->c, "tirx_cuda_warp_%s_%s", opname, em_suffix(t));
    const char *type = em_elem_type(e, t);
    tx_sb s = {0};

    if (!name)
        return NULL;
    tx_sb_f(&s, "static __device__ __forceinline__ %s %s(%s v, int width) {\n", type, name->text, type);
    tx_sb_puts(&s, "  for (int m = width >> 1; m > 0; m >>= 1) {\n");
    tx_sb_f(&s, "    %s w = (%s)__shfl_xor_sync(0xFFFFFFFF, %sv, m, 32);\n    v = ", type, type,
            tx_bits(t) < 32 ? "(int)" : "");
    intrin_reduce_step(e, &s, t, op, "v", "w");
    tx_sb_puts(&s, ";\n  }\n  return v;\n}\n");
    em_make_helper(e, name->text, s.failed ? "" : s.text);
    em_done(e, &s);
    return name->text;
}

static void
intrin_warp_reduce(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    const char *opname, *name;
    char op = intrin_reduce_op(e, n, &opname);

    (void)r, (void)prec;
    if (!op || !(name = intrin_make_warp_reduce(e, tx_scalar_of(n->dtype), op, opname)))
        return;
    tx_sb_f(o, "%s(", name);
    em_expr(e, o, n->arg[0], EM_ARG);
    tx_sb_puts(o, ", ");
    em_operand(e, o, n->arg[2], EM_ARG);
    tx_sb_putc(o, ')');
}

/* The value that changes no result of the operation. */
static void
intrin_identity(em *e, tx_sb *o, tx_dtype t, char op)
{
    int64_t lo = 0;
    uint64_t hi = 0;

    if (tx_is_float(t)) {
        em_float(e, o, t, op == '+' ? 0.0 : op == 'n' ? (double)__builtin_inf() : -(double)__builtin_inf(), EM_ARG);
        return;
    }
    tx_int_limits(t, &lo, &hi);
    em_int(e, o, t, op == '+' ? 0 : op == 'n' ? (int64_t)hi : lo, EM_ARG);
}

static void
intrin_cta_reduce(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    tx_dtype t = tx_scalar_of(n->dtype);
    const char *opname, *warp, *type = em_elem_type(e, t);
    char op = intrin_reduce_op(e, n, &opname);
    const tx_str *name;
    tx_sb s = {0};

    (void)r, (void)prec;
    if (!op || !(warp = intrin_make_warp_reduce(e, t, op, opname)))
        return;
    if (!(name = tx_intern_f(e->c, "tirx_cuda_cta_%s_%s", opname, em_suffix(t))))
        return;
    tx_sb_f(&s, "static __device__ __forceinline__ %s %s(%s v, int nwarps, %s* scratch) {\n", type, name->text, type,
            type);
    tx_sb_puts(&s, "  int tid = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));\n");
    tx_sb_f(&s, "  v = %s(v, 32);\n  if ((tid & 31) == 0) scratch[tid >> 5] = v;\n  __syncthreads();\n", warp);
    tx_sb_puts(&s, "  if (tid < 32) {\n    v = tid < nwarps ? scratch[tid] : ");
    intrin_identity(e, &s, t, op);
    tx_sb_f(
        &s,
        ";\n    v = %s(v, 32);\n    if (tid == 0) scratch[0] = v;\n  }\n  __syncthreads();\n  return scratch[0];\n}\n",
        warp);
    em_make_helper(e, name->text, s.failed ? "" : s.text);
    em_done(e, &s);
    tx_sb_f(o, "%s(", name->text);
    em_expr(e, o, n->arg[0], EM_ARG);
    tx_sb_puts(o, ", ");
    em_operand(e, o, n->arg[2], EM_ARG);
    tx_sb_puts(o, ", ");
    intrin_pointer(e, o, n->arg[3], t);
    tx_sb_putc(o, ')');
}

/* ---- memory --------------------------------------------------------------------------------------------------------------- */

static void
intrin_address_of(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)r;
    em_address(e, o, n->arg[0], prec);
}

static void
intrin_ptx(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)r;
    (void)prec;
    em_ptx(e, o, n);
}

static void
intrin_fence_operand(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)r;
    (void)prec;
    em_fence_operand(e, o, n);
}

static void
intrin_ldg(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    bool p = tx_bits(n->dtype) < 32 && em_paren(o, EM_UNARY, prec);

    (void)r;
    if (tx_is_bool(n->dtype)) { /* not one of its types */
        tx_sb_puts(o, "(bool)__ldg((const unsigned char*)");
        em_expr(e, o, n->arg[0], EM_UNARY);
    } else {
        tx_sb_puts(o, "__ldg(");
        intrin_pointer(e, o, n->arg[0], tx_scalar_of(n->dtype));
    }
    tx_sb_putc(o, ')');
    em_close(o, p);
}

static void
intrin_atomic(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    // clang-format off
    static const struct {
        uint8_t kind;
        const char *add, *cas;
        em_helper add_needs, cas_needs;
    } rows[] = {
        {TX_KIND_I32,  "atomicAdd", "atomicCAS", EM_H_NONE, EM_H_NONE},
        {TX_KIND_U32,  "atomicAdd", "atomicCAS", EM_H_NONE, EM_H_NONE},
        {TX_KIND_U64,  "atomicAdd", "atomicCAS", EM_H_NONE, EM_H_NONE},
        {TX_KIND_I64,  "tirx_cuda_atomic_add_i64", "tirx_cuda_atomic_cas_i64", EM_H_ATOMIC_ADD_I64, EM_H_ATOMIC_CAS_I64},
        {TX_KIND_F32,  "atomicAdd", "tirx_cuda_atomic_cas_f32", EM_H_NONE, EM_H_ATOMIC_CAS_F32},
        {TX_KIND_F64,  "atomicAdd", "tirx_cuda_atomic_cas_f64", EM_H_NONE, EM_H_ATOMIC_CAS_F64},
        {TX_KIND_F16,  "tirx_cuda_atomic_add_f16", "tirx_cuda_atomic_cas_16", EM_H_ATOMIC_ADD_F16, EM_H_ATOMIC_CAS_16},
        {TX_KIND_BF16, "tirx_cuda_atomic_add_bf16", "tirx_cuda_atomic_cas_16", EM_H_ATOMIC_ADD_BF16, EM_H_ATOMIC_CAS_16},
        {TX_KIND_U16,  NULL, "tirx_cuda_atomic_cas_16", EM_H_NONE, EM_H_ATOMIC_CAS_16},
        {TX_KIND_I16,  NULL, "tirx_cuda_atomic_cas_16", EM_H_NONE, EM_H_ATOMIC_CAS_16},
    };
    // clang-format on
    bool add = n->op == TX_OP_ATOMIC_ADD;

    (void)r;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = add ? rows[i].add : rows[i].cas;
        bool p;

        if (rows[i].kind != tx_kind(n->dtype) || !name)
            continue;
        em_use(e, add ? rows[i].add_needs : rows[i].cas_needs);
        p = rows[i].kind == TX_KIND_I16 && em_paren(o, EM_UNARY, prec);
        tx_sb_f(o, "%s%s(", rows[i].kind == TX_KIND_I16 ? "(short)" : "", name);
        intrin_pointer(e, o, n->arg[0], tx_scalar_of(n->dtype));
        for (uint32_t a = 1; a < n->nargs; a++) {
            tx_sb_puts(o, ", ");
            em_expr(e, o, n->arg[a], EM_ARG);
        }
        tx_sb_putc(o, ')');
        em_close(o, p);
        return;
    }
    tx_fail(e->c, n->span, TX_E_CUDA_DTYPE, tx_ops[n->op].spelling, tx_dtype_name(e->c, n->dtype));
}

static void
intrin_shared_address(em *e, tx_sb *o, const tx_node *p)
{
    if (!tx_is_handle(p->dtype)) {
        em_expr(e, o, p, EM_ARG);
        return;
    }
    tx_sb_puts(o, "(unsigned)__cvta_generic_to_shared(");
    em_expr(e, o, p, EM_ARG);
    tx_sb_putc(o, ')');
}

static void
intrin_mbar_wait(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)prec;
    tx_sb_f(o, "%s(", r->text);
    intrin_shared_address(e, o, n->arg[0]);
    tx_sb_puts(o, ", ");
    em_operand(e, o, n->arg[1], EM_ARG);
    tx_sb_putc(o, ')');
}

/* ---- functions ------------------------------------------------------------------------------------------------------------- */

/* With toolkit headers the 16-bit floats of injected source are its own types: they cross by their bits. */
static const char *
intrin_to_header_type(const em *e, tx_dtype t, bool result)
{
    if (!e->headers || tx_lanes(t) != 1)
        return NULL;
    if (tx_kind(t) == TX_KIND_F16)
        return result ? "__half_as_ushort(" : "__ushort_as_half(";
    if (tx_kind(t) == TX_KIND_BF16)
        return result ? "__bfloat16_as_ushort(" : "__ushort_as_bfloat16(";
    return NULL;
}

static void
intrin_pass(em *e, tx_sb *o, const tx_node *a)
{
    const char *open = intrin_to_header_type(e, a->dtype, false);
    unsigned elem = tx_kind(a->elem);

    if (open) {
        tx_sb_puts(o, open);
        em_expr(e, o, a, EM_ARG);
        tx_sb_putc(o, ')');
    } else if (tx_is_handle(a->dtype) && e->headers && (elem == TX_KIND_F16 || elem == TX_KIND_BF16)) {
        tx_sb_puts(o, elem == TX_KIND_F16 ? "(__half*)" : "(__nv_bfloat16*)");
        em_expr(e, o, a, EM_UNARY);
    } else if (tx_lanes(a->dtype) > 1) {
        tx_sb_puts(o, em_vector(e, a));
    } else {
        em_expr(e, o, a, EM_ARG);
    }
}

static void
intrin_function(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    const char *open = intrin_to_header_type(e, n->dtype, true);

    (void)r, (void)prec;
    if (open)
        tx_sb_puts(o, open);
    tx_sb_f(o, "%s(", n->u.call->name->text);
    for (uint32_t i = 0; i < n->nargs; i++) {
        if (i)
            tx_sb_puts(o, ", ");
        intrin_pass(e, o, n->arg[i]);
    }
    tx_sb_puts(o, open ? "))" : ")");
}

/* A function of the module: its types are ours. */
static void
intrin_member(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)r, (void)prec;
    tx_sb_f(o, "%s(", em_function_name(e, n->u.call->func));
    for (uint32_t i = 0; i < n->nargs; i++) {
        if (i)
            tx_sb_puts(o, ", ");
        em_expr(e, o, n->arg[i], EM_ARG);
    }
    tx_sb_putc(o, ')');
}

/* Variadic arguments: 16-bit floats and narrower as float, bools as int. */
static void
intrin_printf(em *e, tx_sb *o, const tx_node *n, const intrin_row *r, em_prec prec)
{
    (void)prec;
    tx_sb_f(o, "%s(", r->text);
    for (uint32_t i = 0; i < n->nargs; i++) {
        tx_dtype t = n->arg[i]->dtype;

        if (i)
            tx_sb_puts(o, ", ");
        if (i && tx_is_float(t) && tx_kind(t) != TX_KIND_F64)
            em_expr_as(e, o, TX_F32, n->arg[i], EM_ARG);
        else if (i && tx_is_bool(t))
            em_expr_as(e, o, TX_I32, n->arg[i], EM_ARG);
        else
            em_expr(e, o, n->arg[i], EM_ARG);
    }
    tx_sb_putc(o, ')');
}

// clang-format off
static const intrin_row intrin_rows[TX_OP__COUNT] = {
    [TX_OP_THREAD_IDX]     = {intrin_coord, "threadIdx", EM_H_NONE, 0, 0, false},
    [TX_OP_BLOCK_IDX]      = {intrin_coord, "blockIdx", EM_H_NONE, 0, 0, false},
    [TX_OP_BLOCK_DIM]      = {intrin_coord, "blockDim", EM_H_NONE, 0, 0, false},
    [TX_OP_GRID_DIM]       = {intrin_coord, "gridDim", EM_H_NONE, 0, 0, false},
    [TX_OP_CLUSTER_ID]     = {intrin_cluster_coord, "tirx_cluster_id", EM_H_CLUSTER_ID_X, 90, 0, false},
    [TX_OP_CLUSTER_CTA]    = {intrin_cluster_coord, "tirx_cluster_cta_id", EM_H_CLUSTER_CTA_X, 90, 0, false},
    [TX_OP_CLUSTER_DIM]    = {intrin_cluster_coord, "tirx_cluster_dim", EM_H_CLUSTER_DIM_X, 90, 0, false},
    [TX_OP_CLUSTER_RANK]   = {intrin_call, "tirx_cluster_ctarank", EM_H_CLUSTER_RANK, 90, 0, false},
    [TX_OP_LINEAR_TID]     = {intrin_linear, "", EM_H_NONE, 0, 0, false},
    [TX_OP_THREAD_RANK]    = {intrin_linear, "", EM_H_NONE, 0, 0, false},
    [TX_OP_LANE_ID]        = {intrin_linear, " & 31", EM_H_NONE, 0, 0, false},
    [TX_OP_CTA_SYNC]       = {intrin_call, "__syncthreads", EM_H_NONE, 0, 0, false},
    [TX_OP_WARP_SYNC]      = {intrin_warp_sync, "__syncwarp", EM_H_NONE, 0, 1, true},
    [TX_OP_WARPGROUP_SYNC] = {intrin_call, "tirx_cuda_warpgroup_sync", EM_H_WARPGROUP_SYNC, 0, 1, false},
    [TX_OP_CLUSTER_SYNC]   = {intrin_call, "tirx_cuda_cluster_sync", EM_H_CLUSTER_SYNC, 90, 0, false},
    [TX_OP_GRID_SYNC]      = {intrin_call, "tirx_cuda_grid_sync", EM_H_GRID_SYNC, 70, 0, false},
    [TX_OP_SYNC_AND]       = {intrin_call, "__syncthreads_and", EM_H_NONE, 0, 1, false},
    [TX_OP_SYNC_OR]        = {intrin_call, "__syncthreads_or", EM_H_NONE, 0, 1, false},
    [TX_OP_THREAD_FENCE]   = {intrin_call, "__threadfence", EM_H_NONE, 0, 0, false},
    [TX_OP_SHFL]           = {intrin_shuffle, "__shfl_sync", EM_H_NONE, 0, 4, true},
    [TX_OP_SHFL_UP]        = {intrin_shuffle, "__shfl_up_sync", EM_H_NONE, 0, 4, true},
    [TX_OP_SHFL_DOWN]      = {intrin_shuffle, "__shfl_down_sync", EM_H_NONE, 0, 4, true},
    [TX_OP_SHFL_XOR]       = {intrin_shuffle, "__shfl_xor_sync", EM_H_NONE, 0, 4, true},
    [TX_OP_ACTIVEMASK]     = {intrin_call, "__activemask", EM_H_NONE, 0, 0, false},
    [TX_OP_BALLOT]         = {intrin_call, "__ballot_sync", EM_H_NONE, 0, 2, true},
    [TX_OP_ANY_SYNC]       = {intrin_call, "__any_sync", EM_H_NONE, 0, 2, true},
    [TX_OP_REDUX_ADD]      = {intrin_call, "__reduce_add_sync", EM_H_NONE, 80, 2, true},
    [TX_OP_REDUX_MIN]      = {intrin_call, "__reduce_min_sync", EM_H_NONE, 80, 2, true},
    [TX_OP_ELECT_SYNC]     = {intrin_call, "tirx_cuda_elect_sync", EM_H_ELECT_SYNC, 90, 0, false},
    [TX_OP_WARP_REDUCE]    = {intrin_warp_reduce, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_CTA_REDUCE]     = {intrin_cta_reduce, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_ATOMIC_ADD]     = {intrin_atomic, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_ATOMIC_CAS]     = {intrin_atomic, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_LDG]            = {intrin_ldg, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_NANO_SLEEP]     = {intrin_call, "__nanosleep", EM_H_NONE, 0, 1, false},
    [TX_OP_CLOCK64]        = {intrin_cast_call, "clock64", EM_H_NONE, 0, 0, false},
    [TX_OP_MBAR_WAIT]      = {intrin_mbar_wait, "tirx_cuda_mbarrier_wait", EM_H_MBAR_WAIT, 90, 2, false},
    [TX_OP_FENCE_OPERAND]  = {intrin_fence_operand, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_TRAP_UNLESS]    = {intrin_call, "tirx_cuda_trap_unless", EM_H_TRAP_UNLESS, 0, 1, false},
    [TX_OP_PRINTF]         = {intrin_printf, "printf", EM_H_NONE, 0, 0, false},
    [TX_OP_FUNC_CALL]      = {intrin_function, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_CALL_EXTERN]    = {intrin_function, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_CALL_PURE_EXTERN] = {intrin_function, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_CALL_FUNC]      = {intrin_member, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_FFS]            = {intrin_cast_call, "__ffs", EM_H_NONE, 0, 1, false},
    [TX_OP_CVTA_SHARED]    = {intrin_cast_call, "__cvta_generic_to_shared", EM_H_NONE, 0, 1, false},
    [TX_OP_PTX]            = {intrin_ptx, NULL, EM_H_NONE, 0, 0, false},
    [TX_OP_ADDRESS_OF]     = {intrin_address_of, NULL, EM_H_NONE, 0, 0, false},
};
// clang-format on

int
em_intrin_arch(unsigned op)
{
    return intrin_rows[op].arch;
}

bool
em_intrin(em *e, tx_sb *o, const tx_node *n, em_prec prec)
{
    const intrin_row *r = &intrin_rows[n->op];

    if (!r->fn)
        return false;
    if (r->arch && !em_needs_arch(e, r->arch, tx_ops[n->op].spelling))
        return true;
    if (r->fn != intrin_cluster_coord)
        em_use(e, r->needs);
    r->fn(e, o, n, r, prec);
    return true;
}
