"""The C extension: what the Python layer may rely on. Every function that finds a fault of the user's raises
`tirx.DiagnosticError` (or its subclass by the row's class in base/diag.def) at the context's current span.

DTypeLike: a str ("float32x4"), an object with attribute `__tirx_dtype__` (str), or a NumPy/torch dtype object (recognised by
type name, without importing either). ExprLike: Expr, Buffer with one element (loaded), int, float, bool, NumPy scalar, or an
object with method `__tirx_expr__(ctx) -> Expr` (symbols and expressions made outside kernels).
"""

from typing import Any, NoReturn

DTypeLike = Any
ExprLike = Any

# ---- tables -------------------------------------------------------------------------------------------------------
def ops() -> list[tuple[int, str, str, int, str, int]]: ...  # (id, name, spelling, operands, rule, props)
def dtypes() -> list[tuple[str, str | None, str, int, int]]: ...  # (text, alias, class letter, bits, bytes)
def diags() -> list[tuple[str, str, str, str | None]]: ...  # (name, class, text, help)
def scopes() -> list[str]: ...
def parse_dtype(x: DTypeLike) -> str: ...  # canonical text; ValueError when unknown
def promote(a: str, b: str) -> str: ...
def encode(dtype: str, value: float) -> int: ...  # bit pattern of one element (exact conversions; tests)
def decode(dtype: str, bits: int) -> float: ...
def register_errors(table: dict[str, type]) -> None:
    ...
    # called once by tirx/errors.py: "DiagnosticError", "DiagnosticValueError", ..., "CompileError", "NvrtcError", "CUDAError",
    # "InternalError", "EmulationError", "EmulationWarning"

def fail_alloc_at(n: int) -> None: ...  # tests: the n-th allocation from now fails
def alloc_count() -> int: ...

# ---- context ------------------------------------------------------------------------------------------------------
class Context:
    """One compilation's arena, sources and diagnostics. Single-threaded; kept alive by every object made from it."""

    span: int  # current span id; 0 unknown
    frozen: bool
    def __init__(self) -> None: ...
    def add_file(self, name: str, text: str, first_line: int = 1) -> int: ...
    def set_place(self, file: int, function: str, col_offset: int = 0, line_offset: int = 0) -> None:
        ...
        # file and function of the spans made by at(); offsets are added to ast positions (dedented text)
    def at(
        self, node: Any
    ) -> int: ...  # current span := position of an ast node (lineno, col_offset, end_lineno, end_col_offset)
    def at_pos(self, line: int, col: int, end_line: int, end_col: int) -> int: ...
    def push_inline(self, file: int, function: str, col_offset: int = 0, line_offset: int = 0) -> None:
        ...
        # later spans are inlined at the current one; raises for TX_MAX_INLINE_DEPTH
    def pop_inline(self) -> None: ...
    def fail(self, name: str, *args: object, span: int | None = None, help: str | None = None) -> NoReturn: ...
    def record(self, name: str, *args: object, span: int | None = None, help: str | None = None) -> None:
        ...
        # as fail, but goes on: raised together by raise_if_failed()
    def warn(self, name: str, *args: object, span: int | None = None) -> None: ...
    def raise_if_failed(self) -> None: ...
    def take_warnings(self) -> list[tuple[str, str, int, str]]: ...  # (text, filename, line, row), cleared
    def here(self) -> None: ...  # while tracing: current span := place of the innermost frame outside the package
    def trace(self, describe: Any) -> Any:
        ...
        # describe(code) -> (file, its text, function, [position by code unit]), or None for the package's own code; gives the
        # one before
    def span_info(
        self, span: int
    ) -> tuple[str, int, int, int, int, int]: ...  # file, line, col, end line, end col, inlined_at

