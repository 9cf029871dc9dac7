/* PTX instructions that exchange values between the lanes of a warp. SPDX-License-Identifier: Apache-2.0 */
#include "emu/ptx_list.h"

#define HAS_TOKEN(t) tx_has_tok(k, TK_##t)
#define EACH_LANE(l) for (uint32_t left_ = there, l; left_ && (l = tx_first_lane(left_), true); left_ &= left_ - 1)

/* The c operand: clamp in bits 0 to 4, segment mask in bits 8 to 12. */
static int
ptx_warp_source_lane(const tx_ptx_op *k, uint32_t lane, uint32_t b, uint32_t c)
{
    uint32_t segment = c >> 8 & 31, clamp = c & 31;
    int low = (int)(lane & segment), most = (int)((lane & segment) | (clamp & ~segment)), j;
    b &= 31;
    if (HAS_TOKEN(up)) {
        j = (int)lane - (int)b;
        return j >= most ? j : -1;
    }
    j = HAS_TOKEN(down) ? (int)(lane + b) : HAS_TOKEN(bfly) ? (int)(lane ^ b) : (int)((uint32_t)low | (b & ~segment));
    return j <= most ? j : -1;
}

TX_PTX_WARP(shfl)
{
    EACH_LANE(l)
    {
        int from = ptx_warp_source_lane(k, l, (uint32_t)in[1][l], (uint32_t)in[2][l]);
        if (from >= 0 && !(there >> from & 1))
            return (int)(l << 8) | from;
        out[0][l] = in[0][from < 0 ? (int)l : from];
        if (k->nout > 1)
            out[1][l] = from >= 0;
    }
    return -1;
}

TX_PTX_WARP(vote)
{
    uint32_t yes = 0;
    EACH_LANE(l) yes |= in[0][l] ? 1u << l : 0;
    EACH_LANE(l)
    out[0][l] = HAS_TOKEN(all)   ? yes == there
                : HAS_TOKEN(any) ? yes != 0
                : HAS_TOKEN(uni) ? yes == there || yes == 0
                                 : yes;
    return -1;
}

TX_PTX_WARP(match)
{
    bool same = true;
    uint32_t first = tx_first_lane(there);
    EACH_LANE(l) same = same && in[0][l] == in[0][first];
    EACH_LANE(l)
    {
        uint32_t equal = 0;
        for (uint32_t o = 0; o < TX_LANES; o++)
            equal |= (there >> o & 1) && in[0][o] == in[0][l] ? 1u << o : 0;
        out[0][l] = HAS_TOKEN(any) ? equal : same ? there : 0;
        if (k->nout > 1)
            out[1][l] = same;
    }
    return -1;
}

static uint64_t
ptx_warp_reduce(const tx_ptx_op *k, uint64_t x, uint64_t y)
{
    bool less = k->in_t[0].cls == 's' ? (int32_t)x < (int32_t)y : x < y;
    if (HAS_TOKEN(min) || HAS_TOKEN(max))
        return less == HAS_TOKEN(min) ? x : y;
    return HAS_TOKEN(add) ? x + y : HAS_TOKEN(and) ? x & y : HAS_TOKEN(or) ? x | y : x ^ y;
}

static uint64_t
reduce_float(const tx_ptx_op *k, uint64_t x, uint64_t y)
{
    double a = tx_ptx_decode(FM_F32, x), b = tx_ptx_decode(FM_F32, y);
    if (a != a || b != b)
        return HAS_TOKEN(NaN) || (a != a && b != b) ? tx_ptx_nan(FM_F32) : a != a ? y : x;
    bool less = a < b || (a == b && x >> 31 > y >> 31);
    return less == HAS_TOKEN(min) ? x : y;
}

TX_PTX_WARP(redux)
{
    bool flt = k->in_t[0].fmt == FM_F32, first = true;
    uint64_t r = 0;
    EACH_LANE(l)
    {
        uint64_t v = in[0][l] & (HAS_TOKEN(abs) ? 0x7fffffff : 0xffffffff);
        r = first ? v : flt ? reduce_float(k, r, v) : ptx_warp_reduce(k, r, v);
        first = false;
    }
    EACH_LANE(l) out[0][l] = r & 0xffffffff;
    return -1;
}

TX_PTX_WARP(elect)
{
    uint32_t first = tx_first_lane(there), mask = (uint32_t)in[0][first];
    uint32_t leader = mask & there ? tx_first_lane(mask & there) : first;
    EACH_LANE(l)
    {
        out[0][l] = leader;
        if (k->nout > 1)
            out[1][l] = l == leader;
    }
    return -1;
}

/* ---- rows that code_ptx.c turns into instructions of the VM, or that do nothing to values -------------------------------- */

TX_PTX_ROW(ld, PH_LD)
TX_PTX_ROW(st, PH_ST)
TX_PTX_ROW(atom, PH_ATOM)
TX_PTX_ROW(red, PH_ATOM)
TX_PTX_ROW(bar_sync, PH_BAR)
TX_PTX_ROW(bar_arrive, PH_BAR)
TX_PTX_ROW(bar_red, PH_BAR)
TX_PTX_ROW(warp_sync, PH_WSYNC)
TX_PTX_ROW(activemask, PH_ACTIVE)
TX_PTX_ROW(nop_hint, PH_NOTHING)
TX_PTX_ROW(discard, PH_NOTHING)
TX_PTX_ROW(griddep, PH_GRIDDEP)
TX_PTX_ROW(multimem, PH_MULTIMEM)
