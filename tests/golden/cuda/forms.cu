typedef unsigned char uchar;
typedef unsigned int uint;
typedef unsigned short tirx_f16;
static __device__ __forceinline__ tirx_f16 tirx_f16_add(tirx_f16 a, tirx_f16 b) {
  tirx_f16 r;
  asm("add.rn.f16 %0, %1, %2;" : "=h"(r) : "h"(a), "h"(b));
  return r;
}
static __device__ __forceinline__ void tirx_ptx_dp4a_s32_u32_4_i32_u32_i32(int& a0, int a1, uint a2, int a3) {
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(a0) : "r"(a1), "r"(a2), "r"(a3));
}
static __device__ __forceinline__ int tirx_cuda_warp_min_i32(int v, int width) {
  for (int m = width >> 1; m > 0; m >>= 1) {
    int w = (int)__shfl_xor_sync(0xFFFFFFFF, v, m, 32);
    v = (int)min(v, w);
  }
  return v;
}

extern "C" __global__ void __launch_bounds__(32) forms_kernel(int* A_ptr, int* __restrict__ B_ptr, tirx_f16* __restrict__ H_ptr) {
  int tx = (int)threadIdx.x;
  int v;
  int v__2 = A_ptr[tx + 1];
  alignas(4) uchar v__1[4];
  ((uint*)v__1)[0] = ((uint*)&v__2)[0];
  uint v_;
  ((uint*)&v_)[0] = ((uint*)v__1)[0];
  tirx_ptx_dp4a_s32_u32_4_i32_u32_i32(v, A_ptr[tx], v_, 7);
  B_ptr[tx] = v;
  int4 v_1 = *(int4*)(A_ptr + tx * 4);
  int4 v_2;
  v_2.x = v_1.z;
  v_2.y = v_1.w;
  v_2.z = v_1.x;
  v_2.w = v_1.y;
  if (tx < 20) {
    B_ptr[tx * 4] = v_2.x;
  }
  if (tx + 1 < 20) {
    B_ptr[tx * 4 + 1] = v_2.y;
  }
  if (tx + 2 < 20) {
    B_ptr[tx * 4 + 2] = v_2.z;
  }
  if (tx + 3 < 20) {
    B_ptr[tx * 4 + 3] = v_2.w;
  }
  int condval;
  if ((tx & 1) == 0) {
    condval = A_ptr[tx];
  } else {
    condval = -1;
  }
  B_ptr[tx] = condval;
  B_ptr[tx + 32] = tirx_cuda_warp_min_i32(A_ptr[tx] < 100 ? A_ptr[tx] : 2147483647, 32);
  if (tx >= 3 && tx < 9) {
    H_ptr[tx] = tirx_f16_add(H_ptr[tx], (tirx_f16)0x3c00/*1*/);
  }
  printf("[");
  for (int i = 0; i < 2; ++i) {
    if (i > 0) {
      printf(", ");
    }
    printf("%d", A_ptr[i]);
  }
  printf("]");
  printf("\n");
}
