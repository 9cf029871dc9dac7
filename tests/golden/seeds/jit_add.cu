extern "C" __global__ void __launch_bounds__(256) add_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr, float* __restrict__ C_ptr) {
  int tx = (int)threadIdx.x;
  C_ptr[tx] = A_ptr[tx] + B_ptr[tx];
}
