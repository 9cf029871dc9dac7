typedef unsigned char uchar;
typedef unsigned short tirx_f16;
static __device__ __forceinline__ float tirx_f16_to_f32(tirx_f16 x) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x));
  return r;
}

extern "C" __global__ void __launch_bounds__(32) pool_kernel(float* __restrict__ A_ptr, tirx_f16* __restrict__ H_ptr) {
  int tx = (int)threadIdx.x;
  extern __shared__ __align__(1024) uchar pool_arena_ptr[];
  ((float*)pool_arena_ptr)[(tx & 3) * 32 + tx + 32] = A_ptr[tx];
  ((tirx_f16*)pool_arena_ptr)[tx + 320] = H_ptr[tx];
  ((uchar*)pool_arena_ptr)[2] = (uchar)1;
  __syncthreads();
  A_ptr[tx] = ((float*)pool_arena_ptr)[159 - tx] + tirx_f16_to_f32(((tirx_f16*)pool_arena_ptr)[tx + 320]) + (float)((uchar*)pool_arena_ptr)[2];
  alignas(8) tirx_f16 v_[4];
  *(uint2*)v_ = *(uint2*)(H_ptr + tx * 4);
  *(uint2*)((tirx_f16*)pool_arena_ptr + tx * 4) = *(uint2*)v_;
}
