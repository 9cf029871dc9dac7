/* Targets by name: "cpu", "cuda", "cuda:sm_90a". Knows no device. SPDX-License-Identifier: Apache-2.0 */
#include "lower/passes.h"

/* Architectures that a table row or NVRTC knows; a suffix is kept as given. */
static const int known_archs[] = {75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};

static bool
known(int arch)
{
    for (size_t i = 0; i < sizeof known_archs / sizeof *known_archs; i++)
        if (known_archs[i] == arch)
            return true;
    return false;
}

static bool
bad(tx_ctx *c, const char *text)
{
    tx_fail(c, 0, TX_E_BAD_TARGET, text);
    return false;
}

/* Shared memory that one CTA can have, in bytes (CUDA programming guide, table of technical specifications). */
int64_t
tx_target_smem(const tx_target *t)
{
    switch (t->arch) {
    case 75: return 64 * 1024;
    case 80:
    case 87: return 163 * 1024;
    case 86:
    case 88:
    case 89:
    case 120:
    case 121: return 99 * 1024;
    default: return TX_MAX_DYN_SMEM; /* 90 and the tens; the emulator; not known yet */
    }
}

bool
tx_target_parse(tx_ctx *c, const char *text, tx_target *out)
{
    const char *p = text;
    int arch = 0;

    *out = (tx_target){.contract = true};
    if (strcmp(text, "cpu") == 0) {
        out->emulator = true;
        return true;
    }
    if (strncmp(p, "cuda", 4) != 0)
        return bad(c, text);
    p += 4;
    if (*p == 0)
        return true;
    if (strncmp(p, ":sm_", 4) != 0)
        return bad(c, text);
    for (p += 4; *p >= '0' && *p <= '9' && arch < 1000; p++)
        arch = arch * 10 + (*p - '0');
    if (*p == 'a' || *p == 'f')
        out->suffix = *p++;
    if (*p != 0 || !known(arch) || (out->suffix && arch < 90))
        return bad(c, text);
    out->arch = arch;
    return true;
}

bool
tx_target_name(const tx_target *t, tx_sb *out)
{
    if (t->emulator) {
        tx_sb_puts(out, "cpu");
    } else {
        tx_sb_puts(out, "cuda");
        if (t->arch)
            tx_sb_f(out, ":sm_%d", t->arch);
        if (t->arch && t->suffix)
            tx_sb_putc(out, t->suffix);
    }
    return !out->failed;
}
