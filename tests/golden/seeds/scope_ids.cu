extern "C" __global__ void __launch_bounds__(128) ids_kernel(int* __restrict__ A_ptr) {
  int warp_id_in_cta = __shfl_sync(0xFFFFFFFF, (int)threadIdx.x >> 5, 0, 32);
  int bx = (int)blockIdx.x;
  int by = (int)blockIdx.y;
  int lane_id = (int)threadIdx.x & 31;
  int tx = (int)threadIdx.x;
  A_ptr[bx * 2560 + by * 512 + tx * 4] = bx;
  A_ptr[bx * 2560 + by * 512 + tx * 4 + 1] = by;
  A_ptr[bx * 2560 + by * 512 + tx * 4 + 2] = warp_id_in_cta;
  A_ptr[bx * 2560 + by * 512 + tx * 4 + 3] = lane_id;
}