# ---- expressions --------------------------------------------------------------------------------------------------
class Expr:
    """An IR expression. Operators follow language.md 6 (promotion, folding). bool() raises the error of 12.3, unless it is a
    constant; int(), float() and index() of constants are the Python number. Hashed by identity; one object a variable."""

    ctx: Context
    dtype: str
    op: str  # row name in ops.def: "VAR", "ADD", ...
    span: int
    args: tuple  # children (Expr); LOAD: indices
    value: Any  # INT, FLOAT: the Python number; STR: str; else None
    name: str | None  # VAR
    buffer: "Buffer | None"  # LOAD, BUFFER_DATA
    weak: bool  # a plain number that takes the other operand's dtype
    elem: str | None  # handles: dtype of the pointee
    def scope(self) -> str: ...  # handles: memory space of the pointee
    def astype(self, dtype: DTypeLike) -> Expr: ...
    def same_as(self, other: Expr) -> bool: ...
    children: tuple[Expr, ...]  # args without the missing ones
    def replace(self, **fields: Any) -> Expr: ...  # the same node with other fields; checked
    def __getattr__(self, name: str) -> Any: ...  # fields by ir/nodes.def: loop.body, store.indices
    def __add__(self, other: Any) -> Expr: ...
    def __radd__(self, other: Any) -> Expr: ...
    def __sub__(self, other: Any) -> Expr: ...
    def __rsub__(self, other: Any) -> Expr: ...
    def __mul__(self, other: Any) -> Expr: ...
    def __rmul__(self, other: Any) -> Expr: ...
    def __truediv__(self, other: Any) -> Expr: ...
    def __rtruediv__(self, other: Any) -> Expr: ...
    def __floordiv__(self, other: Any) -> Expr: ...
    def __rfloordiv__(self, other: Any) -> Expr: ...
    def __mod__(self, other: Any) -> Expr: ...
    def __rmod__(self, other: Any) -> Expr: ...
    def __lshift__(self, other: Any) -> Expr: ...
    def __rlshift__(self, other: Any) -> Expr: ...
    def __rshift__(self, other: Any) -> Expr: ...
    def __rrshift__(self, other: Any) -> Expr: ...
    def __and__(self, other: Any) -> Expr: ...
    def __rand__(self, other: Any) -> Expr: ...
    def __or__(self, other: Any) -> Expr: ...
    def __ror__(self, other: Any) -> Expr: ...
    def __xor__(self, other: Any) -> Expr: ...
    def __rxor__(self, other: Any) -> Expr: ...
    def __pow__(self, other: Any) -> Expr: ...
    def __rpow__(self, other: Any) -> Expr: ...
    def __neg__(self) -> Expr: ...
    def __invert__(self) -> Expr: ...
    def __abs__(self) -> Expr: ...
    def __lt__(self, other: Any) -> Expr: ...
    def __le__(self, other: Any) -> Expr: ...
    def __gt__(self, other: Any) -> Expr: ...
    def __ge__(self, other: Any) -> Expr: ...
    def __index__(self) -> int: ...
    def __float__(self) -> float: ...
    # + - * / // % << >> & | ^ ~ ** abs() divmod() == != < <= > >= unary -, each also reflected; [k] on a pointer or vector is an error

def as_expr(ctx: Context, x: ExprLike, dtype: DTypeLike | None = None) -> Expr:
    ...
    # a plain number stays weak unless dtype is given (then a range-checked literal); dtype casts an Expr

def literal(
    ctx: Context, dtype: DTypeLike, value: Any
) -> Expr: ...  # T.uint8(300): range-checked; "inf", "-inf", "nan"
def string(ctx: Context, text: str) -> Expr: ...
def op(ctx: Context, name: str | int, *args: ExprLike) -> Expr: ...  # by row name ("EXP"), spelling or id; rule applies
def make(
    ctx: Context, name: str, dtype: DTypeLike, args: tuple, *, i: int = 0, call: tuple[str, str | None] | None = None
) -> Expr:
    ...
    # rule NONE rows: SHFL, PRINTF, FUNC_CALL, ATOMIC_ADD, LDG, ...; call = (name, injected source)

