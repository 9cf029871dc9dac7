/* Nodes: the table of operations and the one maker. Making a pure expression looks it up by value in the context's
 * table: equal expressions get equal value numbers, and the same node again when the place and the children are the same
 * too. Impure expressions and statements get a value number of their own. SPDX-License-Identifier: Apache-2.0 */
#include "ir/ir.h"
#include "ir/fold.h"

#define INFIX TX_PROP_INFIX
#define COMMUTES TX_PROP_COMMUTES
#define FOLDS TX_PROP_FOLDS
#define PURE TX_PROP_PURE
#define READS TX_PROP_READS
#define EFFECT TX_PROP_EFFECT
#define LAZY TX_PROP_LAZY
#define STMT TX_PROP_STMT
#define COORD TX_PROP_COORD
#define CONV TX_PROP_CONV
const tx_op_info tx_ops[TX_OP__COUNT] = {
#define OP(name, spelling, operands, rule, props) [TX_OP_##name] = {#name, spelling, operands, TX_RULE_##rule, props},
#include "ir/ops.def"
#undef OP
};
#undef INFIX
#undef COMMUTES
#undef FOLDS
#undef PURE
#undef READS
#undef EFFECT
#undef LAZY
#undef STMT
#undef COORD
#undef CONV
_Static_assert((TX_OP_EQ ^ 1) == TX_OP_NE && (TX_OP_LT ^ 1) == TX_OP_GE && (TX_OP_GT ^ 1) == TX_OP_LE,
               "negation pairs");
_Static_assert(TX_OP_EQ < TX_OP_ADD && TX_OP_ADD < TX_OP_SHR && TX_OP_SHR < TX_OP_NEG, "families stand together");

int
tx_op_find(const char *text)
{
    for (int i = 0; i < TX_OP__COUNT; i++)
        if (strcmp(tx_ops[i].name, text) == 0 || (*text && strcmp(tx_ops[i].spelling, text) == 0))
            return i;
    return -1;
}

enum tx_payload_kind
tx_payload_kind_of(unsigned op)
{
    switch (op) {
    case TX_OP_STR:
    case TX_OP_ATTR: return TX_P_STR;
    case TX_OP_VAR:
    case TX_OP_BIND:
    case TX_OP_LET: return TX_P_VAR;
    case TX_OP_LOAD:
    case TX_OP_STORE:
    case TX_OP_ALLOC:
    case TX_OP_DECL:
    case TX_OP_MATCH:
    case TX_OP_BUFFER_DATA: return TX_P_BUF;
    case TX_OP_FOR: return TX_P_LOOP;
    case TX_OP_SCOPE_ID: return TX_P_SCOPE_ID;
    case TX_OP_DEVICE: return TX_P_LAUNCH;
    case TX_OP_LAUNCH: return TX_P_LAUNCH_OF;
    case TX_OP_FUNC_CALL:
    case TX_OP_CALL_EXTERN:
    case TX_OP_CALL_PURE_EXTERN:
    case TX_OP_CALL_PACKED:
    case TX_OP_KEPT:
    case TX_OP_CALL_FUNC: return TX_P_CALL;
    case TX_OP_ASSERT: return TX_P_ASSERTION;
    case TX_OP_PTX: return TX_P_PTX;
    case TX_OP_TILE: return TX_P_TILE;
    default: return TX_P_PLAIN;
    }
}

/* ---- table of values ------------------------------------------------------------------------------------------- */

struct tx_vntab {
    struct vn_slot {
        uint32_t hash;
        const tx_node *node; /* the newest node of that value */
    } *slot;
    uint32_t n, cap;
};

/* The table is in the arena: what it leaves behind when it grows is less than it has. */
static bool
vntab_grow(tx_ctx *c)
{
    struct tx_vntab *t = c->vns;
    uint32_t cap = t->cap ? t->cap * 2 : 256, at;
    struct vn_slot *slot = tx_new(c, struct vn_slot, cap);

    if (!slot)
        return false;
    for (uint32_t i = 0; i < t->cap; i++)
        if (t->slot[i].node) {
            for (at = t->slot[i].hash & (cap - 1); slot[at].node; at = (at + 1) & (cap - 1))
                ;
            slot[at] = t->slot[i];
        }
    t->slot = slot;
    t->cap = cap;
    return true;
}

