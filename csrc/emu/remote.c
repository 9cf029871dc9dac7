/* Asynchronous stores of registers: st.async and red.async bring a value to shared memory of the cluster and its bytes to an mbarrier there.
 * They go through the generic proxy. Also st.bulk, which fills with zeros at once, and atom.b128.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"

typedef struct remote_store {
    uint8_t *to;
    uint32_t n;
    int32_t op; /* TX_ATOM_*, -1: a store */
    unsigned kind;
    uint8_t value[16];
} remote_store;

static bool
remote_write(tx_vm *vm, tx_work *w)
{
    const remote_store *s = w->data;
    (void)vm;
    if (s->op >= 0)
        tx_reduce_bytes(s->to, s->value, s->n, (unsigned)s->op, s->kind);
    else
        memcpy(s->to, s->value, s->n);
    return true;
}

/* Not shared memory: reported. */
static bool
remote_is_shared(const tx_act *a, uint32_t l, const tx_where *w)
{
    if (w->space != TX_GLOBAL)
        return true;
    tx_emu_report *r = tx_act_report(a, l, "out_of_bounds");
    strncpy(r->buffer, a->vm->p->mems[w->mem].name, sizeof r->buffer - 1);
    tx_report_text(r, "%s of %s, which does not lie in shared memory", tx_site_of(a->vm, a->in->site)->role, r->buffer);
    tx_report_end(a->vm, r);
    return false;
}

/* false: the run stops, or the lane does nothing. */
static bool
remote_issue(const tx_act *a, uint32_t l, int32_t op, unsigned kind)
{
    tx_vm *vm = a->vm;
    tx_where to, bar;
    tx_issue i = tx_act_issue(a, l, false);
    int first = tx_act_find(a->k, "v");
    uint32_t n = 0, each = a->k->in_t[first].bits / 8u;
    uint8_t value[16];

    for (int k = first; k < a->k->nin && a->k->in_name[k][0] == 'v' && n + each <= sizeof value; k++, n += each) {
        uint64_t v = tx_act_in(a, k, l);
        memcpy(value + n, &v, each);
    }
    if (!tx_act_where(a, "a", l, n, n, true, &to) || !remote_is_shared(a, l, &to) ||
        !tx_act_where(a, "b", l, 8, 8, false, &bar) || !tx_mbar_for_store(a, l, &bar))
        return false;
    if (to.cta != bar.cta) {
        tx_emu_report *r = tx_act_report(a, l, "mbarrier");
        tx_mbar_name(vm, r, bar.cta, bar.off);
        tx_report_text(r, "%s to CTA %u of the cluster signals %s%s of CTA %u: the two lie in one CTA", i.role,
                       to.cta->cluster_rank, r->buffer, r->element, bar.cta->cluster_rank);
        tx_report_end(vm, r);
        return false;
    }
    tx_work *w = tx_work_new(a, l, TX_END_MBAR, 1, sizeof(remote_store));
    if (!w)
        return false;
    remote_store *s = w->data;
    s->to = to.p, s->n = n, s->op = op, s->kind = kind;
    memcpy(s->value, value, n);
    w->dst[w->ndst++] = (tx_span_of){to.cta, to.off, n, 0};
    w->atomic = i.atomic = op >= 0;
    w->write = remote_write, w->carries = true;
    w->bytes = n;
    w->bar_cta = bar.cta, w->bar_off = bar.off;
    if (!tx_shadow_issue_write(&i, w->dst)) {
        tx_free(w);
        return false;
    }
    return tx_work_issue(vm, w);
}

TX_PTX_AGENT(st_async)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (!remote_issue(a, tx_first_lane(left), -1, 0) && a->vm->stop)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(red_async)
{
    int32_t op;
    unsigned kind;
    tx_act_reduction(a, &op, &kind);
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (!remote_issue(a, tx_first_lane(left), op, kind) && a->vm->stop)
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

/* ---- at once ----------------------------------------------------------------------------------------------------- */

TX_PTX_MATRIX(st_bulk)
{
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left);
        uint64_t n = tx_act_in(a, tx_act_find(a->k, "n"), l);
        tx_issue i = tx_act_issue(a, l, false);
        tx_where to;
        bool good = tx_act_where(a, "a", l, n > INT64_MAX ? INT64_MAX : (int64_t)n, 8, true, &to) &&
                    remote_is_shared(a, l, &to);
        if (good && n % 8) {
            tx_emu_report *r = tx_act_report(a, l, "misaligned");
            strncpy(r->buffer, a->vm->p->mems[to.mem].name, sizeof r->buffer - 1);
            tx_report_text(r, "%s of %llu bytes: the size is a multiple of 8", i.role, (unsigned long long)n);
            tx_report_end(a->vm, r);
            good = false;
        }
        for (uint32_t at = 0; good && a->vm->hooks && at < n; at += 8) {
            tx_span_of s = {to.cta, to.off + at, 8, 0};
            if (!tx_shadow_touch(&i, &s, TX_WRITE))
                return TX_RUN_STOP;
        }
        if (a->vm->stop)
            return TX_RUN_STOP;
        if (good && n)
            memset(to.p, 0, (size_t)n);
    }
    a->vm->changes++;
    return TX_RUN_ON;
}

/* exch and cas of 128 bits: the halves of each operand follow each other. */
static int
wide_atomic(const tx_act *a)
{
    bool cas = tx_act_has(a, TK_cas);
    int v = tx_act_find(a->k, "v"), c = cas ? tx_act_find(a->k, "c") : v;
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left);
        uint64_t old[2], with[2] = {tx_act_in(a, v, l), tx_act_in(a, v + 1, l)};
        tx_issue i = tx_act_issue(a, l, false);
        tx_where to;
        if (!tx_act_where(a, "a", l, 16, 16, true, &to)) {
            if (a->vm->stop)
                return TX_RUN_STOP;
            continue;
        }
        tx_span_of s = {to.cta, to.off, 16, 0};
        if (a->vm->hooks && to.space != TX_GLOBAL && !tx_shadow_touch(&i, &s, TX_ATOMIC))
            return TX_RUN_STOP;
        tx_access at = {a->vm, a->f, to.mem, a->in->site, 16, TX_ATOMIC, NULL, 0};
        if (a->vm->hooks && to.space == TX_GLOBAL && tx_engines_watch(a->vm, to.mem) &&
            !tx_global_lanes(&at, NULL, to.p - a->vm->mem[to.mem].base, 1u << l))
            return TX_RUN_STOP;
        memcpy(old, to.p, 16);
        if (!cas || (old[0] == tx_act_in(a, c, l) && old[1] == tx_act_in(a, c + 1, l)))
            memcpy(to.p, with, 16);
        tx_act_out(a, 0, l, old[0]);
        tx_act_out(a, 1, l, old[1]);
    }
    a->vm->changes++;
    return TX_RUN_ON;
}
const tx_ptx_emu tx_wide_atomic = {"atomic", PH_MATRIX, NULL, NULL, wide_atomic};
