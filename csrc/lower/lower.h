/* The pass pipeline: from a parsed module to a host function and device kernels. Owner: lower. Knows arith/, layout/, ir/.
 * Must not know the back ends or Python. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_LOWER_H
#define TX_LOWER_H

#include "arith/arith.h"
#include "ir/ir.h"

typedef struct tx_target {
    bool emulator; /* "cpu" */
    int arch;      /* 80, 90, 100, ...; for the emulator 0 */
    char suffix;   /* 'a', 'f' or 0 */
    /* options of the compilation, part of every cache key */
    bool contract; /* a*b + c becomes T.fma (default true) */
    bool fast_math, lineinfo, disable_assert;
    void (*dump)(const char *pass, const tx_module *m); /* takes what TIRX_DUMP asks for; or NULL */
} tx_target;
bool tx_target_parse(tx_ctx *c, const char *text, tx_target *out); /* "cuda:sm_90a", "cpu"; plain "cuda" has arch 0 */
bool tx_target_name(const tx_target *t, tx_sb *out);
int64_t tx_target_smem(const tx_target *t); /* bytes of shared memory that one CTA can have */

/* A pass takes a module and returns a module (NULL: diagnostics recorded). Running a pass twice changes nothing. */
typedef tx_module *(*tx_pass_fn)(tx_ctx *c, tx_module *m, const tx_target *t);
typedef struct tx_pass {
    const char *name;    /* public name: tirx.transform.<name>() */
    const char *aliases; /* further names, blank-separated */
    tx_pass_fn run;
    bool in_pipeline;
} tx_pass;
extern const tx_pass tx_passes[]; /* ends with name NULL; pipeline order */
const tx_pass *tx_pass_find(const char *name);

/* Questions of the host zone about the kernel launched next, by T.call_packed; without arguments until SplitHostDevice. */
#define TX_ASK_CLUSTERS "runtime.max_active_clusters"
#define TX_ASK_BLOCKS "runtime.max_active_blocks_per_sm"

/* How each symbol of a function follows from its tensor parameters (language.md 4.3): extent == c * symbol + d, where the
 * extent is dimension (or stride) `dim` of parameter `param` and d is over symbols defined before it and scalar
 * parameters. Definitions stand in an order in which they can be evaluated; every other extent is a check at the call. */
typedef struct tx_symbol_def {
    tx_var *symbol;
    uint32_t param;
    int dim;
    bool stride;
    int64_t c;
    const tx_node *d; /* or NULL: 0 */
} tx_symbol_def;
typedef struct tx_symbol_solution {
    uint32_t ndefs;
    const tx_symbol_def *def;
} tx_symbol_solution;
/* false: a symbol stays unknown (recorded). */
bool tx_solve_symbols(tx_ctx *c, const tx_func *f, tx_symbol_solution *out);
/* At the end of parsing: every size that the function uses follows from its parameters. */
bool tx_check_symbols(tx_ctx *c, const tx_func *f);
/* As well: that a device function returns what it says, and holds nothing that only a kernel can. */
bool tx_check_device_func(tx_ctx *c, const tx_func *f);

/* As well, warnings: parameters that nothing uses, local variables that are set and never read (unused.c). */
void tx_warn_unused(tx_ctx *c, const tx_func *f);

/* All passes of the pipeline, in order, after importing m into c (unless it is there). TIRX_DUMP=name,... (or all) hands
 * the module after the named passes to t->dump. Debug builds verify after each pass.
 *
 * What comes out, and all that the back ends rely on:
 * - host functions (TX_FUNC_HOST) whose statements are BIND, IF, FOR, WHILE, BREAK, CONTINUE, RETURN, ASSERT, MATCH,
 *   EVAL(CALL_PACKED ...), LAUNCH, and ALLOC, STORE and LOAD of variables (local, one element); tensors are parameters with
 *   a buffer; symbols are still free variables listed in f->symbols. CEILDIV may remain. Calls of host functions are gone.
 * - device functions (TX_FUNC_DEVICE): as kernels below, but for params, which are the user's and then the sizes of shapes;
 *   u.call->func of every CALL_FUNC is the member that it calls, and its arguments are those of func->params.
 * - kernels (TX_FUNC_KERNEL) named <f>_kernel, <f>_kernel_1, ...: params are scalars and data pointers (param.buffer holds
 *   the declared shape), in the user's order, then symbols, then TX_PARAM_SHAPE_ONLY ones. Every LOAD/STORE is flat
 *   (TX_BUF_FLAT: first index in elements, offset included). No SCOPE_ID, DEVICE, TILE, MATCH, CEILDIV, WEAK literals;
 *   loops are SERIAL (unroll says the pragma) or PARALLEL, start/stop/step explicit and without loads; coordinates are
 *   THREAD_IDX, BLOCK_IDX, BLOCK_DIM, GRID_DIM, CLUSTER_* and BINDs over them; contraction is done.
 * - k->launch, k->block, k->dyn_smem for the launch bounds; LAUNCH's children give the launch shape over host values: a
 *   missing grid or block extent is 1, a missing cluster is none. LAUNCH's kernel arguments stand in the order of k->params.
 *
 * Details:
 * - An access names its memory by buf->data; views share that variable, may have another dtype, and several flat records
 *   may share it. DECL of a buffer whose data variable is that of its argument's buffer declares nothing; any other DECL
 *   defines buf->data as a pointer to what its argument points to.
 * - The indices after the first (into buf->origin) matter only without TX_NF_INBOUNDS. A variable of a shape that is no
 *   parameter of the kernel is needed by no check.
 * - A vector access whose element index is RAMP(base, 1, lanes) and whose size is 1, 2, 4, 8 or a multiple of 16 bytes is
 *   proved aligned to its size, at most 16, given the alignment of the data, which is raised where it must be: in the
 *   ALLOC's buffer, or in the kernel's and the host's param.buffer, where the plan checks it. The same holds for elements
 *   that are vectors. Origin indices are vectors or scalars. Any other vector index (a strided ramp, T.make_vector)
 *   promises nothing: its lanes move one by one. Vector values also come from element-wise ops on them; scalars are spread
 *   with BROADCAST.
 * - warp_id_in_cta is a BIND of SHFL at the start of the kernel, only where a warp id is used.
 * - A step that is no constant has a sign that bounds prove; loops count as Python's range does.
 * - RETURN has no value in kernels. ATTRs that stay mean nothing: emit their body, or nothing when it is NULL. */
tx_module *tx_lower(tx_ctx *c, const tx_module *m, const tx_target *t);

#endif
