
__device__ __forceinline__ float my_relu(float x) { return x > 0.f ? x : 0.f; }

extern "C" __global__ void __launch_bounds__(256) k_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr) {
  int tx = (int)threadIdx.x;
  B_ptr[tx] = my_relu(A_ptr[tx]);
}
