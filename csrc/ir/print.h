/* What the files of the printer share: its state, names, expressions. Owner: ir. Private to print*.c.
 * Must not know passes, back ends or Python.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_IR_PRINT_H
#define TX_IR_PRINT_H

#include "ir/ir.h"

typedef struct tx_printer {
    tx_ctx *c;    /* scratch: names are interned here; with `rebuild` it also owns the nodes that are printed */
    tx_sb *out;   /* where text goes now */
    tx_sb prolog; /* lines before the decorator: symbols of g2 */
    tx_sb decls;  /* lines that come first in the body: symbols, matched buffers, views */
    bool g2, sugar;
    bool rebuild;              /* operators that the constructors would fold or change get their named form */
    bool saw_var;              /* set when a variable is printed (quoting of shapes) */
    int width, level;          /* blanks of one indent; current depth */
    int base_level;            /* depth of the function's body */
    uint32_t nlines;           /* statements written, to know when `pass` is needed */
    tx_map names;              /* variable or buffer -> const tx_str * */
    tx_map taken;              /* const tx_str * -> next suffix + 1 */
    tx_map outer;              /* const tx_str * of the names before the functions, which no two of them share */
    tx_map used;               /* buffer -> 1: some access or .data names it */
    tx_map declared;           /* buffer -> 1: a statement or parameter declares it */
    TX_VEC(tx_buffer *) loose; /* buffers that are used and that nothing declares, in order of first use */
    const tx_func *f;          /* the function, or NULL */
    const char *module_class;  /* "Module" inside of one, else NULL */
} tx_printer;

/* Binding strength of an expression's text, weakest first: Python's table. */
enum tx_strength {
    TX_PREC_ANY,
    TX_PREC_OR,
    TX_PREC_AND,
    TX_PREC_NOT,
    TX_PREC_COMPARE,
    TX_PREC_BOR,
    TX_PREC_BXOR,
    TX_PREC_BAND,
    TX_PREC_SHIFT,
    TX_PREC_SUM,
    TX_PREC_PRODUCT,
    TX_PREC_UNARY,
    TX_PREC_ATOM
};

/* ---- print_name.c ---- */
bool tx_printer_init(tx_printer *p, tx_ctx *scratch, tx_sb *out);
bool tx_printer_reserve(tx_printer *p); /* forgets all names but `outer`; Python's words are taken */
void tx_printer_free(tx_printer *p);
/* A name that nothing else in the function has, from a hint; NULL when out of memory. */
const tx_str *tx_print_fresh(tx_printer *p, const tx_str *hint);
/* Declares a variable or a buffer under a fresh name made from its hint. */
const char *tx_print_name(tx_printer *p, const void *of, const tx_str *hint);
const char *tx_print_outer_name(tx_printer *p, const void *of, const tx_str *hint); /* before the function */
const char *tx_print_known(const tx_printer *p, const void *of);                    /* or NULL */
void tx_print_word(const char *text, char *word, size_t size); /* the text as a word of Python; "f" for an empty one */
void tx_print_use_name(tx_printer *p, const void *of, const char *name);

/* ---- print_expr.c ---- */
void tx_print_expr(tx_printer *p, const tx_node *n, int weakest); /* in parentheses when it binds weaker than that */
void
tx_print_index(tx_printer *p, const tx_node *n, uint32_t first, uint32_t count); /* "[i, j:j + 4]" of n's children */
void tx_print_string(tx_sb *out, const char *text, size_t len);                  /* a Python literal */
void tx_print_dtype(tx_printer *p, tx_dtype t);                   /* "float32" in quotes, or T.float32 in g2 */
void tx_print_attr_value(tx_printer *p, const tx_node *n);        /* plain numbers and strings where they read back */
void tx_print_attrs(tx_printer *p, const tx_attr *a, uint32_t n); /* {"key": value, ...} */
bool tx_print_as_cell(const tx_printer *p, const tx_buffer *b);   /* named like a scalar */
void tx_print_pointer_type(tx_printer *p, tx_dtype elem, unsigned scope); /* T.handle("float32", "shared") */

/* ---- print_stmt.c ---- */
void tx_print_block(tx_printer *p, const tx_node *body); /* statements one level deeper; `pass` when there are none */
void tx_print_stmts(tx_printer *p, const tx_node *body); /* at the current level */
void tx_print_line(tx_printer *p);                       /* indents */
void tx_print_end(tx_printer *p);                        /* newline */
void tx_print_shape(tx_printer *p, const tx_node *const *dims, uint32_t rank, bool quoted);
/* The keywords of a buffer that differ from what a call with this scope gives. */
void tx_print_buffer_rest(tx_printer *p, const tx_buffer *b, unsigned scope, bool quoted);
void tx_print_views_of(tx_printer *p, const tx_var *data, const char *pointer); /* declarations of loose buffers */
void tx_print_match(tx_printer *p, const tx_buffer *b, const char *param);
void tx_print_scan(tx_printer *p, const tx_func *f); /* fills used, declared, loose */

/* ---- print_view.c ---- */
bool tx_print_view(tx_printer *p, const tx_buffer *b, const tx_node *pointer); /* A.view(4, 16); false: T.decl_buffer */

/* ---- shared with compare.c: how a LAUNCH reads as a call: kernel arguments, then the extents in use ---- */
uint32_t tx_launch_operands(const tx_node *launch, const tx_node **out, uint32_t room); /* gives the count */

#endif
