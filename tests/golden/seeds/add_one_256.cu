extern "C" __global__ void __launch_bounds__(128) add_one_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr) {
  int i = (int)blockIdx.x * 128 + (int)threadIdx.x;
  B_ptr[i] = A_ptr[i] + 1.0f;
}