def cast(ctx: Context, dtype: DTypeLike, x: ExprLike) -> Expr: ...
def reinterpret(ctx: Context, dtype: DTypeLike, x: ExprLike) -> Expr: ...
def select(ctx: Context, cond: ExprLike, a: ExprLike, b: ExprLike, lazy: bool) -> Expr: ...
def condition(ctx: Context, x: ExprLike) -> Expr: ...
def ramp(ctx: Context, base: ExprLike, stride: ExprLike, lanes: int) -> Expr: ...
def broadcast(ctx: Context, x: ExprLike, lanes: int) -> Expr: ...
def shuffle(ctx: Context, vecs: list, idx: list[int]) -> Expr: ...
def let(ctx: Context, var: Expr, value: ExprLike, body: ExprLike, fresh: bool = False) -> Expr: ...
def coord(ctx: Context, name: str, axis: int) -> Expr: ...
def address_of(ctx: Context, x: "Expr | Buffer") -> Expr: ...
def ptr_offset(ctx: Context, ptr: Expr, nbytes: ExprLike, elem: DTypeLike) -> Expr: ...
def var(
    ctx: Context, kind: str, name: str, dtype: DTypeLike, elem: DTypeLike | None = None, scope: str = "global"
) -> Expr:
    ...
    # kind: "param" "symbol" "loop" "let" "scope_id" "free"

def rename(x: "Expr | Buffer", name: str) -> None: ...  # only before printing: T.bind_, assignment of unnamed results
def equal(a: Expr, b: Expr) -> bool: ...  # structural

# ---- nodes: tirx.ir makes classes of these ---------------------------------------------------------------------------
def node_classes() -> list[
    tuple[str, str, str, str, str]
]: ...  # (op, class, children, other fields, "Stmt" or "PrimExpr")
def make_statement(ctx: Context, name: str, *fields: Any) -> Expr: ...  # by its class, all fields in order
def nodes_equal(a: Expr, b: Expr, map_free_vars: bool) -> bool: ...
def node_hash(x: Expr, map_free_vars: bool) -> int: ...
def rewrite(f: "Function", fn: Any) -> "Function": ...  # fn(node) -> node, number, list of statements or None

# ---- the simplifier, for tests and tools --------------------------------------------------------------------------
# ranges: {variable or coordinate: (lo, hi)} (either may be None); multiples: {variable: (m, r)}; assume: conditions
def simplify(
    ctx: Context, expr: ExprLike, ranges: dict | None = None, multiples: dict | None = None, assume: list | None = None
) -> Expr: ...
def bounds(
    ctx: Context, expr: ExprLike, ranges: dict | None = None, multiples: dict | None = None, assume: list | None = None
) -> tuple[int | None, int | None]: ...
def divisor(
    ctx: Context, expr: ExprLike, ranges: dict | None = None, multiples: dict | None = None, assume: list | None = None
) -> tuple[int, int]: ...  # (m, r): m*k + r; m = 0: exactly r
def prove(
    ctx: Context,
    expr: ExprLike,
    ranges: dict | None = None,
    multiples: dict | None = None,
    assume: list | None = None,
    *,
    extent: ExprLike | None = None,
) -> bool | None: ...  # with extent: whether 0 <= expr < extent is proved

# ---- buffers ------------------------------------------------------------------------------------------------------
class Buffer:
    """A tensor, array, view or cell. One-element buffers also act as a number (their element is loaded)."""

    ctx: Context
    name: str
    dtype: str
    shape: tuple  # int | Expr
    strides: tuple  # int | Expr
    given_strides: tuple | None  # None for dense row-major
    elem_offset: Any  # int | Expr; found from the other where that was given
    byte_offset: Any  # int | Expr
    data: Expr
    align: int
    data_alignment: int  # the same
    offset_factor: int
    is_cell: bool
    flags: int
    origin: "Buffer | None"
    value: "Buffer"  # itself
    buffer: "Buffer"  # itself (cells)
    layout: Any
    allocated_addr: list
    def scope(self) -> str: ...
    def ptr_to(self, indices: Any) -> Expr: ...
    def load(self, *indices: ExprLike) -> Expr: ...
    def __getitem__(self, indices: Any) -> Any:
        ...
        # Expr for full int indices, and for a last slice with an explicit step of 1 (a ramp load of constant length); fewer
        # indices or other slices give a Region
    def __setitem__(self, indices: Any, value: ExprLike) -> None:
        ...
        # emits a store into the current builder; a last slice of constant length stores a vector, another region is a loop
    # installed by tirx.script.views
    sub: Any  # A.sub[2, 4:8]
    def view(self, *shape: Any, layout: Any = "default", dtype: Any = None) -> "Buffer": ...
    def permute(self, *dims: Any) -> "Buffer": ...
    def rearrange(self, pattern: str, /, **sizes: Any) -> "Buffer": ...
    def tile(self, dim: int, factors: Any) -> Any: ...
    def chunk(self, spec: Any) -> Any: ...
    def local(self, *shape: Any, layout: Any = "default") -> "Buffer": ...
    def with_dtype(self, dtype: Any) -> "Buffer": ...
    def with_allocated_addr(self, addr: Any) -> "Buffer": ...
    def get_flattened_buffer(self) -> "Buffer": ...
    def elem_offset_of(self, indices: Any) -> Any: ...
    def offset_of(self, indices: Any) -> list: ...
    def access_ptr(
        self, access_mask: Any, ptr_type: Any = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None
    ) -> Expr: ...
    def astype(self, dtype: DTypeLike) -> Expr: ...  # of one element
    def vload(self, begin: Any, dtype: Any = None, predicate: Any = None) -> Any: ...
    def vstore(self, begin: Any, value: Any, predicate: Any = None) -> None: ...

