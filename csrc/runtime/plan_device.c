/* What the host half may ask of the device of the call. SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver.h"
#include "runtime/plan.h"

const plan_device *
tx_plan_device(const char *name)
{
    static const plan_device known[] = {
        {"runtime.device_sm_count", CU_DEVICE_SM_COUNT, 8},
        {"runtime.device_l2_bytes", CU_DEVICE_L2_BYTES, 1 << 22},
        {"runtime.device_block_smem_bytes", CU_DEVICE_BLOCK_SMEM_BYTES, 232448},
    };

    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return &known[i];
    return NULL;
}

bool
tx_plan_device_value(const plan_device *d, int device_type, int device, int *value, tx_call_error *e)
{
    *value = d->emulated;
    return device_type != TX_DEV_CUDA || ((device >= 0 || tx_driver_current_device(&device, e)) &&
                                          tx_driver_attribute(device, d->attribute, value, e));
}
