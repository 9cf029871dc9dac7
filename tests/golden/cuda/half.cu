typedef unsigned int uint;
typedef long long int64_t;

extern "C" __global__ void __launch_bounds__(32) half_kernel(int* __restrict__ half_ptr, uint* __restrict__ uint_ptr, int template_1, int64_t gr_c3_b6_c3_9fe, float expf_1, bool vtirx_x) {
  int tx = (int)threadIdx.x;
  int new_1 = (int)((uint)template_1 + 1u);
  int threadIdx_1 = (int)((uint)new_1 * 2u);
  half_ptr[tx] = (int)((uint)threadIdx_1 + (uint)(int)gr_c3_b6_c3_9fe);
  uint_ptr[tx] = __float2uint_rz(expf(expf_1));
  if (vtirx_x) {
    half_ptr[tx + 1] = 5;
  }
}
