// The matrix product; included only by the kernel sources.
//
// The models here have matrices of 64 to a few hundred columns. A general library spends a fifth of
// its time on such sizes copying operands into its own layout; this one copies only the right-hand
// side, a panel at a time (after Goto and van de Geijn 2008). Every element of the result is one
// sum in the order of the depth, however the rows are divided.
#ifndef NORMLAB_SERVER_TRAINER_MODEL_KERNELS_PRODUCT_H_
#define NORMLAB_SERVER_TRAINER_MODEL_KERNELS_PRODUCT_H_

#include "server/trainer/model/kernels/kernels.h"
#include "server/trainer/model/kernels/vector.h"

namespace normlab::trainer {
namespace {

// A tile of the result is kept in registers: 16 sums of 32 registers, or 12 of 16 without AVX-512.
constexpr long kProductRows = kLanes == 16 ? 8 : 6;
constexpr long kPanelVectors = 2;
constexpr long kPanelWidth = kPanelVectors * kLanes;
constexpr long kPanelDepth = 256;    // a panel fits the first-level cache
constexpr long kProductBlock = 768;  // rows of a that stay in the second-level cache meanwhile

// What a tile starts from: `start` with this stride between rows (0: one row for all), or zero
// where null.
struct TileStart {
  const float* start;
  long stride;
};

// c[0..R) = start + a * panel, over `depth`. Element (i, k) of a is a[i * a_row + k * a_column].
template <long R>
NORMLAB_KERNEL_INLINE void PanelTile(long depth, const float* a, long a_row, long a_column,
                                     const float* panel, TileStart start, float* c, long c_stride) {
  Vector sums[R][kPanelVectors];
#pragma GCC unroll 8
  for (long i = 0; i < R; ++i) {
    for (long j = 0; j < kPanelVectors; ++j) {
      sums[i][j] =
          start.start == nullptr ? Vector{} : Load(start.start + i * start.stride + j * kLanes);
    }
  }
  for (long k = 0; k < depth; ++k) {
    Vector row[kPanelVectors];
    for (long j = 0; j < kPanelVectors; ++j) row[j] = Load(panel + k * kPanelWidth + j * kLanes);
#pragma GCC unroll 8
    for (long i = 0; i < R; ++i) {
      const Vector factor = Broadcast(a[i * a_row + k * a_column]);
      for (long j = 0; j < kPanelVectors; ++j) sums[i][j] += factor * row[j];
    }
  }
#pragma GCC unroll 8
  for (long i = 0; i < R; ++i) {
    for (long j = 0; j < kPanelVectors; ++j) Store(c + i * c_stride + j * kLanes, sums[i][j]);
  }
}

// The same for 1 to kProductRows rows.
static inline void PanelRows(long rows, long depth, const float* a, long a_row, long a_column,
                             const float* panel, TileStart start, float* c, long c_stride) {
  if (rows == kProductRows) {
    return PanelTile<kProductRows>(depth, a, a_row, a_column, panel, start, c, c_stride);
  }
  if (rows >= 4) {
    PanelTile<4>(depth, a, a_row, a_column, panel, start, c, c_stride);
    a += 4 * a_row;
    c += 4 * c_stride;
    if (start.start != nullptr) start.start += 4 * start.stride;
    rows -= 4;
  }
  for (; rows > 0; --rows) {
    PanelTile<1>(depth, a, a_row, a_column, panel, start, c, c_stride);
    a += a_row;
    c += c_stride;
    if (start.start != nullptr) start.start += start.stride;
  }
}

// Copies columns [0, columns) of b, element (k, j) at b[k * b_row + j * b_column], into rows of
// kPanelWidth with zeros behind.
static inline void PackPanel(const float* b, long b_row, long b_column, long depth, long columns,
                             float* panel) {
  if (b_column == 1) {
    for (long k = 0; k < depth; ++k) {
      for (long j = 0; j < kPanelWidth; j += kLanes) {
        const Vector v = columns > j ? LoadPart(b + k * b_row + j, columns - j) : Vector{};
        Store(panel + k * kPanelWidth + j, v);
      }
    }
    return;
  }
  if (b_row == 1 && columns == kPanelWidth && depth % kLanes == 0) {
    for (long j = 0; j < kPanelWidth; j += kLanes) {
      for (long k = 0; k < depth; k += kLanes) {
        TransposeBlock(b + j * b_column + k, b_column, panel + k * kPanelWidth + j, kPanelWidth);
      }
    }
    return;
  }
  for (long k = 0; k < depth; ++k) {
    for (long j = 0; j < kPanelWidth; ++j) {
      panel[k * kPanelWidth + j] = j < columns ? b[k * b_row + j * b_column] : 0.0f;
    }
  }
}

// One panel's columns of c for all rows. A panel that is not full goes through a tile's worth of
// memory, so that nothing beyond c's columns is touched.
static inline void MultiplyPanel(long rows, long depth, long columns, const float* a, long a_row,
                                 long a_column, const float* panel, TileStart start, float* c,
                                 long c_stride) {
  for (long i = 0; i < rows; i += kProductRows) {
    const long count = rows - i < kProductRows ? rows - i : kProductRows;
    const float* from = start.start == nullptr ? nullptr : start.start + i * start.stride;
    float* to = c + i * c_stride;
    if (columns == kPanelWidth) {
      PanelRows(count, depth, a + i * a_row, a_row, a_column, panel, {from, start.stride}, to,
                c_stride);
      continue;
    }
    float tile[kProductRows * kPanelWidth] = {};
    for (long r = 0; r < count && from != nullptr; ++r) {
      for (long j = 0; j < columns; ++j) tile[r * kPanelWidth + j] = from[r * start.stride + j];
    }
    PanelRows(count, depth, a + i * a_row, a_row, a_column, panel, {tile, kPanelWidth}, tile,
              kPanelWidth);
    for (long r = 0; r < count; ++r) {
      for (long j = 0; j < columns; ++j) to[r * c_stride + j] = tile[r * kPanelWidth + j];
    }
  }
}

void MatrixMultiply(const float* a, long a_row, long a_column, const float* b, long b_row,
                    long b_column, long rows, long columns, long depth, const float* bias,
                    bool accumulate, float* c) {
  alignas(64) float panel[kPanelDepth * kPanelWidth];
  for (long i = 0; i < rows; i += kProductBlock) {
    const long block = rows - i < kProductBlock ? rows - i : kProductBlock;
    for (long k = 0; k < depth; k += kPanelDepth) {
      const long part = depth - k < kPanelDepth ? depth - k : kPanelDepth;
      for (long j = 0; j < columns; j += kPanelWidth) {
        const long width = columns - j < kPanelWidth ? columns - j : kPanelWidth;
        float* target = c + i * columns + j;
        TileStart start = {target, columns};  // what is there, from the second part on
        if (k == 0 && !accumulate) start = {bias == nullptr ? nullptr : bias + j, 0};
        PackPanel(b + k * b_row + j * b_column, b_row, b_column, part, width, panel);
        MultiplyPanel(block, part, width, a + i * a_row + k * a_column, a_row, a_column, panel,
                      start, target, columns);
      }
    }
  }
}

}  // namespace
}  // namespace normlab::trainer

#endif  // NORMLAB_SERVER_TRAINER_MODEL_KERNELS_PRODUCT_H_
