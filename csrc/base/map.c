/* The hash map: open addressing with linear probing, at most three quarters full. Keys are never removed; key 0 marks a
 * free slot. SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

void
tx_map_free(tx_map *m)
{
    tx_free(m->slot);
    memset(m, 0, sizeof *m);
}

static uint64_t
map_hash(uint64_t key)
{
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return key ^ key >> 29;
}

static struct tx_map_slot *
map_find(struct tx_map_slot *slot, uint32_t cap, uint64_t key)
{
    uint32_t i = (uint32_t)map_hash(key) & (cap - 1);

    while (slot[i].key && slot[i].key != key)
        i = (i + 1) & (cap - 1);
    return slot + i;
}

static bool
map_grow(tx_map *m)
{
    uint32_t cap = m->cap ? m->cap * 2 : 16;
    struct tx_map_slot *slot = cap > m->cap ? tx_calloc(cap, sizeof *slot) : NULL;

    if (!slot)
        return false;
    for (uint32_t i = 0; i < m->cap; i++)
        if (m->slot[i].key)
            *map_find(slot, cap, m->slot[i].key) = m->slot[i];
    tx_free(m->slot);
    m->slot = slot;
    m->cap = cap;
    return true;
}

bool
tx_map_put(tx_map *m, uint64_t key, uint64_t value)
{
    struct tx_map_slot *s;

    TX_ASSERT(key != 0);
    if (m->n + 1 > m->cap / 4 * 3 && !map_grow(m))
        return false;
    s = map_find(m->slot, m->cap, key);
    m->n += s->key == 0;
    s->key = key;
    s->value = value;
    return true;
}

bool
tx_map_get(const tx_map *m, uint64_t key, uint64_t *value)
{
    struct tx_map_slot *s;

    if (!m->n || !(s = map_find(m->slot, m->cap, key))->key)
        return false;
    *value = s->value;
    return true;
}

/* FNV-1a over eight bytes at a time; only ever compared within one process. */
uint64_t
tx_hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *b = p;
    uint64_t h = seed ^ 0xcbf29ce484222325u, w;

    for (; n >= 8; n -= 8, b += 8) {
        memcpy(&w, b, 8);
        h = (h ^ w) * 0x100000001b3u;
        h ^= h >> 31;
    }
    for (; n; n--, b++)
        h = (h ^ *b) * 0x100000001b3u;
    return h ^ h >> 32;
}
