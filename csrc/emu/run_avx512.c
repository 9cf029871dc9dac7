/* The interpreter for AVX-512. SPDX-License-Identifier: Apache-2.0 */
#define TX_ISA_RUN run_avx512
#define TX_ISA_NAME tx_isa_avx512
#define TX_ISA_TEXT "avx512"
#include "emu/run_impl.h"
