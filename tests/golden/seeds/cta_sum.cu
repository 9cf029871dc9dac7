static __device__ __forceinline__ float tirx_cuda_warp_sum_f32(float v, int width) {
  for (int m = width >> 1; m > 0; m >>= 1) {
    float w = (float)__shfl_xor_sync(0xFFFFFFFF, v, m, 32);
    v = v + w;
  }
  return v;
}
static __device__ __forceinline__ float tirx_cuda_cta_sum_f32(float v, int nwarps, float* scratch) {
  int tid = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
  v = tirx_cuda_warp_sum_f32(v, 32);
  if ((tid & 31) == 0) scratch[tid >> 5] = v;
  __syncthreads();
  if (tid < 32) {
    v = tid < nwarps ? scratch[tid] : 0.0f;
    v = tirx_cuda_warp_sum_f32(v, 32);
    if (tid == 0) scratch[0] = v;
  }
  __syncthreads();
  return scratch[0];
}

extern "C" __global__ void __launch_bounds__(256) total_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr) {
  int tx = (int)threadIdx.x;
  __shared__ alignas(64) float scratch_ptr[8];
  float val = A_ptr[tx];
  __syncthreads();
  float s = tirx_cuda_cta_sum_f32(val, 8, &scratch_ptr[0]);
  if (tx == 0) {
    B_ptr[0] = s;
  }
}
