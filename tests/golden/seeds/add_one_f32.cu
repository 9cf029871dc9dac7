extern "C" __global__ void __launch_bounds__(128) add_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr, int n) {
  int i = (int)blockIdx.x * 128 + (int)threadIdx.x;
  if (i < n) {
    B_ptr[i] = A_ptr[i] + 1.0f;
  }
}
