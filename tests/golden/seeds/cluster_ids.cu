static __device__ __forceinline__ int tirx_cluster_id_x() {
  int r;
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(r));
  return r;
}
static __device__ __forceinline__ int tirx_cluster_ctarank() {
  int r;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

extern "C" __global__ void __launch_bounds__(32) clusters_kernel(int* __restrict__ A_ptr) {
  int cid = tirx_cluster_id_x();
  int rank = tirx_cluster_ctarank();
  int tx = (int)threadIdx.x;
  if (tx == 0) {
    A_ptr[(cid * 2 + rank) * 2] = cid;
    A_ptr[(cid * 2 + rank) * 2 + 1] = rank;
  }
}