/* Room for one more entry; makes the table on first use. */
static bool
vntab_ready(tx_ctx *c)
{
    if (!c->vns && !(c->vns = tx_new(c, struct tx_vntab, 1)))
        return false;
    return c->vns->n + 1 <= c->vns->cap / 4 * 3 || vntab_grow(c);
}

/* What makes two pure nodes equal. The element that an address is taken of is not read: its buffer and indices count. */
typedef struct value_key {
    const tx_node *head;
    const tx_node *const *args;
    uint32_t nargs;
    uint64_t payload;
} value_key;

static value_key
node_key_of(const tx_node *n, const tx_node *const *args)
{
    value_key k = {n, args, n->nargs, n->u.bits};

    if (n->op == TX_OP_ADDRESS_OF && n->nargs == 1 && args[0]->op == TX_OP_LOAD) {
        k.args = args[0]->arg;
        k.nargs = args[0]->nargs;
        k.payload = args[0]->u.bits;
    }
    return k;
}

static uint32_t
key_hash(const value_key *k)
{
    uint64_t h = tx_hash_mix((uint64_t)k->head->op << 32 | k->head->dtype, k->payload);

    h = tx_hash_mix(h, (uint64_t)k->head->elem << 16 | k->head->scope << 8 | (k->head->flags & TX_NF_WEAK));
    for (uint32_t i = 0; i < k->nargs; i++)
        h = tx_hash_mix(h, k->args[i] ? k->args[i]->vn : 0);
    return (uint32_t)(h ^ h >> 32);
}

static bool
key_equal(const value_key *a, const value_key *b)
{
    const tx_node *x = a->head, *y = b->head;

    if (x->op != y->op || x->dtype != y->dtype || x->elem != y->elem || x->scope != y->scope ||
        a->payload != b->payload || a->nargs != b->nargs || ((x->flags ^ y->flags) & TX_NF_WEAK))
        return false;
    for (uint32_t i = 0; i < a->nargs; i++)
        if ((a->args[i] ? a->args[i]->vn : 0) != (b->args[i] ? b->args[i]->vn : 0))
            return false;
    return true;
}

/* ---- the maker ------------------------------------------------------------------------------------------------- */

/* The element type and memory space that a pointer made by op points to. */
static void
set_pointee(tx_node *n, const tx_node *const *args)
{
    const tx_node *from = NULL;

    switch (n->op) {
    case TX_OP_VAR:
        n->elem = n->u.var->elem;
        n->scope = n->u.var->scope;
        return;
    case TX_OP_BUFFER_DATA:
        n->elem = n->u.buf->dtype;
        n->scope = n->u.buf->scope;
        return;
    case TX_OP_ADDRESS_OF:
        if (args[0]->op == TX_OP_LOAD) {
            n->elem = args[0]->u.buf->dtype;
            n->scope = args[0]->u.buf->scope;
        }
        return;
    case TX_OP_STACK_ALLOCA: n->elem = TX_DTYPE(TX_KIND_TENSORMAP, 1); return;
    case TX_OP_SELECT:
    case TX_OP_IF_THEN_ELSE:
    case TX_OP_LET: from = args[1]; break;
    case TX_OP_CAST:
    case TX_OP_REINTERPRET:
    case TX_OP_PTR_OFFSET: from = args[0]; break;
    default: return;
    }
    if (!n->elem)
        n->elem = from->elem;
    n->scope = from->scope;
}

