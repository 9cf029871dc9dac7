typedef unsigned char uchar;
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef unsigned short tirx_f16;

extern "C" __global__ void __launch_bounds__(32) literals_kernel(float* __restrict__ A_ptr, double* __restrict__ D_ptr, int* __restrict__ I_ptr, int64_t* __restrict__ L_ptr, uint64_t* __restrict__ U_ptr, tirx_f16* __restrict__ H_ptr, uchar* __restrict__ Q_ptr) {
  A_ptr[0] = 0.1f;
  A_ptr[1] = 0x1.79ca1p-67f/*9.99999968e-21*/;
  A_ptr[2] = 0x1.555556p-2f/*0.333333343*/;
  A_ptr[3] = __int_as_float(0x7f800000);
  A_ptr[4] = -__int_as_float(0x7f800000);
  A_ptr[5] = -2.5f;
  A_ptr[6] = 0x1p+24f/*16777216*/;
  A_ptr[7] = fmaf(A_ptr[8], 2.0f, 3.0f);
  D_ptr[0] = 0.1;
  D_ptr[1] = 0x1.921fb54442d18p+1/*3.1415926535897931*/;
  D_ptr[2] = __longlong_as_double(0x7ff0000000000000ll);
  I_ptr[0] = (-2147483647 - 1);
  L_ptr[0] = (int64_t)(-9223372036854775807 - 1);
  L_ptr[1] = (int64_t)5;
  U_ptr[0] = (uint64_t)18446744073709551615ull;
  H_ptr[0] = (tirx_f16)0x3e00/*1.5*/;
  Q_ptr[0] = (uchar)255;
}
