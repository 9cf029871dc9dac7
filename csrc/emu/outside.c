/* What a kernel asks of the world outside: printf, injected functions, assertions, and what is not emulated.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "emu/vm.h"

static tx_slot
outside_value(const tx_frag *f, const tx_vreg *r, uint32_t lane)
{
    bool wide = r->vt == VT_I64 || r->vt == VT_U64 || r->vt == VT_F64;
    tx_slot s = {0};
    if (r->vt == VT_B)
        s.u32 = tx_reg(f, r->reg)->u32 >> (r->row ? lane : 0) & 1;
    else
        memcpy(&s, f->R + r->reg + (r->row ? lane * (wide ? 8 : 4) : 0), wide ? 8 : 4);
    return s;
}

/* ---- printf ------------------------------------------------------------------------------------------------------ */

typedef struct spec { /* one conversion of a format */
    char flags[8];
    int width, precision; /* -1: none */
    bool star_width, star_precision;
    char conv;
} spec;

static const char *
parse_spec(const char *s, spec *o) /* behind the % */
{
    int n = 0;
    memset(o, 0, sizeof *o);
    o->width = o->precision = -1;
    while (*s && strchr("-+ #0", *s)) {
        if (n < 6)
            o->flags[n++] = *s;
        s++;
    }
    if (*s == '*')
        o->star_width = true, s++;
    else if (*s >= '0' && *s <= '9')
        for (o->width = 0; *s >= '0' && *s <= '9'; s++)
            o->width = o->width < 4096 ? o->width * 10 + (*s - '0') : o->width;
    if (*s == '.') {
        s++;
        o->precision = 0;
        if (*s == '*')
            o->star_precision = true, s++;
        for (; *s >= '0' && *s <= '9'; s++)
            o->precision = o->precision < 4096 ? o->precision * 10 + (*s - '0') : o->precision;
    }
    while (*s && strchr("hlLqjzt", *s)) /* the value knows its width */
        s++;
    o->conv = *s;
    return *s ? s + 1 : s;
}

static int64_t
as_int(const tx_vreg *r, tx_slot v)
{
    switch (r->vt) {
    case VT_U32:
    case VT_B:
    case VT_X: return v.u32;
    case VT_I64:
    case VT_U64: return v.i64;
    case VT_F32: return (int64_t)v.f32;
    case VT_F64: return (int64_t)v.f64;
    default: return v.i32;
    }
}

static double
as_double(const tx_vreg *r, tx_slot v)
{
    return r->vt == VT_F32 ? (double)v.f32 : r->vt == VT_F64 ? v.f64 : (double)as_int(r, v);
}

static void
put_conversion(tx_sb *out, const spec *o, const tx_vreg *r, tx_slot v)
{
    char fmt[32], text[4700];
    int w = o->width, p = o->precision;
    /* rebuilt from parts that are known, never the kernel's own text */
    if (strchr("diouxXc", o->conv)) {
        int64_t i = as_int(r, v);
        if (o->conv != 'd' && o->conv != 'i' && (r->vt == VT_I32 || r->vt == VT_U32))
            i &= 0xffffffff;
        if (o->conv == 'c') {
            snprintf(text, sizeof text, "%*c", w < 0 ? 0 : w, (int)i);
        } else {
            snprintf(fmt, sizeof fmt, "%%%s*%sll%c", o->flags, p >= 0 ? ".*" : "", o->conv);
            if (p >= 0)
                snprintf(text, sizeof text, fmt, w < 0 ? 0 : w, p, (long long)i);
            else
                snprintf(text, sizeof text, fmt, w < 0 ? 0 : w, (long long)i);
        }
    } else if (strchr("eEfFgGaA", o->conv)) {
        snprintf(fmt, sizeof fmt, "%%%s*%s%c", o->flags, p >= 0 ? ".*" : "", o->conv);
        if (p >= 0)
            snprintf(text, sizeof text, fmt, w < 0 ? 0 : w, p, as_double(r, v));
        else
            snprintf(text, sizeof text, fmt, w < 0 ? 0 : w, as_double(r, v));
    } else
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)as_int(r, v));
    tx_sb_puts(out, text);
}

static void
format(tx_sb *out, const tx_outside *o, const tx_frag *f, uint32_t lane)
{
    uint32_t at = 0;
    for (const char *s = o->text; *s;) {
        if (*s != '%') {
            tx_sb_putc(out, *s++);
            continue;
        }
        if (s[1] == '%') {
            tx_sb_putc(out, '%');
            s += 2;
            continue;
        }
        spec c;
        s = parse_spec(s + 1, &c);
        if (c.star_width && at < o->nargs) {
            c.width = (int)as_int(&o->args[at], outside_value(f, &o->args[at], lane)), at++;
            c.width = c.width > 4096 ? 4096 : c.width;
        }
        if (c.star_precision && at < o->nargs) {
            c.precision = (int)as_int(&o->args[at], outside_value(f, &o->args[at], lane)), at++;
            c.precision = c.precision > 4096 ? 4096 : c.precision;
        }
        if (!c.conv || at >= o->nargs)
            continue;
        put_conversion(out, &c, &o->args[at], outside_value(f, &o->args[at], lane));
        at++;
    }
}

