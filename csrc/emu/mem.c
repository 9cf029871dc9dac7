/* Memory: what the fast paths of the interpreter leave over. Accesses that are out of bounds, unusual element types,
 * pointers, atomics, per-lane indices into a thread's arrays, and the reports of all of them. SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "emu/async.h"

int64_t
tx_vreg_int(const tx_frag *f, const tx_vreg *r, uint32_t lane)
{
    bool wide = r->vt == VT_I64 || r->vt == VT_U64;
    tx_slot s = {0};
    if (r->vt == VT_B)
        return tx_reg(f, r->reg)->u32 >> (r->row ? lane : 0) & 1;
    memcpy(&s, f->R + r->reg + (r->row ? lane * (wide ? 8 : 4) : 0), wide ? 8 : 4);
    return wide ? s.i64 : r->vt == VT_U32 ? (int64_t)s.u32 : s.i32;
}

/* ---- one access, taken apart ------------------------------------------------------------------------------------- */

typedef struct op_info { /* of an access by index */
    uint8_t kind;        /* dtype kind whose memory form is meant */
    bool store;
} op_info;

static op_info
info_of(unsigned op)
{
    static const uint8_t loads[] = {TX_KIND_I8,  TX_KIND_U8,  TX_KIND_I16,  TX_KIND_U16,
                                    TX_KIND_U32, TX_KIND_U64, TX_KIND_BOOL, TX_KIND_E2M1FN};
    static const uint8_t stores[] = {TX_KIND_U8, TX_KIND_U16, TX_KIND_U32, TX_KIND_U64, TX_KIND_BOOL, TX_KIND_E2M1FN};
    op_info i = {0, op >= V_ST_8_S};
    i.kind = i.store ? stores[(op - V_ST_8_S) / 3] : loads[(op - V_LD_I8_S) / 3];
    return i;
}

typedef struct place { /* of one lane */
    uint32_t mem;
    int64_t off;
    uint32_t nibble; /* fp4: shift inside the byte */
    tx_cta *peer;    /* whose shared memory; NULL: the own CTA's */
} place;

static bool
through_pointer(const tx_insn *in)
{
    return in->op == V_LDP || in->op == V_STP || in->op == V_ATOM;
}

/* A pointer to another CTA's shared memory. */
static bool
peer_place(const tx_vm *vm, uint64_t pointer, place *p)
{
    uint32_t rank;
    if (!tx_cluster_split(vm, pointer, &rank, &p->off) || !(p->peer = tx_cluster_peer(vm, rank)) || p->off < 0)
        return false;
    p->mem = tx_mem_at(vm, p->peer, (uint32_t)p->off);
    if (p->mem == UINT32_MAX)
        return false;
    p->off -= p->peer->mem[p->mem].base - p->peer->shared;
    return true;
}

/* Where one lane's access goes. false: a pointer that points nowhere. */
static bool
place_of(const tx_vm *vm, const tx_frag *f, const tx_insn *in, unsigned kind, uint32_t lane, place *p)
{
    p->nibble = 0, p->peer = NULL;
    if (through_pointer(in)) {
        uint64_t ptr;
        memcpy(&ptr, f->R + in->a + (in->aux & TX_ACC_ADDR_V ? lane * 8 : 0), 8);
        if (kind == TX_KIND_E2M1FN && in->imm & 1) { /* c says which half of the byte */
            int32_t odd;
            memcpy(&odd, f->R + in->c + (in->aux & TX_ACC_ADDR_V ? lane * 4 : 0), 4);
            p->nibble = odd & 1 ? 4 : 0;
        }
        return tx_ptr_split(ptr, vm->p->nmems, &p->mem, &p->off) || peer_place(vm, ptr, p);
    }
    unsigned form = (in->op - (in->op >= V_ST_8_S ? V_ST_8_S : V_LD_I8_S)) % 3;
    int64_t i;
    int32_t i32;
    if (form == 2 || (form == 0 && in->aux & TX_IDX_64))
        memcpy(&i, f->R + in->a + (form ? lane * 8 : 0), 8);
    else {
        memcpy(&i32, f->R + in->a + (form ? lane * 4 : 0), 4);
        i = i32;
    }
    p->mem = in->c;
    if (kind == TX_KIND_E2M1FN) {
        p->nibble = i & 1 ? 4 : 0;
        p->off = i >> 1;
        return true;
    }
    int64_t size = tx_kinds[kind].bytes;
    if (!tx_mul_i64(i, size, &p->off))
        p->off = INT64_MAX / 2;
    return true;
}

