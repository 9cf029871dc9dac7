/* MakePackedAPI: what a call checks, written out as IR for reading. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

tx_func *
tx_packed_api_func(tx_ctx *c, tx_func *f, const tx_target *t)
{
    (void)c;
    (void)t;
    return f;
}