/* IMPURE, the depth and the size follow from the children. An address reads none of its element. */
static void
set_summary(tx_node *n, const tx_node *const *args)
{
    bool impure = tx_has(n->op, TX_PROP_READS | TX_PROP_EFFECT | TX_PROP_STMT);
    uint32_t depth = 0, size = 1; /* no overflow: at most 2^16 children of at most 2^16 */

    for (uint32_t i = 0; i < n->nargs; i++) {
        const tx_node *a = args[i];

        if (!a)
            continue;
        if (a->depth > depth)
            depth = a->depth;
        size += tx_is_stmt(a) ? 0 : a->size;
        if (n->op == TX_OP_ADDRESS_OF && a->op == TX_OP_LOAD)
            for (uint32_t k = 0; k < a->nargs; k++)
                impure |= (a->arg[k]->flags & TX_NF_IMPURE) != 0;
        else
            impure |= (a->flags & TX_NF_IMPURE) != 0;
    }
    n->depth = depth + (n->op != TX_OP_SEQ);
    n->size = size;
    n->flags = (uint8_t)((n->flags & ~TX_NF_IMPURE) | (impure ? TX_NF_IMPURE : 0));
}

/* The slot of that value, or the free one where it belongs. */
static struct vn_slot *
vntab_find(const struct tx_vntab *t, const value_key *key, uint32_t hash)
{
    for (uint32_t at = hash & (t->cap - 1);; at = (at + 1) & (t->cap - 1)) {
        struct vn_slot *slot = &t->slot[at];
        value_key other;

        if (!slot->node)
            return slot;
        if (slot->hash != hash)
            continue;
        other = node_key_of(slot->node, slot->node->arg);
        if (key_equal(key, &other))
            return slot;
    }
}

static bool
is_same_node(const tx_node *a, const tx_node *head, const tx_node *const *args)
{
    return a->span == head->span && a->flags == head->flags &&
           (a->nargs == 0 || memcmp(a->arg, args, a->nargs * sizeof *args) == 0);
}

static const tx_node *
keep_node(tx_ctx *c, const tx_node *head, const tx_node *const *args, uint32_t vn)
{
    tx_node *n = tx_ctx_alloc(c, 1, sizeof *n + head->nargs * sizeof *args, _Alignof(tx_node));

    if (!n)
        return NULL;
    memcpy(n, head, sizeof *n);
    if (head->nargs)
        memcpy(n->arg, args, head->nargs * sizeof *args);
    n->vn = vn;
    c->nnodes++;
    return n;
}

/* Everything of `like` but its children, value number and summary; args in their place. */
const tx_node *
tx_make_node(tx_ctx *c, const tx_node *like, const tx_node *const *args)
{
    struct vn_slot *slot;
    tx_node head;
    value_key key;
    const tx_node *n;
    uint32_t hash;

    memcpy(&head, like, sizeof head);
    set_summary(&head, args);
    if (head.depth > TX_MAX_DEPTH)
        return tx_fail(c, head.span, TX_E_TOO_DEEP, TX_MAX_DEPTH);
    if (head.size > TX_MAX_EXPR_SIZE && !tx_is_stmt(&head))
        return tx_fail(c, head.span, TX_E_EXPR_TOO_LARGE, TX_MAX_EXPR_SIZE);
    if (c->nnodes >= TX_MAX_NODES)
        return tx_fail(c, head.span, TX_E_TOO_MANY_NODES, TX_MAX_NODES);
    if (tx_is_handle(head.dtype))
        set_pointee(&head, args);
    if (head.flags & TX_NF_IMPURE)
        return keep_node(c, &head, args, c->next_vn++);
    if (!vntab_ready(c))
        return NULL;
    key = node_key_of(&head, args);
    hash = key_hash(&key);
    slot = vntab_find(c->vns, &key, hash);
    if (slot->node && is_same_node(slot->node, &head, args))
        return slot->node;
    if (!(n = keep_node(c, &head, args, slot->node ? slot->node->vn : c->next_vn++)))
        return NULL;
    c->vns->n += slot->node == NULL;
    *slot = (struct vn_slot){hash, n};
    return n;
}

/* A child that must be there but is not: the fault is recorded already. */
static bool
child_missing(unsigned op, const tx_node *const *args, uint32_t nargs)
{
    for (uint32_t i = 0; i < nargs; i++)
        if (!args[i] && op != TX_OP_DEVICE && op != TX_OP_LAUNCH && op != TX_OP_RETURN && !(op == TX_OP_IF && i > 0) &&
            !(op == TX_OP_ATTR && i == 1) && !(op == TX_OP_FOR && i == 3) && !(op == TX_OP_WHILE && i == 1))
            return true;
    return false;
}

