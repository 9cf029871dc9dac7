extern "C" __global__ void __launch_bounds__(32) warp_reduce_kernel(float* __restrict__ A_ptr) {
  int lane_id = (int)threadIdx.x;
  float v_ptr[1];
  int i_ptr[1];
  v_ptr[0] = (float)(31 - lane_id);
  i_ptr[0] = 16;
  #pragma unroll 1
  while (1) {
    if (!(i_ptr[0] >= 1)) { break; }
    v_ptr[0] = v_ptr[0] + __shfl_xor_sync(0xFFFFFFFF, v_ptr[0], i_ptr[0], 32);
    i_ptr[0] = i_ptr[0] >> 1;
  }
  A_ptr[lane_id] = v_ptr[0];
}
