typedef unsigned int uint;
static __device__ __forceinline__ unsigned tirx_turns_i32(int start, int stop, int step) {
  if (step > 0 && start < stop) return ((unsigned)stop - (unsigned)start - 1u) / (unsigned)step + 1u;
  if (step < 0 && start > stop) return ((unsigned)start - (unsigned)stop - 1u) / (0u - (unsigned)step) + 1u;
  return 0;
}

extern "C" __global__ void __launch_bounds__(32) loops_kernel(int* __restrict__ A_ptr, int n) {
  int tx = (int)threadIdx.x;
  int acc = 0;
  for (int i = tx; i < 64; i += 32) {
    acc = (int)((uint)acc + (uint)A_ptr[i]);
  }
  for (int i = n; i > 0; i -= 2) {
    acc = (int)((uint)acc + (uint)i);
  }
  uint turns = tirx_turns_i32(0, n, 3);
  for (uint turn = 0; turn < turns; ++turn) {
    int i = (int)((uint)0 + turn * (uint)3);
    acc = (int)((uint)acc * 3u);
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    #pragma unroll 2
    for (int j = 0; j < 8; ++j) {
      acc = (int)((uint)acc + (uint)i * (uint)j);
    }
  }
  #pragma unroll 1
  for (int i = 0; i < 4; ++i) {
    acc = (int)((uint)acc + (uint)i);
  }
  acc = (int)((uint)acc + 1u);
  acc = (int)((uint)acc + 2u);
  uint turns_1 = tirx_turns_i32(2147483640, 2147483647, 5);
  for (uint turn = 0; turn < turns_1; ++turn) {
    int i = (int)((uint)2147483640 + turn * (uint)5);
    acc = (int)((uint)acc + (uint)i);
  }
  uint turns_2 = tirx_turns_i32(tx, n, 7);
  for (uint turn = 0; turn < turns_2; ++turn) {
    int i = (int)((uint)tx + turn * (uint)7);
    if ((i & 1) == 0) {
      continue;
    } else if (i > 5 && A_ptr[i] > 3) {
      break;
    } else {
      acc = (int)((uint)acc - 1u);
    }
  }
  int j = 0;
  #pragma unroll 1
  while (1) {
    if (!(j < 10 && A_ptr[j] > 0)) { break; }
    j = j + 1;
  }
  A_ptr[tx] = (int)((uint)acc + (uint)j);
}
