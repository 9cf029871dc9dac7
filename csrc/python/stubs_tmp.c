/* Weak stand-ins for parts that are not in the tree yet, so that the module can be imported. Goes away with the last of
 * them. SPDX-License-Identifier: Apache-2.0 */
#include "cuda/cuda.h"
#include "emu/emu.h"

#define WEAK __attribute__((weak))

WEAK tx_facts *tx_facts_new(tx_ctx *c) { return tx_fail(c, 0, TX_E_INTERNAL, "arith is missing"); }
WEAK void tx_facts_free(tx_facts *f) { (void)f; }
WEAK uint32_t tx_facts_push(tx_facts *f) { (void)f; return 0; }
WEAK void tx_facts_pop(tx_facts *f, uint32_t mark) { (void)f; (void)mark; }
WEAK bool tx_facts_range_i64(tx_facts *f, const tx_var *v, int64_t lo, int64_t hi) { (void)f; (void)v; (void)lo; (void)hi; return true; }
WEAK bool tx_facts_equal(tx_facts *f, const tx_var *v, const tx_node *value) { (void)f; (void)v; (void)value; return true; }
WEAK bool tx_facts_multiple(tx_facts *f, const tx_var *v, int64_t m, int64_t r) { (void)f; (void)v; (void)m; (void)r; return true; }
WEAK bool tx_facts_assume(tx_facts *f, const tx_node *cond) { (void)f; (void)cond; return true; }
WEAK bool tx_facts_coord(tx_facts *f, unsigned op, int axis, int64_t lo, int64_t hi) { (void)f; (void)op; (void)axis; (void)lo; (void)hi; return true; }
WEAK tx_bounds tx_bounds_of(tx_facts *f, const tx_node *e) { (void)f; (void)e; return (tx_bounds){INT64_MIN, INT64_MAX}; }
WEAK int tx_prove(tx_facts *f, const tx_node *cond) { (void)f; (void)cond; return -1; }
WEAK bool tx_prove_in_range(tx_facts *f, const tx_node *e, const tx_node *extent) { (void)f; (void)e; (void)extent; return false; }
WEAK const tx_node *tx_simplify(tx_facts *f, const tx_node *e) { (void)f; return e; }
WEAK bool tx_cuda_emit(tx_ctx *c, const tx_module *m, const tx_target *t, tx_sb *out, tx_line_map *map) { (void)m; (void)t; (void)out; (void)map; return tx_fail(c, 0, TX_E_INTERNAL, "cuda is missing") != NULL; }
WEAK int tx_cuda_floor(const tx_module *m, char *suffix) { (void)m; *suffix = 0; return 50; }
WEAK tx_cuda_needs tx_cuda_needs_of(const tx_module *m) { (void)m; return (tx_cuda_needs){0}; }
WEAK tx_emu_program *tx_emu_compile(tx_ctx *c, const tx_func *k) { (void)k; return tx_fail(c, 0, TX_E_INTERNAL, "emu is missing"); }
WEAK void tx_emu_free(tx_emu_program *p) { (void)p; }
WEAK void tx_emu_disassemble(const tx_emu_program *p, tx_sb *out) { (void)p; (void)out; }
WEAK void tx_emu_render(const tx_emu_program *p, const tx_emu_report *r, tx_sb *out) { (void)p; (void)r; (void)out; }
WEAK tx_emu_status tx_emu_run(const tx_emu_program *p, const tx_emu_launch *l, const tx_emu_options *o, const tx_emu_host *h, tx_emu_report *r) { (void)p; (void)l; (void)o; (void)h; (void)r; return TX_EMU_NO_MEMORY; }
WEAK bool tx_facts_range(tx_facts *f, const tx_var *v, const tx_node *lo, const tx_node *hi) { (void)f; (void)v; (void)lo; (void)hi; return true; }
WEAK void tx_divisor_of(tx_facts *f, const tx_node *e, int64_t *multiple, int64_t *remainder) { (void)f; (void)e; *multiple = 1; *remainder = 0; }
WEAK bool tx_prove_nonneg(tx_facts *f, const tx_node *e) { (void)f; (void)e; return false; }
