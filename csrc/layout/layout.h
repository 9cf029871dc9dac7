/* The public face of layout/: encodings of TMA tensor maps and of matrix descriptors. Owner: layout. Knows ir/ and below;
 * must not know passes, back ends or launch plans, which all share it. SPDX-License-Identifier: Apache-2.0 */
#ifndef TX_LAYOUT_H
#define TX_LAYOUT_H

#include "arith/arith.h"

/* ---- TMA tensor maps --------------------------------------------------------------------------------------------- */

enum { TX_TM_RANK = 5, TX_TM_BYTES = 128, TX_TM_ALIGN = 64 };
#define TX_TM_UNKNOWN INT64_MIN /* a value that only the call knows: no check concerns it */

/* Element types, with the driver's numbers (CUtensorMapDataType). */
enum tx_tm_dtype {
    TX_TM_U8,
    TX_TM_U16,
    TX_TM_U32,
    TX_TM_S32,
    TX_TM_U64,
    TX_TM_S64,
    TX_TM_F16,
    TX_TM_F32,
    TX_TM_F64,
    TX_TM_BF16,
    TX_TM_F32_FTZ,
    TX_TM_TF32,
    TX_TM_TF32_FTZ,
    TX_TM_16U4_ALIGN8B,  /* fp4, packed in both memories */
    TX_TM_16U4_ALIGN16B, /* fp4: 8 bytes of data in each 16 bytes of shared memory */
    TX_TM_16U6_ALIGN16B, /* fp6: 12 bytes of data in each 16 bytes of shared memory */
    TX_TM__COUNT
};
enum { TX_TM_SWIZZLE_NONE, TX_TM_SWIZZLE_32, TX_TM_SWIZZLE_64, TX_TM_SWIZZLE_128 }; /* 4..6: other atoms */

/* What a map says. Dimension 0 is the innermost; strides are in bytes. Unused entries are 0. */
typedef struct tx_tensormap {
    bool im2col;
    int64_t dtype, rank; /* enum tx_tm_dtype; 1..5 */
    uint64_t address;
    bool address_known;
    int64_t dim[TX_TM_RANK], stride[TX_TM_RANK]; /* stride[d] is that of dimension d; stride[0] is not used */
    int64_t box[TX_TM_RANK], estride[TX_TM_RANK];
    int64_t lower[3], upper[3], channels, pixels; /* im2col instead of box; corners of the rank - 2 spatial dimensions,
                                                     innermost first */
    int64_t interleave, swizzle, l2, oob;         /* the driver's numbers */
} tx_tensormap;

/* Bits of an element in global memory; 0 for a number that is none of the types. */
int tx_tensormap_bits(int64_t dtype);
/* "F16", "16U4_ALIGN16B", ...; the driver's names without their prefix. */
const char *tx_tensormap_dtype_name(int64_t dtype);
/* The type of a map over elements of t; -1: there is none. force: the driver's number to use instead, or -1; false in *ok
 * when it does not go with t. */
int tx_tensormap_dtype_of(tx_dtype t, int64_t force, bool *ok);
/* What is wrong with a map, in words; true when nothing is. arch: 90, 100, ... of the GPU that will use it, 0 for any.
 * driver: only what the CUDA driver refuses, else also what it takes and the hardware then ignores or cannot do. */
bool tx_tensormap_check(const tx_tensormap *t, int arch, bool driver, char *text, size_t n);
/* The 128 bytes of a map that has passed the check, as the driver would fill them for sm_90. What only sm_100 has (fp4 and
 * fp6 types, other swizzle atoms) has an encoding of our own, which the emulator alone reads. */
void tx_tensormap_encode(const tx_tensormap *t, void *bytes);
/* The map behind 128 bytes that tx_tensormap_encode or the driver (for sm_90) wrote, and that tensormap.replace may have
 * changed since. false: they are no map. TF32 types come back as such; box[] and estride[] of the unused dimensions are 1. */
bool tx_tensormap_decode(const void *bytes, tx_tensormap *t);
/* Fields that tensormap.replace changes; ord counts dimensions, for strides those from 1 on. Values are those of the
 * instruction: the rank less 1, the code of the type in the map (11 and 12: TF32, TF32_FTZ). false: out of range, nothing done. */
enum tx_tm_field {
    TX_TM_GLOBAL_ADDRESS,
    TX_TM_RANK_FIELD,
    TX_TM_BOX_DIM,
    TX_TM_GLOBAL_DIM,
    TX_TM_ELEMENT_STRIDE,
    TX_TM_GLOBAL_STRIDE,
    TX_TM_ELEMTYPE,
    TX_TM_INTERLEAVE_LAYOUT,
    TX_TM_SWIZZLE_MODE,
    TX_TM_FILL_MODE
};
bool tx_tensormap_replace(void *bytes, enum tx_tm_field field, int ord, uint64_t v);
/* Bytes that one box takes in shared memory and that complete_tx counts: full boxes, whatever lies outside. */
int64_t tx_tensormap_box_bytes(const tx_tensormap *t);

#endif