class Region:
    """Part of a buffer. As an operand (arithmetic, as_expr, store) one row of it is the vector of its elements; indices count
    from its start and go to the dimensions that were not indexed by an integer, so that A[i][j] is A[i, j]."""

    ctx: Context
    dtype: str
    buffer: Buffer
    start: tuple
    extent: tuple
    def __getitem__(self, indices: Any) -> Any: ...

def buffer(
    ctx: Context,
    name: str,
    shape: Any,
    dtype: DTypeLike = "float32",
    scope: str = "global",
    *,
    data: Expr | None = None,
    strides: Any = None,
    elem_offset: ExprLike | None = None,
    byte_offset: ExprLike | None = None,
    align: int = 0,
    offset_factor: int = 1,
    layout: Any = "default",
    allocated_addr: Any = None,
    annotations: dict | None = None,
    flags: int = 0,
) -> Buffer: ...  # the record only: emit with Builder.alloc / decl / match

# ---- builder ------------------------------------------------------------------------------------------------------
def current() -> "Builder | None": ...  # this thread's innermost active builder

class Builder:
    """Statements under construction. Statement spans are the context's current span."""

    ctx: Context
    before: Any  # called once before the next store, or None: flat forms wait for it
    zone: str  # "host" or "device"
    depth: int
    count: int  # statements in the innermost block so far
    in_loop: bool
    dialect: str  # "g1" or "g2"
    name: str
    flags: int
    def __init__(self, ctx: Context, name: str, dialect: str) -> None: ...
    def activate(self) -> None: ...  # becomes current(); nests
    def deactivate(self) -> None: ...
    def param(
        self, name: str, x: "Expr | Buffer", flags: int = 0
    ) -> None: ...  # in call order; Buffer for annotated tensors
    def add_symbol(self, x: Expr) -> None: ...
    def set_attr(self, key: str, value: Any) -> None: ...  # func_attr
    def set_flags(self, flags: int) -> None: ...
    def set_name(self, name: str) -> None: ...  # the function's Python name
    def set_symbol(self, name: str | None) -> None: ...  # global_symbol
    def set_ret(self, dtype: DTypeLike) -> None: ...
    def match(self, param: Expr, buf: Buffer) -> None: ...  # binds a handle parameter; the parameter becomes the buffer
    def alloc(self, buf: Buffer) -> None: ...
    def decl(self, buf: Buffer, data: Expr) -> None: ...
    def store(
        self, buf: Buffer, indices: Any, value: ExprLike
    ) -> None: ...  # casts to the element type (language.md 6.4)
    def bind(self, name: str, value: ExprLike, dtype: DTypeLike | None = None, droppable: bool = False) -> Expr:
        ...
        # immutable; gives the variable. droppable: at the end, if nothing reads it, the value stands for its effect
    def cell(self, name: str, dtype: DTypeLike, init: ExprLike | None = None, scope: str = "local") -> Buffer: ...
    def evaluate(self, x: ExprLike) -> None: ...
    def open_for(
        self,
        name: str,
        start: ExprLike,
        stop: ExprLike,
        step: ExprLike = 1,
        kind: str = "serial",
        unroll: int = 0,
        annotations: dict | None = None,
        dtype: DTypeLike | None = None,
    ) -> Expr: ...  # bounds are taken once
    def open_while(self, cond: ExprLike) -> None: ...
    def open_if(self, cond: ExprLike) -> None: ...
    def open_else(self) -> None: ...
    def open_attr(self, key: str, value: Any) -> None: ...  # with form
    def attr(self, key: str, value: Any) -> None: ...  # flat form: the rest of the enclosing block
    def close(self) -> None: ...
    def device_entry(self, launch: dict | None = None, with_form: bool = False) -> None:
        ...
        # launch: grid/block/cluster/preferred (lists of ExprLike, None), dyn_smem, stream, priority, cooperative, pdl,
        # cluster_policy, mem_sync_domain, carveout, min_blocks, max_blocks_per_cluster, max_registers, required_block_size, attrs
    def scope_id(
        self, call: str, names: list[str], extents: list | None, preferred: list | None, dtype: str
    ) -> list[Expr]: ...
    def assert_(self, cond: ExprLike, kind: str, parts: list[str]) -> None: ...
    def return_(self, value: ExprLike | None = None) -> None: ...
    def break_(self) -> None: ...
    def continue_(self) -> None: ...
    def hoist_cell(
        self, name: str, dtype: DTypeLike, level: int
    ) -> Buffer: ...  # allocate in an outer open block (depth level)
    def finish(self, verify: bool = True) -> "Function": ...  # closes what is open, checks, freezes the context

