extern "C" __global__ void __launch_bounds__(32) views_kernel(float* __restrict__ A_ptr, int* __restrict__ B_ptr, int n) {
  int tx = (int)threadIdx.x;
  __shared__ alignas(64) float s_ptr[128];
  float t_ptr[16];
  t_ptr[9] = A_ptr[(tx & 15) + 48];
  float4 v_ = *(float4*)(A_ptr + tx * 4);
  float4 v__1 = *(float4*)(A_ptr + tx * 4);
  float4 v__2;
  v__2.x = v_.x + v__1.x;
  v__2.y = v_.y + v__1.y;
  v__2.z = v_.z + v__1.z;
  v__2.w = v_.w + v__1.w;
  *(float4*)(A_ptr + tx * 4) = v__2;
  s_ptr[tx] = A_ptr[(tx & 7) + ((n & 7) * 16 + 4)] + t_ptr[9] + A_ptr[tx + 32];
  __syncthreads();
  B_ptr[tx] = ((int*)s_ptr)[31 - tx + (tx & 3) * 32];
}
