/* The interpreter that tells each instruction to those who watch the run. SPDX-License-Identifier: Apache-2.0 */
#include "emu/watch.h"

#define TX_ISA_WATCHES
#define TX_ISA_RUN run_watch
#define TX_ISA_NAME tx_isa_watch
#define TX_ISA_TEXT "watch"
#include "emu/run_impl.h"