static uint8_t *
mem_address(const tx_vm *vm, const tx_frag *f, const place *p, uint32_t lane)
{
    const tx_memory *m = &vm->p->mems[p->mem];
    if (m->scope == TX_LOCAL)
        return f->warp->local + lane * vm->p->local_bytes + m->offset + p->off;
    return (p->peer ? p->peer->mem : vm->mem)[p->mem].base + p->off;
}

static int64_t
size_of_mem(const tx_vm *vm, uint32_t mem)
{
    return vm->p->mems[mem].scope == TX_LOCAL ? vm->p->mems[mem].nbytes : vm->mem[mem].nbytes;
}

/* Bytes before the address that offsets count from. */
static int64_t
before_mem(const tx_vm *vm, uint32_t mem)
{
    return vm->p->mems[mem].scope == TX_GLOBAL ? vm->mem[mem].before : 0;
}

static uint64_t
read_element(const uint8_t *p, unsigned kind, uint32_t nibble)
{
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (tx_kinds[kind].bytes) {
    case 1:
        if (kind == TX_KIND_E2M1FN)
            return *p >> nibble & 15;
        return kind == TX_KIND_I8 ? (uint64_t)(int64_t)(int8_t)*p : kind == TX_KIND_BOOL ? *p != 0 : *p;
    case 2: memcpy(&h, p, 2); return kind == TX_KIND_I16 ? (uint64_t)(int64_t)(int16_t)h : h;
    case 4: memcpy(&w, p, 4); return w;
    default: memcpy(&d, p, 8); return d;
    }
}

static void
write_element(uint8_t *p, unsigned kind, uint32_t nibble, uint64_t v)
{
    uint16_t h = (uint16_t)v;
    uint32_t w = (uint32_t)v;
    switch (tx_kinds[kind].bytes) {
    case 1:
        if (kind == TX_KIND_E2M1FN)
            *p = (uint8_t)((*p & ~(15u << nibble)) | (v & 15) << nibble);
        else
            *p = (uint8_t)v;
        return;
    case 2: memcpy(p, &h, 2); return;
    case 4: memcpy(p, &w, 4); return;
    default: memcpy(p, &v, 8); return;
    }
}

bool
tx_mem_place(const tx_vm *vm, const tx_frag *f, const tx_insn *in, uint32_t lane, uint32_t *mem, int64_t *off,
             uint32_t *size)
{
    unsigned kind = through_pointer(in) ? in->aux & TX_ACC_KIND : info_of(in->op).kind;
    place p;
    if (!place_of(vm, f, in, kind, lane, &p) || p.peer)
        return false;
    *mem = p.mem, *off = p.off, *size = tx_kinds[kind].bytes ? tx_kinds[kind].bytes : 1;
    return true;
}

/* A lane of a register: rows of 4 or 8 bytes, or a bit of a mask. */
static uint64_t
get_lane(const tx_frag *f, uint32_t reg, bool row, unsigned kind, uint32_t lane)
{
    uint32_t w;
    uint64_t d;
    if (kind == TX_KIND_BOOL)
        return tx_reg(f, reg)->u32 >> lane & 1;
    if (tx_kinds[kind].bytes == 8) {
        memcpy(&d, f->R + reg + (row ? lane * 8 : 0), 8);
        return d;
    }
    memcpy(&w, f->R + reg + (row ? lane * 4 : 0), 4);
    return w;
}

