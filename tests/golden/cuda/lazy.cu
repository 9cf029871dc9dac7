typedef unsigned int uint;

extern "C" __global__ void __launch_bounds__(32) lazy_kernel(int* A_ptr, int* __restrict__ B_ptr) {
  int tx = (int)threadIdx.x;
  int condval;
  if (tx > 0) {
    condval = A_ptr[tx - 1];
  } else {
    condval = 7;
  }
  B_ptr[tx] = (int)((uint)condval + (uint)(tx > 3 ? 1 : 2));
  bool condval_2 = tx > 0;
  if (condval_2) {
    int condval_1;
    if (tx > 3) {
      condval_1 = A_ptr[tx - 1];
    } else {
      condval_1 = B_ptr[tx];
    }
    condval_2 = condval_1 > 3;
  }
  if (condval_2) {
    B_ptr[tx] = 1;
  }
  if (tx < 3 || A_ptr[tx - 3] == 0 && !(A_ptr[tx] != 1)) {
    return;
  }
  #pragma unroll 1
  while (1) {
    int condval_3;
    if (tx > 3) {
      condval_3 = A_ptr[tx - 1];
    } else {
      condval_3 = B_ptr[tx];
    }
    if (!(condval_3 > 3)) { break; }
    B_ptr[tx] = A_ptr[tx] > 2 ? A_ptr[tx + 1] : (int)(0 - (uint)A_ptr[tx]);
  }
}
