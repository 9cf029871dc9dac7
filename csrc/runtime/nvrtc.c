/* NVRTC, opened on first use: from the places that Python found (tirx/toolchain.py), else by its name from the system's
 * search path. The functions are declared here by hand, from the NVRTC manual, so that no toolkit is needed to build.
 * NVRTC looks for its library of builtins by name only, so the one beside it is opened first.
 * SPDX-License-Identifier: Apache-2.0 */
#include "runtime/runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

typedef struct nvrtc_program *nvrtc_program;

static struct nvrtc_table {
    pthread_mutex_t lock; /* guards the fields below; NVRTC itself may be called from several threads */
    void *lib;
    char *path; /* extra file to try, or NULL */
    int major, minor;
    char why[512]; /* of the last failure to open */
    int (*version)(int *, int *);
    const char *(*error_string)(int);
    int (*create)(nvrtc_program *, const char *, const char *, int, const char *const *, const char *const *);
    int (*destroy)(nvrtc_program *);
    int (*compile)(nvrtc_program, int, const char *const *);
    int (*log_size)(nvrtc_program, size_t *);
    int (*log)(nvrtc_program, char *);
    int (*cubin_size)(nvrtc_program, size_t *);
    int (*cubin)(nvrtc_program, char *);
    int (*ptx_size)(nvrtc_program, size_t *);
    int (*ptx)(nvrtc_program, char *);
} tx_nvrtc = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char nvrtc_program_name[] = "tirx_kernels.cu";
static const char *const nvrtc_sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

static bool
nvrtc_bind(struct nvrtc_table *t, void *lib)
{
    const struct {
        const char *name;
        void *slot;
    } want[] = {
        {"nvrtcVersion", &t->version},
        {"nvrtcGetErrorString", &t->error_string},
        {"nvrtcCreateProgram", &t->create},
        {"nvrtcDestroyProgram", &t->destroy},
        {"nvrtcCompileProgram", &t->compile},
        {"nvrtcGetProgramLogSize", &t->log_size},
        {"nvrtcGetProgramLog", &t->log},
        {"nvrtcGetCUBINSize", &t->cubin_size},
        {"nvrtcGetCUBIN", &t->cubin},
        {"nvrtcGetPTXSize", &t->ptx_size},
        {"nvrtcGetPTX", &t->ptx},
    };

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        void *fn = dlsym(lib, want[i].name);

        if (!fn) {
            snprintf(t->why, sizeof t->why, "it has no %s", want[i].name);
            return false;
        }
        memcpy(want[i].slot, &fn, sizeof fn);
    }
    if (t->version(&t->major, &t->minor) != 0) {
        snprintf(t->why, sizeof t->why, "it does not tell its version");
        return false;
    }
    return true;
}

/* The library of builtins beside `path`: libnvrtc.so.13 -> libnvrtc-builtins.so.13.*. Its full version is not known yet,
 * so the minor numbers are tried; none is needed when the loader finds it by itself. */
static void
nvrtc_open_builtins(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *so = strstr(slash ? slash : path, ".so.");
    char name[1024];

    if (!slash || !so)
        return;
    for (int minor = 0; minor < 16; minor++) {
        int major = 0, n;

        sscanf(so, ".so.%d", &major);
        n = snprintf(name, sizeof name, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - path), path, major, minor);
        if (n > 0 && n < (int)sizeof name && dlopen(name, RTLD_NOW | RTLD_GLOBAL))
            return;
    }
}

static bool
nvrtc_open(struct nvrtc_table *t, const char *path)
{
    void *lib;

    nvrtc_open_builtins(path);
    lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        const char *text = dlerror();
        snprintf(t->why, sizeof t->why, "%s", text ? text : "cannot be opened");
        return false;
    }
    if (!nvrtc_bind(t, lib)) {
        dlclose(lib);
        return false;
    }
    t->lib = lib;
    return true;
}

static bool
nvrtc_load(void)
{
    struct nvrtc_table *t = &tx_nvrtc;
    bool ok;

    pthread_mutex_lock(&t->lock);
    if (!t->lib && t->path)
        nvrtc_open(t, t->path);
    for (size_t i = 0; !t->lib && i < sizeof nvrtc_sonames / sizeof *nvrtc_sonames; i++)
        nvrtc_open(t, nvrtc_sonames[i]);
    ok = t->lib != NULL;
    pthread_mutex_unlock(&t->lock);
    return ok;
}

bool
tx_nvrtc_available(char *why, size_t n)
{
    if (nvrtc_load())
        return true;
    if (n)
        snprintf(why, n, "NVRTC is missing (%.200s): install it with `pip install tirx[cuda]`", tx_nvrtc.why);
    return false;
}

void
tx_nvrtc_set_path(const char *path)
{
    struct nvrtc_table *t = &tx_nvrtc;
    size_t n = path ? strlen(path) + 1 : 0;
    char *copy = n ? tx_malloc(n) : NULL;

    if (copy)
        memcpy(copy, path, n);
    pthread_mutex_lock(&t->lock);
    tx_free(t->path);
    t->path = copy;
    pthread_mutex_unlock(&t->lock);
}

static bool
nvrtc_fail(tx_call_error *e, const char *call, int code)
{
    e->cls = TX_CALL_RUNTIME_ERROR;
    e->code = code;
    snprintf(e->text, sizeof e->text, "%s failed with error: %s", call,
             tx_nvrtc.error_string ? tx_nvrtc.error_string(code) : "?");
    return false;
}

static bool
nvrtc_ready(tx_call_error *e)
{
    e->cls = TX_CALL_RUNTIME_ERROR;
    e->code = 0;
    return tx_nvrtc_available(e->text, sizeof e->text);
}

