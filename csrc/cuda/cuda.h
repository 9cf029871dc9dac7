/* CUDA C++ text of lowered kernels. Owner: cuda. Knows lower/ and below; must not know emu/, the driver or Python.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_CUDA_H
#define TX_CUDA_H

#include "lower/lower.h"

/* For each emitted line (from 1) the span of the statement it came from, 0 for prelude lines: NVRTC's messages are mapped
 * back through it. */
typedef struct tx_line_map {
    uint32_t n, cap;
    tx_span *span; /* heap */
} tx_line_map;

void tx_line_map_free(tx_line_map *m);

/* Text of all kernels of a lowered module. Deterministic. false: diagnostics recorded in c. */
bool tx_cuda_emit(tx_ctx *c, const tx_module *lowered, const tx_target *t, tx_sb *out, tx_line_map *map);
/* Least architecture that the module's instructions need, at least 50; *suffix 'a' when one is arch-specific. */
int tx_cuda_floor(const tx_module *lowered, char *suffix);
/* Toolkit headers and NVRTC options that the text needs beyond the standard ones. */
typedef struct tx_cuda_needs {
    bool toolkit_headers; /* injected source includes one */
    bool int128;
    bool injected; /* there is injected source: options that leave language features out do not hold */
} tx_cuda_needs;
tx_cuda_needs tx_cuda_needs_of(const tx_module *lowered);

#endif
