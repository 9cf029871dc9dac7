/* Private to cuda/: PTX instructions as inline assembly. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_CUDA_PTX_H
#define TX_CUDA_PTX_H

#include "cuda/emit.h"

void em_ptx(em *e, tx_sb *o, const tx_node *n);           /* the call of its helper, which is made on first use */
void em_fence_operand(em *e, tx_sb *o, const tx_node *n); /* registers stay as they are up to here, and from here */

#endif
