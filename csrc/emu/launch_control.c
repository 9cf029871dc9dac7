/* Cluster launch control: a running cluster takes the place of one that has not started (sched.c counts them). The answer of 16 bytes is
 * opaque on the hardware; here it holds the first CTA's coordinates and a mark, and a mark of its own where none is left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "emu/async.h"
#include "emu/ptx_list.h"
#include "emu/sched.h"

enum { CLC_TAKEN = 0x7c1c0001, CLC_NONE = 0x7c1c0000 }; /* the fourth word */

typedef struct clc_answer {
    uint8_t *to;
    uint32_t word[4];
} clc_answer;

static bool
clc_write(tx_vm *vm, tx_work *w)
{
    const clc_answer *d = w->data;
    (void)vm;
    memcpy(d->to, d->word, sizeof d->word);
    return true;
}

static bool
clc_complain(const tx_act *a, uint32_t l, const char *what)
{
    tx_emu_report *r = tx_act_report(a, l, "cluster");
    tx_report_text(r, "%s", what);
    return tx_report_end(a->vm, r) == TX_RUN_ON;
}

/* The answer to one CTA. */
static bool
clc_send(const tx_act *a, uint32_t l, const tx_where *to, const tx_where *bar, const uint32_t *word)
{
    tx_issue i = tx_act_issue(a, l, true);
    if (!tx_mbar_for_store(a, l, bar))
        return !a->vm->stop;
    tx_work *w = tx_work_new(a, l, TX_END_MBAR, 1, sizeof(clc_answer));
    if (!w)
        return false;
    clc_answer *d = w->data;
    d->to = to->p;
    memcpy(d->word, word, sizeof d->word);
    w->dst[w->ndst++] = (tx_span_of){to->cta, to->off, 16, 0};
    w->write = clc_write, w->carries = true;
    w->bytes = 16;
    w->bar_cta = bar->cta, w->bar_off = bar->off;
    if (!tx_shadow_issue_write(&i, w->dst)) {
        tx_free(w);
        return false;
    }
    return tx_work_issue(a->vm, w);
}

static bool
clc_issue(const tx_act *a, uint32_t l)
{
    tx_vm *vm = a->vm;
    tx_cta *cta = a->f->warp->cta;
    uint32_t word[4] = {0, 0, 0, CLC_NONE}, all = vm->l->cluster[0] * vm->l->cluster[1] * vm->l->cluster[2];
    tx_where to, bar;
    if (!tx_act_where(a, "a", l, 16, 16, true, &to) || !tx_act_where(a, "b", l, 8, 8, false, &bar))
        return !vm->stop;
    if (to.space == TX_GLOBAL || to.cta != cta || bar.cta != cta)
        return clc_complain(a, l, "try_cancel takes addresses of the CTA's own shared memory");
    if (cta->engine->refused && vm->check &&
        !clc_complain(a, l, "try_cancel after a request that this CTA knows to have failed"))
        return false;
    if (tx_sched_cancel(vm, word))
        word[3] = CLC_TAKEN;
    if (!tx_act_has(a, TK_multicast))
        return clc_send(a, l, &to, &bar, word);
    for (uint32_t rank = 0; rank < all; rank++)
        if (!tx_act_elsewhere(a, l, rank, &to, &bar) ? vm->stop : !clc_send(a, l, &to, &bar, word))
            return false;
    return true;
}

TX_PTX_AGENT(clc_try)
{
    for (uint32_t left = a->f->m; left; left &= left - 1)
        if (!clc_issue(a, tx_first_lane(left)))
            return TX_RUN_STOP;
    return TX_RUN_ON;
}

TX_PTX_AGENT(clc_query)
{
    bool asks = tx_act_has(a, TK_is_canceled);
    const char *axis = tx_ptx_slot(a->k, "q");
    int answer = tx_act_find(a->k, "r");
    for (uint32_t left = a->f->m; left; left &= left - 1) {
        uint32_t l = tx_first_lane(left);
        uint64_t low = tx_act_in(a, answer, l), high = tx_act_in(a, answer + 1, l);
        uint32_t word[4] = {(uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, 0}, mark = (uint32_t)(high >> 32);
        if (a->vm->check && mark != CLC_TAKEN && mark != CLC_NONE &&
            !clc_complain(a, l, "query_cancel of 16 bytes that no try_cancel has answered"))
            return TX_RUN_STOP;
        if (asks) {
            tx_act_out(a, 0, l, mark == CLC_TAKEN);
            if (mark == CLC_NONE)
                a->f->warp->cta->engine->refused = true;
            continue;
        }
        if (a->vm->check && mark == CLC_NONE &&
            !clc_complain(a, l, "get_first_ctaid of a request that has failed: is_canceled tells"))
            return TX_RUN_STOP;
        for (uint32_t i = 0; i < a->k->nout && i < 4; i++)
            tx_act_out(a, i, l, word[axis ? (uint32_t)(axis[strlen(axis) - 1] - 'x') : i]);
    }
    return TX_RUN_ON;
}
