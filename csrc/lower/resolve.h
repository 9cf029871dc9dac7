/* Private to lower/: one device region while its scope ids are resolved. resolve.c makes the coordinates, launch.c closes
 * the extents and fills the launch shape. Owner: lower. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_LOWER_RESOLVE_H
#define TX_LOWER_RESOLVE_H

#include "lower/passes.h"

typedef struct tx_region {
    tx_ctx *c;
    tx_func *f;
    tx_facts *facts;
    const tx_node *device;
    const tx_node *args[TX_L__COUNT]; /* of the resolved DEVICE */
    TX_VEC(const tx_node *) ids;      /* SCOPE_ID statements in program order */
    TX_VEC(const tx_node *) threads;  /* ATTR statements of T.launch_thread: the key is the tag, the value the extent */
    TX_VEC(const tx_node *) binds;    /* coordinates, to stand at the start of the region */
    tx_map used;                      /* variables that the body reads */
    tx_map bound;                     /* variables that the body binds: to a value (BIND) or to their FOR */
    const tx_node *const *views;      /* declarations of the host zone, to stand at the start of the region */
    uint32_t nviews;
    bool later;       /* another region of the function came before */
    bool needs_warps; /* warp-granular intrinsics or ids */
    tx_var *warp;     /* warp_id_in_cta, once wanted */
} tx_region;

/* The launch field that T.launch_thread's tag ("threadIdx.x") gives the extent of; -1: no tag. */
int tx_thread_tag(const char *key);

/* launch.c: checks the scope ids (language.md 10.1), closes their extents and completes g->args from them and from the
 * launch configuration. */
bool tx_region_launch(tx_region *g);

#endif
