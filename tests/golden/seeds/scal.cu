extern "C" __global__ void __launch_bounds__(256) scal_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr, float s) {
  int tx = (int)threadIdx.x;
  B_ptr[tx] = A_ptr[tx] * s;
}