/* Operands that are kept are not weak: the rare ones that are become what they are alone. */
static const tx_node *
make_from_weak(tx_ctx *c, const tx_node *head, const tx_node *const *args)
{
    tx_mark mark = tx_arena_mark(&c->scratch);
    const tx_node **typed = tx_scratch(c, const tx_node *, head->nargs), *n = NULL;
    bool good = typed != NULL;

    for (uint32_t i = 0; good && i < head->nargs; i++) {
        typed[i] = tx_typed(c, args[i]);
        good = typed[i] || !args[i];
    }
    if (good)
        n = tx_make_node(c, head, typed);
    tx_arena_release(&c->scratch, mark);
    return n;
}

static const tx_node *
make_checked(tx_ctx *c, const tx_node *head, const tx_node *const *args)
{
    if (child_missing(head->op, args, head->nargs))
        return NULL;
    for (uint32_t i = 0; i < head->nargs; i++)
        if (args[i] && args[i]->flags & TX_NF_WEAK)
            return make_from_weak(c, head, args);
    return tx_make_node(c, head, args);
}

const tx_node *
tx_make_at(tx_ctx *c, tx_span span, unsigned op, tx_dtype dtype, tx_payload u, const tx_node *const *args,
           uint32_t nargs)
{
    tx_node head = {.op = (uint16_t)op, .dtype = dtype, .span = span, .nargs = nargs, .u = u};

    return make_checked(c, &head, args);
}

const tx_node *
tx_make(tx_ctx *c, unsigned op, tx_dtype dtype, tx_payload u, const tx_node *const *args, uint32_t nargs)
{
    return tx_make_at(c, c->span, op, dtype, u, args, nargs);
}

const tx_node *
tx_make_pointer(tx_ctx *c, unsigned op, tx_dtype elem, tx_scope scope, tx_payload u, const tx_node *const *args,
                uint32_t nargs)
{
    tx_node head = {.op = (uint16_t)op,
                    .scope = (uint8_t)scope,
                    .dtype = TX_HANDLE,
                    .elem = elem,
                    .span = c->span,
                    .nargs = nargs,
                    .u = u};

    return make_checked(c, &head, args);
}

/* A copy that differs in place or flags only keeps its value number. */
static tx_node *
copy_node(tx_ctx *c, const tx_node *n)
{
    size_t nbytes = sizeof *n + n->nargs * sizeof *n->arg;
    tx_node *copy = tx_ctx_alloc(c, 1, nbytes, _Alignof(tx_node));

    if (copy) {
        memcpy(copy, n, nbytes);
        c->nnodes++;
    }
    return copy;
}

const tx_node *
tx_with_span(tx_ctx *c, const tx_node *n, tx_span span)
{
    tx_node *copy;

    if (!n || n->span == span || !(copy = copy_node(c, n)))
        return n && n->span == span ? n : NULL;
    copy->span = span;
    return copy;
}

const tx_node *
tx_with_flags(tx_ctx *c, const tx_node *n, unsigned flags)
{
    tx_node *copy;

    if (!n)
        return NULL;
    flags = (flags & ~(unsigned)TX_NF_IMPURE) | (n->flags & TX_NF_IMPURE);
    if (n->flags == flags)
        return n;
    if ((copy = copy_node(c, n)))
        copy->flags = (uint8_t)flags;
    return copy;
}

const tx_node *
tx_with_args(tx_ctx *c, const tx_node *n, const tx_node *const *args)
{
    if (!n || child_missing(n->op, args, n->nargs))
        return NULL;
    if (n->nargs == 0 || memcmp(n->arg, args, n->nargs * sizeof *args) == 0)
        return n;
    return tx_make_node(c, n, args);
}

bool
tx_same_expr(const tx_node *a, const tx_node *b)
{
    if (a == b)
        return true;
    return a && b && a->vn == b->vn && !((a->flags | b->flags) & TX_NF_IMPURE);
}
