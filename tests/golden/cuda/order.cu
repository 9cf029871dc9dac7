typedef unsigned int uint;

extern "C" __global__ void __launch_bounds__(32) order_kernel(int* __restrict__ A_ptr, int* __restrict__ B_ptr) {
  int tx = (int)threadIdx.x;
  B_ptr[tx] = atomicAdd(&A_ptr[0], 1);
  int v_ = A_ptr[0];
  int v__1 = atomicAdd(&A_ptr[0], 1);
  int v__2 = A_ptr[0];
  B_ptr[tx] = (int)((uint)v_ + (uint)v__1 + (uint)v__2);
  int v__3 = atomicAdd(&A_ptr[0], 1);
  int v__4 = atomicAdd(&A_ptr[1], 2);
  B_ptr[tx] = (int)((uint)v__3 - (uint)v__4);
  B_ptr[tx] = (int)((uint)A_ptr[tx] + (uint)__shfl_down_sync(0xFFFFFFFF, A_ptr[tx], 1, 32));
}