static void
put_lane(tx_frag *f, uint32_t reg, bool row, unsigned kind, uint32_t lane, uint64_t v)
{
    uint32_t w = (uint32_t)v;
    if (kind == TX_KIND_BOOL) {
        tx_slot *s = tx_reg(f, reg);
        if (row)
            s->u32 = (s->u32 & ~(1u << lane)) | (v ? 1u << lane : 0);
        else
            s->u32 = v ? TX_FULL : 0;
    } else if (tx_kinds[kind].bytes == 8)
        memcpy(f->R + reg + (row ? lane * 8 : 0), &v, 8);
    else
        memcpy(f->R + reg + (row ? lane * 4 : 0), &w, 4);
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static const char *
access_name(const tx_insn *in)
{
    return in->op == V_ATOM ? "atomic" : in->op == V_STP || (in->op != V_LDP && in->op >= V_ST_8_S) ? "store" : "load";
}

static void
name_memory(const tx_vm *vm, tx_emu_report *r, uint32_t mem)
{
    const char *name = vm->p->mems[mem].name;
    if (!r->buffer[0] && name)
        strncpy(r->buffer, name, sizeof r->buffer - 1);
}

static int
report_nowhere(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane)
{
    uint64_t ptr;
    uint32_t rank;
    int64_t off;
    memcpy(&ptr, f->R + in->a + (in->aux & TX_ACC_ADDR_V ? lane * 8 : 0), 8);
    if (tx_cluster_split(vm, ptr, &rank, &off) && !tx_cluster_peer(vm, rank))
        return tx_cluster_missing(vm, f, lane, in->site, rank);
    tx_emu_report *r = tx_report_begin(vm, "out_of_bounds", in->site);
    tx_report_agent(vm, r, f, lane, in->site, access_name(in));
    tx_report_text(r, "%s through a pointer that points nowhere", access_name(in));
    return tx_report_end(vm, r);
}

static int
report_outside(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane, const place *p, unsigned size)
{
    tx_emu_report *r = tx_report_begin(vm, "out_of_bounds", in->site);
    int64_t n = size_of_mem(vm, p->mem) + before_mem(vm, p->mem);
    const char *memory = vm->p->mems[p->mem].name;
    name_memory(vm, r, p->mem);
    tx_report_agent(vm, r, f, lane, in->site, access_name(in));
    tx_report_element(vm, r, f, lane, in->site, p->off);
    if (memory && memory[0] && strcmp(memory, r->buffer) != 0) /* a view */
        tx_report_text(r, "%s of %s%s is outside the memory of %s, which has %lld bytes", access_name(in), r->buffer,
                       r->element, memory, (long long)n);
    else if (!through_pointer(in) && !p->nibble && size)
        tx_report_text(r, "%s of %s%s is outside its %lld elements", access_name(in), r->buffer, r->element,
                       (long long)(n / size));
    else
        tx_report_text(r, "%s of %u bytes at byte %lld of %s, which has %lld bytes", access_name(in), size,
                       (long long)p->off, r->buffer, (long long)n);
    return tx_report_end(vm, r);
}

static int
report_simple(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane, const place *p, const char *kind,
              const char *what)
{
    tx_emu_report *r = tx_report_begin(vm, kind, in->site);
    name_memory(vm, r, p->mem);
    tx_report_agent(vm, r, f, lane, in->site, access_name(in));
    tx_report_element(vm, r, f, lane, in->site, p->off);
    tx_report_text(r, "%s of %s%s%s", access_name(in), r->buffer, r->element, what);
    return tx_report_end(vm, r);
}

int
tx_vm_chkb(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t dim, uint32_t bad)
{
    uint32_t lane = tx_first_lane(bad);
    const tx_dims *d = &vm->p->dims[in->imm];
    const char *role = tx_site_of(vm, in->site)->role;
    tx_emu_report *r = tx_report_begin(vm, "out_of_bounds", in->site);
    long long at = tx_vreg_int(f, &d->idx[dim], lane), n = tx_vreg_int(f, &d->ext[dim], lane);

    tx_report_agent(vm, r, f, lane, in->site, role);
    tx_report_element(vm, r, f, lane, in->site, 0);
    if (d->n == 1)
        tx_report_text(r, "%s of %s%s is outside its %lld elements", role, r->buffer, r->element, n);
    else
        tx_report_text(r, "%s of %s%s: index %lld of dimension %u is outside 0..%lld", role, r->buffer, r->element, at,
                       dim, n - 1);
    return tx_report_end(vm, r);
}

/* ---- loads and stores -------------------------------------------------------------------------------------------- */

static uint32_t
alignment(const tx_insn *in, unsigned size)
{
    return in->imm >> 16 ? (uint32_t)(in->imm >> 16) : size;
}

/* Every lane's place, checked; lanes that fail leave `ok`. */
static int
mem_resolve(tx_vm *vm, tx_frag *f, const tx_insn *in, unsigned kind, bool store, place *p, uint32_t *ok)
{
    unsigned size = tx_kinds[kind].bytes;
    *ok = f->m;
    for (uint32_t left = f->m; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        int r = TX_RUN_ON;
        bool good = false;
        if (!place_of(vm, f, in, kind, lane, &p[lane]))
            r = report_nowhere(vm, f, in, lane);
        else if (p[lane].off < -before_mem(vm, p[lane].mem) ||
                 p[lane].off > size_of_mem(vm, p[lane].mem) - (int64_t)size)
            r = report_outside(vm, f, in, lane, &p[lane], size);
        else if (vm->check && through_pointer(in) && p[lane].off % (int64_t)alignment(in, size))
            r = report_simple(vm, f, in, lane, &p[lane], "misaligned", ": the address is not a multiple of the size");
        else if (store && vm->p->mems[p[lane].mem].scope == TX_GLOBAL && vm->mem[p[lane].mem].readonly)
            r = report_simple(vm, f, in, lane, &p[lane], "out_of_bounds", ", which is read-only");
        else
            good = true;
        if (r != TX_RUN_ON)
            return r;
        if (!good)
            *ok &= ~(1u << lane);
    }
    return TX_RUN_ON;
}

/* Tells the checkers, one memory after the other; keeps track of what a thread's own arrays hold. */
static int
watch(tx_vm *vm, tx_frag *f, const tx_insn *in, const place *p, uint32_t lanes, unsigned size, uint8_t kind)
{
    int64_t off[TX_LANES];
    for (uint32_t left = lanes; left && vm->check;) {
        uint32_t mem = p[tx_first_lane(left)].mem, group = 0;
        tx_cta *peer = p[tx_first_lane(left)].peer;
        for (uint32_t rest = left; rest; rest &= rest - 1) {
            uint32_t lane = tx_first_lane(rest);
            if (p[lane].mem == mem && p[lane].peer == peer)
                group |= 1u << lane, off[lane] = p[lane].off;
        }
        left &= ~group;
        if (vm->p->mems[mem].scope == TX_LOCAL) {
            for (uint32_t rest = group; rest; rest &= rest - 1) {
                uint32_t lane = tx_first_lane(rest);
                uint8_t *at = f->warp->local_init + lane * vm->p->local_bytes + vm->p->mems[mem].offset + off[lane];
                bool all = true;
                for (unsigned i = 0; i < size; i++)
                    all = all && at[i];
                if (kind != TX_WRITE && !all) {
                    int r = report_simple(vm, f, in, lane, &p[lane], "uninitialised", ", which nobody has written");
                    if (r != TX_RUN_ON)
                        return r;
                }
                if (kind != TX_READ)
                    memset(at, 1, size);
            }
        } else if (vm->mem[mem].watched) {
            for (uint32_t rest = peer ? group : 0; rest; rest &= rest - 1)
                tx_cluster_touch(vm, f, tx_first_lane(rest), peer, mem, in->site);
            tx_access a = {vm,   f,    mem,  in->site,
                           size, kind, peer, through_pointer(in) ? (uint8_t)(in->aux >> TX_ACC_STRENGTH) : 0};
            if (!vm->hooks->lanes(&a, off, group))
                return TX_RUN_STOP;
        }
    }
    return TX_RUN_ON;
}

int
tx_vm_load(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    place p[TX_LANES];
    bool ptr = in->op == V_LDP;
    unsigned kind = ptr ? in->aux & TX_ACC_KIND : info_of(in->op).kind;
    bool row = ptr ? (in->aux & TX_ACC_VAL_V) != 0 : (in->op - V_LD_I8_S) % 3 != 0;
    uint32_t ok;
    int r = mem_resolve(vm, f, in, kind, false, p, &ok);

    if (r == TX_RUN_ON)
        r = watch(vm, f, in, p, ok, tx_kinds[kind].bytes, TX_READ);
    if (r != TX_RUN_ON)
        return r;
    for (uint32_t left = f->m; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        uint64_t v = ok >> lane & 1 ? read_element(mem_address(vm, f, &p[lane], lane), kind, p[lane].nibble) : 0;
        put_lane(f, in->d, row, kind, lane, v);
    }
    return TX_RUN_ON;
}

int
tx_vm_store(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    place p[TX_LANES];
    bool ptr = in->op == V_STP;
    unsigned kind = ptr ? in->aux & TX_ACC_KIND : info_of(in->op).kind;
    bool row = ptr ? (in->aux & TX_ACC_VAL_V) != 0 : (in->op - V_ST_8_S) % 3 != 0 || (in->aux & TX_VAL_V);
    uint32_t ok;
    int r = mem_resolve(vm, f, in, kind, true, p, &ok);

    if (r == TX_RUN_ON)
        r = watch(vm, f, in, p, ok, tx_kinds[kind].bytes, TX_WRITE);
    if (r != TX_RUN_ON)
        return r;
    for (uint32_t left = ok; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        write_element(mem_address(vm, f, &p[lane], lane), kind, p[lane].nibble, get_lane(f, in->b, row, kind, lane));
    }
    vm->changes++;
    return TX_RUN_ON;
}

int
tx_vm_align(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    (void)vm, (void)f, (void)in;
    return TX_RUN_ON;
}

/* ---- atomics ----------------------------------------------------------------------------------------------------- */

static float
flush(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* What an atomic addition leaves behind. Additions of float32 to global memory flush subnormals (measured on an H200). */
static uint64_t
add_element(unsigned kind, uint64_t old, uint64_t v, bool global)
{
    float a, b;
    double x, y;
    uint32_t w;
    switch (kind) {
    case TX_KIND_F32:
        w = (uint32_t)old, memcpy(&a, &w, 4);
        w = (uint32_t)v, memcpy(&b, &w, 4);
        a = global ? flush(flush(a) + flush(b)) : a + b;
        memcpy(&w, &a, 4);
        return a != a ? 0x7fffffffu : w;
    case TX_KIND_F64:
        memcpy(&x, &old, 8), memcpy(&y, &v, 8);
        if (x != x || y != y) /* which NaN stays depends on the unit; only that of shared memory makes it quiet */
            return global ? (y != y ? v : old) : (x != x ? old : v) | 1ull << 51;
        x += y;
        memcpy(&old, &x, 8);
        return x != x ? 0xfff8ull << 48 : old;
    case TX_KIND_F16:
    case TX_KIND_BF16:
        x = tx_decode(TX_DTYPE(kind, 1), old) + tx_decode(TX_DTYPE(kind, 1), v); /* exact in float64 */
        return x != x ? 0x7fff : tx_encode(TX_DTYPE(kind, 1), x);
    default: return old + v;
    }
}

/* min and max of floats lose a NaN; packed halves by their format. */
static uint64_t
combine_floats(unsigned op, unsigned fmt, unsigned size, uint64_t old, uint64_t v)
{
    uint64_t r = 0;
    for (unsigned i = 0; i < size; i += 2) {
        uint64_t a = old >> 8 * i & 0xffff, b = v >> 8 * i & 0xffff, c;
        double x = tx_ptx_decode(fmt, a), y = tx_ptx_decode(fmt, b);
        if (op == TX_ATOM_ADD) {
            double s = x + y, t = s - x;
            c = tx_ptx_round(fmt, (tx_ptx_num){s, (x - (s - t)) + (y - t), 0}, RND_RN, false, 0, 0);
        } else if (x != x || y != y)
            c = x != x && y != y ? tx_ptx_nan(fmt) : x != x ? b : a;
        else
            c = (x < y || (x == y && a >> 15)) == (op == TX_ATOM_MIN) ? a : b;
        r |= c << 8 * i;
    }
    return r;
}

static uint64_t
combine(unsigned op, unsigned fmt, unsigned kind, uint64_t old, uint64_t v, bool global)
{
    unsigned size = tx_kinds[kind].bytes;
    bool less = old < v;
    if (fmt)
        return combine_floats(op, fmt, size, old, v);
    if (kind == TX_KIND_I32)
        less = (int32_t)old < (int32_t)v;
    else if (kind == TX_KIND_I64)
        less = (int64_t)old < (int64_t)v;
    switch (op) {
    case TX_ATOM_EXCH: return v;
    case TX_ATOM_AND: return old & v;
    case TX_ATOM_OR: return old | v;
    case TX_ATOM_XOR: return old ^ v;
    case TX_ATOM_INC: return old >= v ? 0 : old + 1;
    case TX_ATOM_DEC: return old == 0 || old > v ? v : old - 1;
    case TX_ATOM_MIN: return less ? old : v;
    case TX_ATOM_MAX: return less ? v : old;
    default: return add_element(kind, old, v, global);
    }
}

/* The reductions of the copy engines: subnormals are kept, float64 is added by the unit of global memory. */
void
tx_reduce_bytes(uint8_t *to, const uint8_t *from, size_t n, unsigned op, unsigned kind)
{
    unsigned size = tx_kinds[kind].bytes;
    unsigned fmt = op == TX_ATOM_ADD ? 0 : kind == TX_KIND_F16 ? FM_F16 : kind == TX_KIND_BF16 ? FM_BF16 : 0;
    for (size_t i = 0; i + size <= n; i += size)
        write_element(to + i, kind, 0,
                      combine(op, fmt, kind, read_element(to + i, kind, 0), read_element(from + i, kind, 0),
                              kind == TX_KIND_F64));
}

/* Replaces an element if it still is `old`: other workers may touch global memory. */
static bool
replace(tx_vm *vm, uint8_t *p, unsigned size, uint64_t *old, uint64_t v)
{
#if defined(__GNUC__)
    if (vm->threaded && ((uintptr_t)p & (size - 1)) == 0) {
        uint16_t h = (uint16_t)*old;
        uint32_t w = (uint32_t)*old;
        bool done;
        if (size == 2)
            done = __atomic_compare_exchange_n((uint16_t *)(void *)p, &h, (uint16_t)v, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST),
            *old = h;
        else if (size == 4)
            done = __atomic_compare_exchange_n((uint32_t *)(void *)p, &w, (uint32_t)v, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST),
            *old = w;
        else
            done =
                __atomic_compare_exchange_n((uint64_t *)(void *)p, old, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return done;
    }
#endif
    (void)vm;
    write_element(p, size == 2 ? TX_KIND_U16 : size == 4 ? TX_KIND_U32 : TX_KIND_U64, 0, v);
    return true;
}

int
tx_vm_atomic(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    place p[TX_LANES];
    unsigned kind = in->aux & TX_ACC_KIND, size = tx_kinds[kind].bytes;
    unsigned raw = size == 2 ? TX_KIND_U16 : size == 4 ? TX_KIND_U32 : TX_KIND_U64;
    uint64_t mask = size == 8 ? ~0ull : (1ull << 8 * size) - 1;
    uint32_t ok;
    int r = mem_resolve(vm, f, in, kind, true, p, &ok);

    if (r == TX_RUN_ON)
        r = watch(vm, f, in, p, ok, size, TX_ATOMIC);
    if (r != TX_RUN_ON)
        return r;
    for (uint32_t left = f->m; left; left &= left - 1) { /* in the order of the lanes, as an H200 does */
        uint32_t lane = tx_first_lane(left);
        if (!(ok >> lane & 1)) {
            put_lane(f, in->d, true, kind, lane, 0);
            continue;
        }
        uint8_t *at = mem_address(vm, f, &p[lane], lane);
        bool global = vm->p->mems[p[lane].mem].scope == TX_GLOBAL;
        uint64_t v = get_lane(f, in->b, in->aux & TX_ACC_VAL_V, kind, lane) & mask, old = read_element(at, raw, 0),
                 next;
        do {
            if (in->aux & TX_ACC_CAS)
                next = old == (get_lane(f, in->c, in->aux & TX_ACC_CMP_V, kind, lane) & mask) ? v : old;
            else
                next = combine(in->imm & 0xff, in->imm >> 8 & 0xff, kind, old, v, global) & mask;
        } while (!replace(vm, at, size, &old, next));
        vm->changes += next != old;
        if (kind == TX_KIND_I16)
            old = (uint64_t)(int64_t)(int16_t)old;
        put_lane(f, in->d, true, kind, lane, old);
    }
    return TX_RUN_ON;
}

/* ---- arrays of a thread in the frame ----------------------------------------------------------------------------------- */

static int
report_row(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane, int64_t i)
{
    const char *role = tx_site_of(vm, in->site)->role;
    tx_emu_report *r = tx_report_begin(vm, "out_of_bounds", in->site);
    tx_report_agent(vm, r, f, lane, in->site, role);
    snprintf(r->element, sizeof r->element, "[%lld]", (long long)i);
    tx_report_element(vm, r, f, lane, in->site, INT64_MIN);
    tx_report_text(r, "%s of %s%s is outside its %lld elements", role, r->buffer, r->element, (long long)in->imm);
    return tx_report_end(vm, r);
}

int
tx_vm_local(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    bool store = in->op >= V_SROW32_S;
    unsigned form = in->op - (store ? V_SROW32_S : V_LROW32_S), what = form % 3; /* 32, 64, mask */
    bool per_lane = form >= 3;
    uint64_t got[TX_LANES] = {0};

    for (uint32_t left = f->m; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        int32_t i32;
        memcpy(&i32, f->R + in->a + (per_lane ? lane * 4 : 0), 4);
        int64_t i = i32;
        if (i < 0 || i >= in->imm) {
            int r = report_row(vm, f, in, lane, i);
            if (r != TX_RUN_ON)
                return r;
            continue;
        }
        uint32_t row = in->c + (uint32_t)(i * (what == 0 ? 4 * TX_LANES : what == 1 ? 8 * TX_LANES : 8));
        unsigned kind = what == 0 ? TX_KIND_U32 : what == 1 ? TX_KIND_U64 : TX_KIND_BOOL;
        if (store)
            put_lane(f, row, true, kind, lane, get_lane(f, in->b, true, kind, lane));
        else
            got[lane] = get_lane(f, row, true, kind, lane);
    }
    for (uint32_t left = store ? 0 : f->m; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        put_lane(f, in->d, true, what == 0 ? TX_KIND_U32 : what == 1 ? TX_KIND_U64 : TX_KIND_BOOL, lane, got[lane]);
    }
    return TX_RUN_ON;
}

static int
report_unwritten(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t lane, uint32_t init)
{
    if (f->warp->cta->engine && tx_wgmma_busy(vm, f, init))
        return tx_wgmma_report(vm, f, in, lane, init, "load");
    tx_emu_report *r = tx_report_begin(vm, "uninitialised", in->site);
    tx_report_agent(vm, r, f, lane, in->site, "load");
    tx_report_element(vm, r, f, lane, in->site, INT64_MIN);
    tx_report_text(r, "load of %s%s, which this thread has not written", r->buffer, r->element);
    return tx_report_end(vm, r);
}

/* CHKI, SETI: one mask for each element says which lanes have written it. */
int
tx_vm_chki(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t bad)
{
    if (in->op == V_CHKI_C)
        return report_unwritten(vm, f, in, tx_first_lane(bad), in->a);
    bool per_lane = in->op == V_CHKI_V || in->op == V_SETI_V, set = in->op == V_SETI_S || in->op == V_SETI_V;
    for (uint32_t left = f->m; left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left);
        int32_t i;
        memcpy(&i, f->R + in->a + (per_lane ? lane * 4 : 0), 4);
        if (i < 0 || i >= in->imm)
            continue; /* reported by the access */
        tx_slot *s = tx_reg(f, in->c + (uint32_t)i * 8);
        if (set)
            s->u32 |= 1u << lane;
        else if (!(s->u32 >> lane & 1)) {
            int r = report_unwritten(vm, f, in, lane, in->c + (uint32_t)i * 8);
            if (r != TX_RUN_ON)
                return r;
        }
    }
    return TX_RUN_ON;
}

/* ---- the rest ---------------------------------------------------------------------------------------------------- */

int
tx_vm_arith(tx_vm *vm, tx_frag *f, const tx_insn *in, uint32_t bad)
{
    bool shift = in->op >= V_CHKS_I32_S, row = (in->op - V_CHKZ_I32_S) & 1, wide = (in->op - V_CHKZ_I32_S) & 2;
    uint32_t lane = tx_first_lane(bad);
    tx_emu_report *r = tx_report_begin(vm, "arithmetic", in->site);
    tx_slot v = {0};

    memcpy(&v, f->R + in->a + (row ? lane * (wide ? 8 : 4) : 0), wide ? 8 : 4);
    tx_report_agent(vm, r, f, lane, in->site, shift ? "shift" : "division");
    if (shift)
        tx_report_text(r, "shift by %lld is outside 0..%lld", (long long)(wide ? v.i64 : v.i32),
                       (long long)in->imm - 1);
    else
        tx_report_text(r, "integer division by zero");
    return tx_report_end(vm, r);
}

int
tx_vm_slow(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    /* CVTA: the address in the shared window, the CTA's rank in its top byte; CVTP: back */
    for (uint32_t left = in->aux & 1 ? f->m : f->m & (0u - f->m); left; left &= left - 1) {
        uint32_t lane = tx_first_lane(left), at;
        uint64_t ptr;
        memcpy(&ptr, f->R + in->a + (in->aux & 1 ? lane * 8 : 0), 8);
        if (in->op == V_CVTP) {
            ptr = tx_ptx_pointer(vm, ptr);
            memcpy(f->R + in->d + (in->aux & 1 ? lane * 8 : 0), &ptr, 8);
            continue;
        }
        at = tx_ptx_window(vm, ptr);
        memcpy(f->R + in->d + (in->aux & 1 ? lane * 4 : 0), &at, 4);
    }
    return TX_RUN_ON;
}
