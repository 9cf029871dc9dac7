/* Launch attributes with fields of their own: the policy of a window of memory, domains of memory order, events. A row says
 * where the driver wants each field (cuda.h, CUlaunchAttributeValue). SPDX-License-Identifier: Apache-2.0 */
#include "runtime/driver.h"
#include "runtime/plan.h"

typedef struct extra_field {
    uint8_t offset, nbytes;
    bool is_float;
} extra_field;

static const struct extra_row {
    const char *key;
    int id, driver; /* least version: 12000 is 12.0 */
    unsigned nfields;
    extra_field field[5];
} extra_rows[] = {
    {"access_policy_window", 1, 12000, 5, {{0, 8, 0}, {8, 8, 0}, {16, 4, 1}, {20, 4, 0}, {24, 4, 0}}},
    {"programmatic_event", 7, 12000, 3, {{0, 8, 0}, {8, 4, 0}, {12, 4, 0}}},
    {"mem_sync_domain_map", 9, 12000, 2, {{0, 1, 0}, {1, 1, 0}}},
    {"launch_completion_event", 12, 12040, 2, {{0, 8, 0}, {8, 4, 0}}},
    {"nvlink_util_centric_scheduling", 16, 13020, 1, {{0, 4, 0}}},
};
enum { EXTRA_ROWS = sizeof extra_rows / sizeof *extra_rows };

/* CUaccessProperty */
static const char *const extra_policies[] = {"normal", "streaming", "persisting"};

/* Words become their numbers, literals of the field's kind. */
static const tx_node *
extra_value(tx_ctx *c, const tx_node *n)
{
    if (n->op == TX_OP_STR)
        for (int i = 0; i < 3; i++)
            if (strcmp(n->u.s->text, extra_policies[i]) == 0)
                return tx_int(c, TX_I32, i);
    return n;
}

bool
tx_plan_extras(tx_ctx *c, struct plan_compiler *k, const tx_node *launch, plan_launch *l)
{
    const tx_launch *from = &launch->u.launch_of->launch;

    for (uint32_t i = 0; i < from->nattrs; i++) {
        const tx_node *value = from->attrs[i].value, *const *fields = value->op == TX_OP_VECTOR ? value->arg : &value;
        uint32_t n = value->op == TX_OP_VECTOR ? value->nargs : 1;
        for (unsigned row = 0; row < EXTRA_ROWS && l->nextras < TX_MAX_LAUNCH_EXTRAS; row++) {
            plan_extra *e = &l->extras[l->nextras];
            if (strcmp(extra_rows[row].key, from->attrs[i].key->text) != 0 || n != extra_rows[row].nfields)
                continue;
            e->row = (uint8_t)row;
            for (uint32_t f = 0; f < n; f++) {
                const tx_node *v = extra_value(c, fields[f]);
                if (!v || !tx_plan_operand(k, v, &e->field[f]))
                    return false;
            }
            l->nextras++;
        }
    }
    return true;
}

bool
tx_plan_extra_values(plan_call *k, const plan_launch *l, tx_launch_extra *out)
{
    for (uint32_t i = 0; i < l->nextras; i++) {
        const struct extra_row *row = &extra_rows[l->extras[i].row];

        memset(&out[i], 0, sizeof out[i]);
        out[i].id = row->id;
        if (k->device_type == TX_DEV_CUDA && tx_driver_version() < row->driver)
            return tx_plan_fault(k, TX_CALL_RUNTIME_ERROR,
                                 "LaunchConfig.%s requires CUDA >= %d.%d, the driver has %d.%d", row->key,
                                 row->driver / 1000, row->driver % 1000 / 10, tx_driver_version() / 1000,
                                 tx_driver_version() % 1000 / 10);
        for (unsigned f = 0; f < row->nfields; f++) {
            const plan_operand *o = &l->extras[i].field[f];
            plan_value v = {0};
            float narrow;

            if (o->kind == PLAN_TENSOR)
                v.p = k->args[o->param].kind == TX_ARG_NONE ? NULL : k->args[o->param].v.p;
            else
                v = k->reg[o->reg];
            narrow = row->field[f].is_float ? (float)v.f : 0;
            memcpy(out[i].value + row->field[f].offset, row->field[f].is_float ? (void *)&narrow : (void *)&v,
                   row->field[f].nbytes); /* little-endian: the low bytes */
        }
    }
    return true;
}

bool
tx_plan_overlaps(const tx_plan *p)
{
    for (uint32_t i = 0; i < p->nlaunches; i++)
        if (p->launches[i].attrs.pdl > 0)
            return true;
    return false;
}