bool
tx_nvrtc_version(int *major, int *minor, tx_call_error *e)
{
    if (!nvrtc_ready(e))
        return false;
    *major = tx_nvrtc.major;
    *minor = tx_nvrtc.minor;
    return true;
}

static char *
nvrtc_take_log(nvrtc_program p)
{
    size_t n = 0;
    char *log;

    if (tx_nvrtc.log_size(p, &n) != 0 || n <= 1 || !(log = tx_calloc(n + 1, 1)))
        return NULL;
    if (tx_nvrtc.log(p, log) == 0)
        return log;
    tx_free(log);
    return NULL;
}

static bool
nvrtc_take(nvrtc_program p, bool want_ptx, tx_nvrtc_result *out, tx_call_error *e)
{
    size_t n = 0;
    int rc = want_ptx ? tx_nvrtc.ptx_size(p, &n) : tx_nvrtc.cubin_size(p, &n);
    char *data;

    if (rc != 0 || n == 0)
        return nvrtc_fail(e, want_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", rc);
    if (!(data = tx_malloc(n))) {
        e->cls = TX_CALL_MEMORY_ERROR;
        snprintf(e->text, sizeof e->text, "out of memory");
        return false;
    }
    rc = want_ptx ? tx_nvrtc.ptx(p, data) : tx_nvrtc.cubin(p, data);
    if (rc != 0) {
        tx_free(data);
        return nvrtc_fail(e, want_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", rc);
    }
    if (want_ptx)
        out->ptx = data, out->ptx_nbytes = n - 1; /* NUL-terminated */
    else
        out->cubin = data, out->cubin_nbytes = n;
    return true;
}

bool
tx_nvrtc_compile(const char *source, const char *const *options, bool want_ptx, tx_nvrtc_result *out, tx_call_error *e)
{
    nvrtc_program p = NULL;
    int n = 0, rc;
    bool ok = false;

    memset(out, 0, sizeof *out);
    if (!nvrtc_ready(e))
        return false;
    while (options && options[n])
        n++;
    rc = tx_nvrtc.create(&p, source, nvrtc_program_name, 0, NULL, NULL);
    if (rc != 0)
        return nvrtc_fail(e, "nvrtcCreateProgram", rc);
    rc = tx_nvrtc.compile(p, n, options);
    out->log = nvrtc_take_log(p);
    ok = rc == 0 ? nvrtc_take(p, want_ptx, out, e) : nvrtc_fail(e, "nvrtcCompileProgram", rc);
    tx_nvrtc.destroy(&p);
    return ok;
}

void
tx_nvrtc_free(tx_nvrtc_result *r)
{
    tx_free(r->cubin);
    tx_free(r->ptx);
    tx_free(r->log);
    memset(r, 0, sizeof *r);
}

/* ---- options and the log ------------------------------------------------------------------------------------------- */

/* Options of lowering.md 5.9. Contraction is ours, so NVRTC never contracts. */
bool
tx_nvrtc_options(const tx_target *t, tx_cuda_needs needs, bool want_ptx, tx_nvrtc_option_list *out)
{
    uint32_t n = 0;

    memset(out, 0, sizeof *out);
    snprintf(out->arch, sizeof out->arch, "--gpu-architecture=%s_%d%.1s", want_ptx ? "compute" : "sm", t->arch,
             t->suffix ? &t->suffix : "");
    out->at[n++] = out->arch;
    out->at[n++] = "--std=c++17";
    if (needs.injected)
        out->at[n++] = "-default-device";
    else
        out->at[n++] = "--minimal";
    out->at[n++] = "--fmad=false";
    if (needs.int128)
        out->at[n++] = "--device-int128";
    if (t->lineinfo)
        out->at[n++] = "-lineinfo";
    if (t->fast_math)
        out->at[n++] = "--use_fast_math";
    out->n = n;
    return n < TX_NVRTC_MAX_OPTIONS;
}

/* "tirx_kernels.cu(LINE): rest" at the start of a log line; gives the line number, 0 when it is not one. */
static uint32_t
nvrtc_log_line(const char *line, const char *end, const char **rest)
{
    size_t n = sizeof nvrtc_program_name - 1;
    uint32_t at = 0;

    if ((size_t)(end - line) < n + 4 || memcmp(line, nvrtc_program_name, n) != 0 || line[n] != '(')
        return 0;
    for (line += n + 1; line < end && *line >= '0' && *line <= '9' && at < 100000000; line++)
        at = at * 10 + (uint32_t)(*line - '0');
    if (end - line < 2 || line[0] != ')' || line[1] != ':')
        return 0;
    *rest = line + 2;
    return at;
}

void
tx_nvrtc_map_log(const tx_ctx *c, const tx_line_map *map, const char *log, tx_sb *out, tx_span *first_error)
{
    *first_error = 0;
    while (log && *log) {
        const char *end = strchr(log, '\n'), *next, *rest = NULL;
        uint32_t line;
        tx_span span = 0;

        next = end ? end + 1 : (end = log + strlen(log));
        line = nvrtc_log_line(log, end, &rest);
        if (line && line <= map->n)
            span = map->span[line - 1];
        if (span) {
            const tx_span_info *i = tx_span_at(c, span);

            tx_sb_f(out, "%s:%u:%u:", c->files.at[i->file].name->text, i->line, i->col + 1);
            tx_sb_put(out, rest, (size_t)(end - rest));
            if (!*first_error && end - rest > 7 && memcmp(rest, " error", 6) == 0)
                *first_error = span;
        } else {
            tx_sb_put(out, log, (size_t)(end - log));
        }
        tx_sb_putc(out, '\n');
        log = next;
    }
}
