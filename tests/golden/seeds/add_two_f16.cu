typedef unsigned short tirx_f16;
static __device__ __forceinline__ tirx_f16 tirx_f16_add(tirx_f16 a, tirx_f16 b) {
  tirx_f16 r;
  asm("add.rn.f16 %0, %1, %2;" : "=h"(r) : "h"(a), "h"(b));
  return r;
}

extern "C" __global__ void __launch_bounds__(128) add_kernel(tirx_f16* __restrict__ A_ptr, tirx_f16* __restrict__ B_ptr, int n) {
  int i = (int)blockIdx.x * 128 + (int)threadIdx.x;
  if (i < n) {
    B_ptr[i] = tirx_f16_add(A_ptr[i], (tirx_f16)0x4000/*2*/);
  }
}
