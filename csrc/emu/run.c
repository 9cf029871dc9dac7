/* The interpreter for any processor, and the choice among its variants. SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#define TX_ISA_RUN run_base
#define TX_ISA_NAME tx_isa_base
#define TX_ISA_TEXT "base"
#include "emu/run_impl.h"

/* TIRX_EMU_ISA=base, avx2 or avx512 asks for less than the processor can do. */
static bool
allowed(const char *name)
{
    static const char *const order[] = {"base", "avx2", "avx512"};
    const char *asked = getenv("TIRX_EMU_ISA");
    for (int i = 0; asked && i < 3; i++) {
        if (strcmp(order[i], name) == 0)
            return true;
        if (strcmp(order[i], asked) == 0)
            return false;
    }
    return true;
}

const tx_isa *
tx_isa_pick(void)
{
#if defined(__x86_64__) && defined(__GNUC__) && !defined(TX_AMALGAM)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && allowed("avx512"))
        return &tx_isa_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        allowed("avx2")) /* none without F16C has both */
        return &tx_isa_avx2;
#endif
    return &tx_isa_base;
}
