typedef unsigned int uint;

extern "C" __global__ void __launch_bounds__(32) copies_kernel(float* __restrict__ A_ptr, float* __restrict__ B_ptr, int n) {
  float t_ptr[200];
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 100; ++j) {
      t_ptr[i * 100 + j] = A_ptr[j];
    }
  }
  for (int i = 98; i > -1; --i) {
    t_ptr[1 + i] = t_ptr[i];
  }
  for (int i = 0; i < n; ++i) {
    t_ptr[(int)(100u + (uint)i)] = 2.0f;
  }
  for (int i = 0; i < 100; ++i) {
    B_ptr[(int)((uint)n + (uint)i)] = t_ptr[100 + i];
  }
  for (int i = 0; i < 64; ++i) {
    B_ptr[i * 2] = 1.0f;
  }
  float4 v_ = *(float4*)(A_ptr + 4);
  *(float4*)(B_ptr) = v_;
}
