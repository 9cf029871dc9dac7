/* Every limit of the compiler, by name. Each is an error with a span when passed, never a crash.
 * Owner: base. Knows nothing of compilers beyond these numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_BASE_LIMITS_H
#define TX_BASE_LIMITS_H

enum {
    TX_MAX_DEPTH = 1000,               /* nesting of expressions and of statements */
    TX_MAX_RANK = 16,                  /* dimensions of a buffer */
    TX_MAX_PARAMS = 512,               /* parameters of a function */
    TX_MAX_LANES = 64,                 /* lanes of a vector dtype */
    TX_MAX_INLINE_DEPTH = 200,         /* nested calls of inline functions */
    TX_MAX_CALLS = 10000,              /* calls of device functions in a kernel, expanded (emulator) */
    TX_MAX_THREADS = 1024,             /* threads of a CTA (CUDA programming guide, technical specifications) */
    TX_MAX_STATIC_SMEM = 48 * 1024,    /* bytes of static shared memory */
    TX_MAX_LOCAL = 512 * 1024,         /* bytes of local memory of a thread (same table) */
    TX_MAX_DYN_SMEM = 227 * 1024,      /* bytes of dynamic shared memory, the most of any architecture (same table) */
    TX_MAX_CLUSTER = 16,               /* CTAs of a cluster (8 portable) */
    TX_MAX_KERNEL_PARAM_BYTES = 32764, /* CUDA 12.1 and later, sm_70 and later */
    TX_MAX_NODES = 1 << 26,            /* nodes of one context */
    TX_MAX_EXPR_SIZE = 1 << 16,        /* operations of one expression, written out as a tree */
    TX_MAX_UNROLL = 1 << 16,           /* turns of one T.unroll loop */
    TX_MAX_SOURCE_BYTES = 1 << 26,     /* bytes of one source text */
    TX_MAX_STRING = 1 << 24            /* bytes of one interned string */
};

#define TX_MAX_ELEMENTS (1LL << 50) /* elements of a buffer; its bits, of 64 lanes of 64, are counted in an int64_t */

#endif
