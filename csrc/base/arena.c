/* Memory of the core: the plain heap behind one fault counter, the arena of a context, and the growth of its vectors.
 * Always true: what the arena hands out is zeroed; under AddressSanitizer whatever it has not handed out, or has taken
 * back, is poisoned. SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"

#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define TX_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TX_ASAN 1
#endif
#endif
#ifdef TX_ASAN
void __asan_poison_memory_region(const volatile void *p, size_t n);
void __asan_unpoison_memory_region(const volatile void *p, size_t n);
#define arena_poison(p, n) __asan_poison_memory_region((p), (n))
#define arena_unpoison(p, n) __asan_unpoison_memory_region((p), (n))
enum { ARENA_RED_ZONE = 16 }; /* keeps neighbours apart, so that an overrun of one is seen */
#else
#define arena_poison(p, n) ((void)(p), (void)(n))
#define arena_unpoison(p, n) ((void)(p), (void)(n))
enum { ARENA_RED_ZONE = 0 };
#endif

enum { ARENA_FIRST = 16 * 1024, ARENA_LARGEST = 1024 * 1024 };

struct tx_chunk {
    struct tx_chunk *prev;
    size_t size; /* bytes behind the header */
};

/* ---- heap with a fault counter --------------------------------------------------------------------------------- */

static _Thread_local long alloc_fail_at, alloc_done;

void
tx_fail_alloc_at(long n)
{
    alloc_fail_at = n;
    alloc_done = 0;
}

long
tx_alloc_count(void)
{
    return alloc_done;
}

static bool
alloc_must_fail(void)
{
    return ++alloc_done == alloc_fail_at;
}

void *
tx_malloc(size_t nbytes)
{
    return alloc_must_fail() ? NULL : malloc(nbytes ? nbytes : 1);
}

void *
tx_calloc(size_t n, size_t size)
{
    size_t nbytes;

    if (__builtin_mul_overflow(n, size, &nbytes) || alloc_must_fail())
        return NULL;
    return calloc(1, nbytes ? nbytes : 1);
}

void *
tx_realloc(void *p, size_t nbytes)
{
    return alloc_must_fail() ? NULL : realloc(p, nbytes ? nbytes : 1);
}

void
tx_free(void *p)
{
    free(p);
}

/* ---- arena ----------------------------------------------------------------------------------------------------- */

void
tx_arena_init(tx_arena *a)
{
    memset(a, 0, sizeof *a);
}

static char *
chunk_base(struct tx_chunk *k)
{
    return (char *)(k + 1);
}

static void
arena_pop_chunk(tx_arena *a)
{
    struct tx_chunk *k = a->head;

    a->head = k->prev;
    a->total -= sizeof *k + k->size;
    arena_unpoison(chunk_base(k), k->size);
    tx_free(k);
}

void
tx_arena_free(tx_arena *a)
{
    while (a->head)
        arena_pop_chunk(a);
    tx_arena_init(a);
}

static bool
arena_push_chunk(tx_arena *a, size_t want)
{
    size_t size = a->head ? a->head->size * 2 : ARENA_FIRST;
    struct tx_chunk *k;

    if (size > ARENA_LARGEST)
        size = ARENA_LARGEST;
    if (size < want)
        size = want;
    if (size > SIZE_MAX - sizeof *k || !(k = tx_malloc(sizeof *k + size)))
        return false;
    k->prev = a->head;
    k->size = size;
    a->head = k;
    a->cur = chunk_base(k);
    a->end = a->cur + size;
    a->total += sizeof *k + size;
    arena_poison(a->cur, size);
    return true;
}

void *
tx_arena_alloc(tx_arena *a, size_t nbytes, size_t align)
{
    size_t pad;
    char *p;

    TX_ASSERT(align && (align & (align - 1)) == 0);
#ifdef TX_DEBUG
    if (alloc_must_fail())
        return NULL;
#endif
    if (nbytes > SIZE_MAX / 2)
        return NULL;
    nbytes += ARENA_RED_ZONE;
    pad = (size_t)(-(uintptr_t)a->cur) & (align - 1);
    if (TX_UNLIKELY(!a->cur || (size_t)(a->end - a->cur) < pad + nbytes)) {
        if (!arena_push_chunk(a, nbytes + align))
            return NULL;
        pad = (size_t)(-(uintptr_t)a->cur) & (align - 1);
    }
    p = a->cur + pad;
    a->cur = p + nbytes;
    arena_unpoison(p, nbytes - ARENA_RED_ZONE);
    return memset(p, 0, nbytes - ARENA_RED_ZONE);
}

tx_mark
tx_arena_mark(const tx_arena *a)
{
    return (tx_mark){a->head, a->cur};
}

void
tx_arena_release(tx_arena *a, tx_mark m)
{
    while (a->head != m.chunk)
        arena_pop_chunk(a);
    a->cur = m.cur;
    a->end = m.chunk ? chunk_base(m.chunk) + m.chunk->size : NULL;
    if (m.chunk)
        arena_poison(a->cur, (size_t)(a->end - a->cur));
}

/* ---- what a context hands out ------------------------------------------------------------------------------------ */

static void *
ctx_alloc_from(tx_ctx *c, tx_arena *a, size_t n, size_t size, size_t align)
{
    size_t nbytes;
    void *p;

    if (!__builtin_mul_overflow(n, size, &nbytes) && (p = tx_arena_alloc(a, nbytes, align)))
        return p;
    return tx_fail(c, c->span, TX_E_NO_MEMORY);
}

void *
tx_ctx_alloc(tx_ctx *c, size_t n, size_t size, size_t align)
{
    return ctx_alloc_from(c, &c->arena, n, size, align);
}

void *
tx_scratch_alloc(tx_ctx *c, size_t n, size_t size, size_t align)
{
    return ctx_alloc_from(c, &c->scratch, n, size, align);
}

bool
tx_vec_grow(tx_ctx *c, void **at, uint32_t *cap, size_t size, uint32_t want)
{
    uint32_t next = *cap ? *cap : 8;
    void *p;

    while (next < want)
        next = next > UINT32_MAX / 2 ? UINT32_MAX : next * 2;
    if (next == *cap)
        next = next > UINT32_MAX / 2 ? UINT32_MAX : next * 2;
    if (!(p = tx_ctx_alloc(c, next, size, _Alignof(max_align_t))))
        return false;
    if (*cap)
        memcpy(p, *at, *cap * size);
    *at = p;
    *cap = next;
    return true;
}
