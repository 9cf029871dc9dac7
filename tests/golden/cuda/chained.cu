static __device__ __forceinline__ void tirx_ptx_griddepcontrol_launch_dependents_0() {
  asm volatile("griddepcontrol.launch_dependents;" :  :  : "memory");
}
static __device__ __forceinline__ void tirx_ptx_griddepcontrol_wait_0() {
  asm volatile("griddepcontrol.wait;" :  :  : "memory");
}

extern "C" __global__ void __launch_bounds__(64) k_kernel(float* __restrict__ A_ptr, float* __restrict__ P_ptr) {
  int bx = (int)blockIdx.x;
  int t = (int)threadIdx.x;
  float mine = 0.0f;
  for (int i = 0; i < 8; ++i) {
    mine = mine + A_ptr[(bx * 8 + i) * 64 + t];
  }
  P_ptr[bx * 64 + t] = mine;
  tirx_ptx_griddepcontrol_launch_dependents_0();
}

extern "C" __global__ void __launch_bounds__(64) k_kernel_1(float* P_ptr, float* __restrict__ S_ptr) {
  int t = (int)threadIdx.x;
  float sum = 0.0f;
  tirx_ptx_griddepcontrol_wait_0();
  for (int i = 0; i < 8; ++i) {
    sum = sum + P_ptr[i * 64 + t];
  }
  S_ptr[t] = sum;
}
