typedef unsigned int uint;
typedef long long int64_t;
typedef unsigned long long uint64_t;
static __device__ __forceinline__ int tirx_shl_i32(int a, int n) {
  int r;
  unsigned k = (unsigned)n > 64 ? 64u : (unsigned)n;
  asm("shl.b32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(k));
  return r;
}
static __device__ __forceinline__ int tirx_div_i32(int a, int b) {
  int r;
  asm("div.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return b == 0 ? (int)-1 : r;
}
static __device__ __forceinline__ int tirx_mod_i32(int a, int b) {
  int r;
  asm("rem.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(b));
  return b == 0 ? a : r;
}
static __device__ __forceinline__ int tirx_floordiv_i32(int a, int b) {
  int r = tirx_mod_i32(a, b);
  return tirx_div_i32(a, b) - (b != 0 && r != 0 && (r ^ b) < 0);
}
static __device__ __forceinline__ int tirx_floordiv_by_i32(int a, int b) { return a / b - (a % b != 0 && (a ^ b) < 0); }
static __device__ __forceinline__ int tirx_floormod_by_i32(int a, int b) {
  int r = a % b;
  return r != 0 && (r ^ b) < 0 ? r + b : r;
}
static __device__ __forceinline__ int tirx_abs_i32(int x) {
  int r;
  asm("abs.s32 %0, %1;" : "=r"(r) : "r"(x));
  return r;
}

extern "C" __global__ void __launch_bounds__(32) integers_kernel(int* __restrict__ A_ptr, signed char* __restrict__ C_ptr, int64_t* __restrict__ L_ptr, int n) {
  int tx = (int)threadIdx.x;
  int x = A_ptr[tx];
  A_ptr[tx] = (int)((uint)x + 1u - (uint)x * (uint)n);
  A_ptr[tx + 1] = 1 + tx * 4 / 3 + tirx_floordiv_by_i32(tx - 5, 3) + (tx - 5 & 7) + (x >> 2) + tirx_floormod_by_i32(x, 5);
  A_ptr[tx + 2] = (int)((uint)tirx_floordiv_by_i32(x, max(n, 1)) + (uint)tirx_floordiv_i32(x, n) + (uint)tirx_div_i32(x, n) + (uint)(tx % 5));
  A_ptr[tx + 3] = (int)(((uint)x << tx) + (uint)tirx_shl_i32(x, n) + (uint)(x >> 3) + (1u << tx));
  A_ptr[tx + 4] = (int)((uint)tirx_abs_i32(x) + (uint)(~x & 3 | 4 ^ x) - (uint)x);
  C_ptr[tx] = (signed char)((signed char)((uint)C_ptr[tx] * C_ptr[tx + 1]) + C_ptr[tx + 2]);
  C_ptr[tx + 1] = (signed char)((signed char)-C_ptr[tx] + (signed char)((uint)C_ptr[tx] << 2));
  L_ptr[tx] = (int64_t)((uint64_t)L_ptr[tx] * 3ull + (uint64_t)(int64_t)x * 8ull);
  A_ptr[(int)((uint)x + (uint)tx) & 127] = 0;
}