static int
print(tx_vm *vm, tx_frag *f, const tx_outside *o)
{
    tx_sb text = {0};
    for (uint32_t left = f->m; left; left &= left - 1)
        format(&text, o, f, tx_first_lane(left));
    if (text.failed) {
        tx_sb_free(&text);
        return tx_vm_nomem(vm);
    }
    if (vm->h && vm->h->print && text.n)
        vm->h->print(vm->h->self, text.text, text.n);
    tx_sb_free(&text);
    return TX_RUN_ON;
}

/* ---- injected functions ------------------------------------------------------------------------------------------ */

static size_t
memory_size(tx_dtype t)
{
    return tx_kinds[tx_kind(t)].bytes ? tx_kinds[tx_kind(t)].bytes : 1;
}

static int
call_outside(tx_vm *vm, tx_frag *f, const tx_insn *in, const tx_outside *o)
{
    uint32_t n = (uint32_t)__builtin_popcount(f->m), i;
    bool returns = tx_kind(o->ret) != TX_KIND_VOID;
    uint8_t *space, *result;
    void *arrays[64];
    tx_dtype types[64];
    int r = TX_RUN_ON;

    if (!vm->h || !vm->h->extern_call || (vm->h->has_extern && !vm->h->has_extern(vm->h->self, o->text)) ||
        o->nargs > 64) {
        tx_emu_report *rep = tx_report_begin(vm, "unsupported", in->site);
        tx_report_agent(vm, rep, f, tx_first_lane(f->m), in->site, "call");
        tx_report_text(
            rep,
            "the emulator cannot run the injected function '%s': pass a stand-in, tirx.compile(..., externs={\"%s\": f})",
            o->text, o->text);
        return tx_report_end(vm, rep);
    }
    space = tx_malloc((o->nargs + 1) * (size_t)TX_LANES * 8);
    if (!space)
        return tx_vm_nomem(vm);
    for (i = 0; i < o->nargs; i++) {
        size_t size = memory_size(o->args[i].type);
        uint32_t at = 0;
        arrays[i] = space + i * TX_LANES * 8;
        types[i] = o->args[i].type;
        for (uint32_t left = f->m; left; left &= left - 1, at++) {
            tx_slot v = outside_value(f, &o->args[i], tx_first_lane(left));
            memcpy((uint8_t *)arrays[i] + at * size, &v, size);
        }
    }
    result = space + o->nargs * TX_LANES * 8;
    memset(result, 0, TX_LANES * 8);
    if (!vm->h->extern_call(vm->h->self, o->text, n, o->nargs, types, arrays, o->ret, returns ? result : NULL)) {
        vm->status = TX_EMU_HOST_ERROR;
        vm->stop = true;
        r = TX_RUN_STOP;
    } else if (returns) {
        size_t size = memory_size(o->ret);
        tx_vt vt = tx_vt_of(o->ret);
        uint32_t at = 0;
        for (uint32_t left = f->m; left; left &= left - 1, at++) {
            uint32_t lane = tx_first_lane(left);
            tx_slot v = {0};
            memcpy(&v, result + at * size, size);
            if (vt == VT_B) {
                tx_slot *d = tx_reg(f, in->d);
                d->u32 = (d->u32 & ~(1u << lane)) | (v.u32 & 0xff ? 1u << lane : 0);
                continue;
            }
            if (vt == VT_I32 && size < 4)
                v.i32 = size == 1 ? (int8_t)v.u32 : (int16_t)v.u32;
            memcpy(f->R + in->d + lane * (size == 8 ? 8 : 4), &v, size == 8 ? 8 : 4);
        }
    }
    tx_free(space);
    return r;
}

/* ---- dispatch ---------------------------------------------------------------------------------------------------- */

static int
outside_assertion(tx_vm *vm, tx_frag *f, const tx_insn *in, const tx_outside *o)
{
    uint32_t bad = f->m & ~tx_reg(f, in->a)->u32;
    tx_emu_report *r = tx_report_begin(vm, "assert", in->site);
    tx_report_agent(vm, r, f, tx_first_lane(bad), in->site, "assertion");
    tx_report_text(r, "%s", o->text[0] ? o->text : "assertion failed");
    return tx_report_end(vm, r);
}

int
tx_vm_outside(tx_vm *vm, tx_frag *f, const tx_insn *in)
{
    const tx_outside *o = &vm->p->outside[in->imm];
    if (in->op == V_ASSERT)
        return outside_assertion(vm, f, in, o);
    if (in->op == V_PRINTF)
        return print(vm, f, o);
    if (in->op == V_EXTERN)
        return call_outside(vm, f, in, o);
    tx_emu_report *r = tx_report_begin(vm, "unsupported", in->site);
    tx_report_agent(vm, r, f, tx_first_lane(f->m), in->site, "executed");
    tx_report_text(r, "the emulator does not know %s", o->text);
    return tx_report_end(vm, r);
}
