/* Private to cuda/: source that the user injects. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_CUDA_SOURCE_H
#define TX_CUDA_SOURCE_H

#include "cuda/emit.h"

typedef struct em_source {
    const tx_str *text;
    const tx_str *name; /* the function that is called in it */
    tx_span span;       /* of the first call */
} em_source;
typedef TX_VEC(em_source) em_sources;

/* The sources of all device functions, each once, in order of first use; reserves the names that they define. */
bool em_sources_collect(em *e, em_sources *out);
void em_source_headers(em *e, const em_sources *src, em_lines *out); /* #include lines that the sources need */
void em_text(em *e, em_lines *l, const char *text, tx_span span);    /* lines, each ending with a newline */

#endif
