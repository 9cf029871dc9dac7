extern "C" __global__ void __launch_bounds__(256) f_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr) {
  int tx = (int)threadIdx.x;
  B_ptr[tx] = A_ptr[tx];
}
