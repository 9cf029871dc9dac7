typedef unsigned char uchar;
typedef unsigned short tirx_f16;
static __device__ __forceinline__ float tirx_f16_to_f32(tirx_f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
  return r;
}

extern "C" __global__ void __launch_bounds__(32) shared_kernel(float* __restrict__ A_ptr, tirx_f16* __restrict__ H_ptr) {
  int tx = (int)threadIdx.x;
  __shared__ alignas(64) float small_ptr[32];
  extern __shared__ __align__(1024) uchar arena_ptr[];
  small_ptr[tx] = A_ptr[tx];
  ((float*)arena_ptr)[tx] = A_ptr[tx];
  ((tirx_f16*)arena_ptr)[tx + 128] = H_ptr[tx];
  __syncthreads();
  A_ptr[tx] = ((float*)arena_ptr)[31 - tx] + tirx_f16_to_f32(((tirx_f16*)arena_ptr)[tx + 128]) + small_ptr[31 - tx];
}
