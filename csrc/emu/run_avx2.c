/* The interpreter for AVX2 and FMA. SPDX-License-Identifier: Apache-2.0 */
#define TX_ISA_RUN run_avx2
#define TX_ISA_NAME tx_isa_avx2
#define TX_ISA_TEXT "avx2"
#include "emu/run_impl.h"