# ---- functions and modules ----------------------------------------------------------------------------------------
class Function:
    """An immutable PrimFunc (g1) or Function (g2)."""

    ctx: Context
    __name__: str
    symbol: str | None
    dialect: str
    flags: int
    params: list  # (name, Expr | Buffer)
    attrs: dict
    ret_type: str | None
    def script(
        self,
        *,
        name: str | None = None,
        dialect: str | None = None,
        indent_spaces: int = 4,
        print_line_numbers: bool = False,
        syntax_sugar: bool = True,
        header: bool = True,
    ) -> str: ...
    def show(self, style: str | None = None, **options: Any) -> None: ...
    def with_attr(self, key: str, value: Any) -> "Function": ...
    def without_attr(self, key: str) -> "Function": ...
    body: Expr  # the statement that it is
    def with_body(self, body: Expr) -> "Function": ...  # a statement of the same context
    def specialize(
        self, values: dict[Expr | str, Any]
    ) -> "Function": ...  # scalar parameters and symbols become constants
    def structural_hash(self) -> int: ...
    # == is identity; tirx.structural_equal(a, b) compares

class Module:
    ctx: Context
    names: list[str]
    attrs: dict
    def __init__(
        self, functions: dict[str, Function], attrs: dict[str, Any] | None = None
    ) -> None: ...  # imports them into a fresh context
    def __getitem__(self, name: str) -> Function: ...
    def script(self, **options: Any) -> str: ...

def structural_equal(a: "Function | Module", b: "Function | Module") -> bool: ...

# ---- compilation --------------------------------------------------------------------------------------------------
def parse_target(text: str) -> dict: ...  # {"kind", "arch", "suffix"}; ValueError
def passes() -> list[tuple[str, str, bool]]: ...  # (name, aliases, in pipeline)
def run_pass(name: str, m: Module, target: str, options: dict) -> Module: ...
def lower(
    m: "Module | Function", target: str, options: dict
) -> Module: ...  # options: contract, fast_math, lineinfo, disable_assert
def cuda_source(
    lowered: Module, target: str, options: dict
) -> tuple[str, bytes]: ...  # text, line map (uint32 span a line)
def cuda_needs(lowered: Module) -> dict: ...  # floor: (arch, suffix), toolkit_headers, int128, injected
def vm_code(lowered: Module) -> str: ...  # disassembly
def plan_text(lowered: Module) -> str: ...

