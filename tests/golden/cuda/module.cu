typedef unsigned int uint;

static __device__ int clip(int x, int low);
static __device__ int half_device(int x);
static __device__ void put(int* A_ptr, int i, int n);

static __device__ int clip(int x, int low) {
  if (x < low) {
    return low;
  }
  return half_device(x);
}

static __device__ int half_device(int x) {
  return x >> 1;
}

static __device__ void put(int* A_ptr, int i, int n) {
  if (i >= n) {
    return;
  }
  A_ptr[i] = (int)((uint)A_ptr[i] * 10u + (uint)n);
}

extern "C" __global__ void __launch_bounds__(64) main_kernel(int* __restrict__ A_ptr, int* __restrict__ B_ptr) {
  int tx = (int)threadIdx.x;
  B_ptr[tx] = clip(A_ptr[tx], 5);
  put(B_ptr, tx, 64);
}

extern "C" __global__ void __launch_bounds__(64) second_kernel(int* __restrict__ A_ptr) {
  int tx = (int)threadIdx.x;
  int v_ = A_ptr[tx];
  int v__1 = clip(v_, 7);
  int v__2 = half_device(tx);
  A_ptr[tx] = (int)((uint)v__1 + (uint)v__2);
}
