/* Private to lower/: registers that warpgroups hand to each other. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_LOWER_REGISTERS_H
#define TX_LOWER_REGISTERS_H

#include "lower/passes.h"

/* Launch bounds of a kernel with setmaxnreg; false: a diagnostic says which limit is broken. */
bool tx_register_budget(tx_ctx *c, tx_func *kernel);

#endif
