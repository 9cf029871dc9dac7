/* The interpreter for any processor, and the choice among its variants. SPDX-License-Identifier: Apache-2.0 */
#define TX_ISA_RUN run_base
#define TX_ISA_NAME tx_isa_base
#define TX_ISA_TEXT "base"
#include "emu/run_impl.h"

const tx_isa *
tx_isa_pick(void)
{
#if defined(__x86_64__) && defined(__GNUC__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        return &tx_isa_avx512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &tx_isa_avx2;
#endif
    return &tx_isa_base;
}
