typedef unsigned int uint;
static __device__ __forceinline__ void tirx_cuda_warpgroup_sync(int id) { asm volatile("bar.sync %0, 128;" : : "r"(id) : "memory"); }

extern "C" __global__ void __launch_bounds__(256) groups_kernel(int* __restrict__ A_ptr, int* __restrict__ B_ptr) {
  int warp_id_in_cta = __shfl_sync(0xFFFFFFFF, (int)threadIdx.x >> 5, 0, 32);
  int wg_id = warp_id_in_cta >> 2;
  int t = (int)threadIdx.x & 127;
  __shared__ alignas(64) int sm_ptr[256];
  sm_ptr[wg_id * 128 + t] = A_ptr[wg_id * 128 + t];
  __syncwarp();
  tirx_cuda_warpgroup_sync((uint)(wg_id + 8));
  B_ptr[wg_id * 128 + t] = sm_ptr[wg_id * 128 + (127 - t)];
}
