/* The PTX instruction table and its matcher: from spelled tokens and operands to one row of ptx.def, and what a row says
 * about its operands. Owner: ir. The printer, the parser, lower/, cuda/ and emu/ share it. Must not know inline assembly
 * or the emulator. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_PTX_H
#define TX_PTX_H

#include "ir/ir.h"

enum { TX_PTX_MAX_PARTS = 24, TX_PTX_MAX_OPERANDS = 16, TX_PTX_MAX_ARGS = 288, TX_PTX_MAX_CHOICES = 8 };

/* One token of an opcode: a literal (slot NULL, one choice) or a slot. */
typedef struct tx_ptx_part {
    const char *slot;
    bool optional;
    uint8_t nchoices;
    const char *const *choice;
} tx_ptx_part;

typedef enum tx_ptx_kind { TX_PTX_REG, TX_PTX_ADDR, TX_PTX_IMM, TX_PTX_TEXT } tx_ptx_kind;
typedef struct tx_ptx_operand {
    uint8_t kind;   /* tx_ptx_kind */
    char mode;      /* 'r' read, 'w' written, '+' both */
    bool braces;    /* a group of registers */
    bool sink;      /* lanes may be `_` */
    bool displace;  /* address may have a displacement */
    bool free;      /* present or not as the caller likes */
    bool pipe;      /* joined to the next operand by '|' */
    bool composite; /* the next operand stands inside this one's brackets */
    bool open;      /* immediate without a closed range */
    const char *name;
    const char *type;  /* PTX type, "$slot" or "@function"; addresses: their space, "" generic */
    const char *count; /* of a group: digits, "$slot" or "@function"; NULL: one */
    const char *when;  /* "slot" or "slot=a|b": present only then; NULL always */
    int64_t lo, hi, step;
    uint8_t nvalues; /* closed set of an immediate */
    int16_t value[TX_PTX_MAX_CHOICES];
} tx_ptx_operand;

typedef struct tx_ptx_row {
    const char *flags, *sm, *emu, *rules;
    uint8_t nparts, nops;
    const tx_ptx_part *part;
    const tx_ptx_operand *op;
} tx_ptx_row;

/* The table, parsed once per process. NULL: out of memory. */
const tx_ptx_row *tx_ptx_rows(uint32_t *n);

/* A resolved instruction: the payload of a PTX node. Its arguments are the operands in order, groups flat, then the guard.
 * A written operand is the ADDRESS_OF its element. */
typedef struct tx_ptx_call {
    uint16_t row;
    uint16_t nargs;                             /* operands, guard not counted */
    int8_t choice[TX_PTX_MAX_PARTS];            /* by part; -1: optional and absent */
    bool guard, keep;                           /* pred=; preserve_dst=True */
    const uint8_t *op_of;                       /* nargs entries: operand of the row that an argument belongs to */
    uint64_t sunk[(TX_PTX_MAX_ARGS + 63) / 64]; /* arguments that are `_` */
} tx_ptx_call;

static inline bool
tx_ptx_is_sunk(const tx_ptx_call *k, uint32_t arg)
{
    return k->sunk[arg / 64] >> arg % 64 & 1;
}
/* Mode of an argument: 'r', 'w', '+'; the guard is 'r'. */
char tx_ptx_mode(const tx_ptx_call *k, uint32_t arg);
/* The chosen token of a slot, "" when absent or unknown. */
const char *tx_ptx_choice(const tx_ptx_call *k, const char *slot);
/* PTX type ("u32") of an operand under these choices; for addresses the space. */
const char *tx_ptx_type(const tx_ptx_row *r, const int8_t *choice, const tx_ptx_operand *o);
/* Is operand o there under these choices? Free optional ones count as there. */
bool tx_ptx_present(const tx_ptx_row *r, const int8_t *choice, const tx_ptx_operand *o);
/* Registers of a group (1 for a single one), -1: the group is a plain register because its slot is absent. */
int tx_ptx_count(const tx_ptx_row *r, const int8_t *choice, const tx_ptx_operand *o);
/* Least architecture, e.g. 90 with *suffix 'a'. */
int tx_ptx_floor(const tx_ptx_call *k, char *suffix);
int tx_ptx_floor_of(const tx_ptx_row *r, const int8_t *choice, char *suffix);
bool tx_ptx_rules_hold(const tx_ptx_row *r, const int8_t *choice);
/* "mbarrier.init.shared.b64", in the order of the ISA. */
void tx_ptx_opcode(const tx_ptx_row *r, const int8_t *choice, tx_sb *out);

/* Resolution. Tokens are spelled as in PTX ("shared::cta"), the family first, modifiers in any order. */
typedef struct tx_ptx_arg {
    const tx_node *n;   /* NULL for a buffer or a sink */
    tx_buffer *buf;     /* a whole buffer: its first element, as an address or a register */
    bool pred, sink;    /* T.ptx.pred(x); T.ptx.SINK */
    const tx_node *off; /* T.ptx.addr(p, off) */
} tx_ptx_arg;
/* Can some row take these tokens so far? Records PTX_FAMILY or PTX_MODIFIER otherwise. */
bool tx_ptx_accepts(tx_ctx *c, const char *const *tokens, uint32_t n);
/* The PTX node (an effect), or NULL with a diagnostic at the current span. guard NULL: none. */
const tx_node *tx_ptx_resolve(tx_ctx *c, const char *const *tokens, uint32_t ntokens, const tx_ptx_arg *args,
                              uint32_t nargs, const tx_node *guard, bool keep);
/* Visits what can follow the tokens: f(self, slot or NULL for a literal, choice). */
void tx_ptx_open(const char *const *tokens, uint32_t n, void (*f)(void *self, const char *slot, const char *choice),
                 void *self);

#endif