# ---- running ------------------------------------------------------------------------------------------------------
class Executable:
    """exe(*args, stream=None, check=True, schedule=None, numerics="fast", **parameters by name). Made by tirx.compile, which
    subclasses nothing: exe.source, exe.ptx, exe.cubin, exe.mod are looked up in `owner`, the Python half. exe[name] is another
    function of the same module."""

    owner: Any
    source: str  # of the owner, as the next three
    ptx: str
    cubin: bytes
    mod: Any
    param_names: tuple[str, ...]
    signature: str  # as the messages of a call show it
    plan: str  # the launch plan as text
    functions: tuple[str, ...]  # what exe[name] knows
    target: str
    def __init__(
        self,
        lowered: Module,
        name: str | None,
        target: str,
        *,
        cubin: bytes | None = None,
        kernels: list[str] | None = None,
        externs: dict | None = None,
        owner: Any = None,
    ) -> None:
        ...
        # name None: "main", or the only function; else a call says that one has to be chosen
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __getitem__(self, name: str) -> "Executable": ...
    def trace(self, *args: Any, file: Any = None, **kwargs: Any) -> Any: ...  # tirx.seeing.trace
    def stats(self, *args: Any, **kwargs: Any) -> Any: ...  # tirx.seeing.stats
    def _watch(self, what: int, limit: int, *args: Any, **kwargs: Any) -> tuple[str, Any]: ...  # 1 timeline, 2 counts
    def _repeat(self, n: int, *args: Any) -> Any: ...  # a call whose launches are repeated n times in C: benchmarks

packed_functions: dict[str, Any]  # name -> function for T.call_packed; tirx.register_func

def describe_arg(
    x: Any,
) -> dict: ...  # what a call makes of an argument, or of a DLPack capsule; ValueError when malformed
def read_tensor(x: Any) -> tuple[bytearray, tuple[int, ...], str]: ...  # copy of any tensor: bytes, shape, dtype
def export_dlpack(
    owner: Any,
    pointer: int,
    device_type: int,
    device_id: int,
    dtype: str,
    shape: tuple,
    readonly: bool,
    versioned: bool,
) -> Any: ...  # capsule over memory that owner keeps alive

class TensorMap:
    """A tensor map over a tensor, which it keeps alive. Made by tirx.tensor_map."""

    tensor: Any
    def __init__(self, tensor: Any, fields: tuple, offset: int, text: str) -> None: ...
    def __bytes__(self) -> bytes: ...

# fields: (im2col, dtype, dims, strides, box, element_strides, lower, upper, channels, pixels, interleave, swizzle, l2, oob)
def tensormap_encode(
    address: int, fields: tuple, arch: int, by: str
) -> bytes: ...  # by: "tirx" all checks, "rules" the driver's own, "driver" asks the driver of device 0
def tensormap_decode(data: Any) -> tuple[int, tuple] | None: ...  # (address, fields)
def tensormap_dtype(dtype: str, force: int) -> int | None: ...  # the driver's number
def driver_available() -> tuple[bool, str]: ...
def device_count() -> int: ...
def device_arch(device: int) -> int: ...
def synchronize(device: int) -> None: ...
def nvrtc_available() -> tuple[bool, str]: ...
def nvrtc_set_path(path: str | None) -> None: ...
def nvrtc_version() -> tuple[int, int]: ...
def nvrtc_options(
    arch: int, suffix: str, fast_math: bool, lineinfo: bool, injected: bool, int128: bool, want_ptx: bool
) -> list[str]: ...
def nvrtc_compile(
    source: str,
    options: list[str],
    want_ptx: bool = False,
    lowered: Module | None = None,
    line_map: bytes | None = None,
) -> tuple[bytes, str]:
    ...
    # (image, log); NvrtcError has .log, with the kernel's own lines when lowered and its line map are given

class DeviceMemory:
    """Memory of a GPU, for tirx.runtime.tensor."""

    pointer: int
    nbytes: int
    device: int
    def __init__(self, device: int, nbytes: int) -> None: ...
    def upload(self, data: Any) -> None: ...  # contiguous buffer
    def download(self, out: Any) -> None: ...
