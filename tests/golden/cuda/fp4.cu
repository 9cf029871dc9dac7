typedef unsigned char uchar;
static __device__ __forceinline__ float tirx_mini_decode(unsigned c, int eb, int mb, int bias, bool ieee) {
  unsigned man = c & ((1u << mb) - 1u), ex = c >> mb & ((1u << eb) - 1u), sign = c >> (eb + mb) & 1u;
  float scale = __uint_as_float((unsigned)((ex ? (int)ex : 1) - bias - mb + 127) << 23);
  float r = (float)(man | (ex ? 1u << mb : 0u)) * scale;
  if (ieee && ex == (1u << eb) - 1u) r = __uint_as_float(man ? 0x7fffffffu : 0x7f800000u);
  return sign ? -r : r;
}
static __device__ __forceinline__ unsigned char tirx_mini_encode(float x, int eb, int mb, int bias, unsigned top, unsigned nan, bool fnuz) {
  unsigned u = __float_as_uint(x) & 0x7fffffffu, sign = __float_as_uint(x) >> 31 << (eb + mb), r;
  int ex = (int)(u >> 23) - 127;
  if (u > 0x7f800000u) return (unsigned char)nan;
  ex = ex < 1 - bias ? 1 - bias : ex;
  r = (unsigned)rintf(__uint_as_float(u) * __uint_as_float((unsigned)(mb - ex + 127) << 23));
  r = ex > 40 ? top : r + ((unsigned)(ex + bias - 1) << mb);
  r = r > top ? top : r;
  return (unsigned char)(r | (fnuz && r == 0u ? 0u : sign));
}
static __device__ __forceinline__ float tirx_e2m1fn_to_f32(unsigned char x) {
  return tirx_mini_decode(x, 2, 1, 1, false);
}
static __device__ __forceinline__ unsigned char tirx_f32_to_e2m1fn(float x) {
  return tirx_mini_encode(x, 2, 1, 1, 0x07, 0x07, false);
}
static __device__ __forceinline__ unsigned char tirx_fp4_load(const unsigned char* p, long long i) { return p[i >> 1] >> (i & 1) * 4 & 15; }
static __device__ __forceinline__ void tirx_fp4_store(unsigned char* p, long long i, unsigned char v) {
  int s = (int)(i & 1) * 4;
  p[i >> 1] = (unsigned char)((p[i >> 1] & ~(15 << s)) | (v & 15) << s);
}

extern "C" __global__ void __launch_bounds__(32) fp4_kernel(uchar* __restrict__ A_ptr, float* __restrict__ B_ptr) {
  int tx = (int)threadIdx.x;
  uchar r_ptr[2];
  tirx_fp4_store(r_ptr, 1, tirx_fp4_load(A_ptr, tx));
  B_ptr[tx] = tirx_e2m1fn_to_f32(tirx_fp4_load(r_ptr, 1));
  float2 v_ = *(float2*)(B_ptr + tx * 2);
  alignas(2) uchar v__1[2];
  v__1[0] = tirx_f32_to_e2m1fn(v_.x);
  v__1[1] = tirx_f32_to_e2m1fn(v_.y);
  A_ptr[tx * 2 / 2] = (uchar)(v__1[0] & 15 | v__1[1] << 4);
}
