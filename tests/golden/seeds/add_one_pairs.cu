extern "C" __global__ void __launch_bounds__(256) add_one_pairs_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr, int n) {
  int i = ((int)blockIdx.x * 256 + (int)threadIdx.x) * 2;
  if (i < n) {
    B_ptr[i] = A_ptr[i] + 1.0f;
  }
  if (i + 1 < n) {
    B_ptr[i + 1] = A_ptr[i + 1] + 1.0f;
  }
}
