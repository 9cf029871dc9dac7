/* Tensor maps as the running kernel sees them: from a pointer to the map, and from the addresses in a map to the memories of
 * the run. SPDX-License-Identifier: Apache-2.0 */
#include "emu/vm.h"

bool
tx_vm_tensormap(const tx_vm *vm, uint64_t pointer, tx_tensormap *t, const char **why)
{
    uint32_t mem;
    int64_t off;
    uint8_t bytes[TX_TM_BYTES];

    *why = "the pointer leads to no tensor map";
    if (!tx_ptr_split(pointer, vm->p->nmems, &mem, &off) || vm->p->mems[mem].scope == TX_LOCAL || !vm->mem[mem].base)
        return false;
    *why = "the tensor map lies outside the memory that the pointer leads to";
    if (off < -vm->mem[mem].before || off > vm->mem[mem].nbytes - TX_TM_BYTES)
        return false;
    memcpy(bytes, vm->mem[mem].base + off, sizeof bytes);
    *why = "the 128 bytes that the pointer leads to are no tensor map";
    return tx_tensormap_decode(bytes, t);
}

bool
tx_vm_global_at(const tx_vm *vm, uint64_t address, uint32_t *mem, int64_t *off)
{
    for (int target = 0; target <= 1; target++) {
        for (uint32_t i = 0; i < vm->p->nmems; i++) {
            const tx_mem *m = &vm->mem[i];
            int64_t at = (int64_t)(address - (uint64_t)(uintptr_t)m->base);
            if (vm->p->mems[i].scope != TX_GLOBAL || vm->p->mems[i].target != (target == 1) || !m->base)
                continue;
            if (at >= -m->before && at < m->nbytes) {
                *mem = i;
                *off = at;
                return true;
            }
        }
    }
    return false;
}
