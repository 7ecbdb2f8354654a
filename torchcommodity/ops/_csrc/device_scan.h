// A recurrence over time in one kernel, which reads its inputs once: every row is a map of the state, every thread
// takes a few consecutive rows of a column.
//
//   1. Each thread reads its rows and composes their maps into one.
//   2. The maps of kScanGroup threads are composed into the map of their group.
//   3. The block waits for the state before its rows, applies the maps of its groups, and publishes the state after
//      them for the block that has the next rows.
//   4. Each thread applies the maps of the threads before it in its group, and then its rows.
//
// The order of the operations depends on the row alone: not on the number of columns or blocks, nor on which is first.
#pragma once
#include "affine.h"
#include "device.h"

namespace commodity {

// Where a thread works: `rows` rows of a column from row `first` on, of which value i is at begin + i * columns of
// (batch, steps, columns). An idle thread has no rows and reads row `first`, which is one of the panel.
struct ScanPlace {
  int64_t panel, column, first, begin;
  int rows, lane, chunk;
};

// The blocks of a batch of panels: a chain has up to kWarp columns of a panel, a link has a stretch of its rows.
template <int kRows>
struct ScanLinks {
  int64_t steps, columns;
  int tiles, chains, tile, chunks;  // tile: columns of a chain; chunks: threads of a column in a block
  ScanLinks(int64_t batch, int64_t steps, int64_t columns)
      : steps(steps), columns(columns), tiles(static_cast<int>((columns + kWarp - 1) / kWarp)) {
    chains = static_cast<int>(batch) * tiles;
    tile = tiles ? static_cast<int>((columns + tiles - 1) / tiles) : 1;
    chunks = kScanThreads / tile / kScanGroup * kScanGroup;
  }
  int64_t links() const { return (steps + chunks * kRows - 1) / (chunks * kRows); }
  // States of `size` doubles for all links and columns, and the first double of launch_links.
  int64_t memory(int64_t size) const { return 1 + links() * chains * tile * size; }

  COMMODITY_INLINE ScanPlace place(int chain, int link, int thread) const {
    const int lane = thread % tile, chunk = thread / tile;
    const int64_t panel = chain / tiles, wanted = chain % tiles * tile + lane;
    const int64_t column = wanted < columns ? wanted : columns - 1;
    const int64_t start = (int64_t(link) * chunks + chunk) * kRows, rows = steps - start;
    const int64_t first = start < steps ? start : steps - 1;
    const bool idle = chunk >= chunks || wanted >= columns || rows < 0;
    return {panel,
            column,
            first,
            (panel * steps + first) * columns + column,
            idle           ? 0
            : rows < kRows ? static_cast<int>(rows)
                           : kRows,
            lane,
            chunk};
  }
  // Row i of a thread, or its last row where it has fewer: values that nobody uses, instead of a branch.
  COMMODITY_INLINE static int row(const ScanPlace& place, int i) {
    return i < place.rows ? i : place.rows ? place.rows - 1 : 0;
  }
};

// Keeps the compiler from holding what it computed from a value, which would take more registers than the value.
template <typename T>
COMMODITY_INLINE void forget(T& value) {
#if defined(__CUDA_ARCH__)
  constexpr int kWords = sizeof(T) / sizeof(int);
  int words[kWords];
  memcpy(words, &value, sizeof(T));
#pragma unroll
  for (int i = 0; i < kWords; ++i) asm volatile("" : "+r"(words[i]));
  memcpy(&value, words, sizeof(T));
#endif
}

// Steps 2 to 4 for maps of type Map, which are applied by map(state) and composed by later.after(earlier).
template <typename Map, int kRows>
struct BlockScan {
  using State = typename Map::State;
  static constexpr int kNumbers = sizeof(State) / sizeof(double), kGroups = kScanThreads / kScanGroup;
  struct Shared {
    Map maps[kScanThreads], groups[kGroups];
    State states[kGroups];
  };
  ScanLinks<kRows> links;
  double* published;

  COMMODITY_INLINE void put(Shared& shared, const ScanPlace& place, const Map& map) const {
    if (place.chunk < links.chunks) shared.maps[place.chunk * links.tile + place.lane] = map;
  }
  COMMODITY_INLINE void compose_groups(Shared& shared, const ScanPlace& place) const {
    if (place.chunk >= links.chunks || place.chunk % kScanGroup) return;
    const Map* maps = shared.maps + place.chunk * links.tile + place.lane;
    Map map = maps[0];
#pragma unroll
    for (int i = 1; i < kScanGroup; ++i) map = maps[i * links.tile].after(map);
    shared.groups[place.chunk / kScanGroup * links.tile + place.lane] = map;
  }
  // initial() is the state before the first row.
  template <typename Initial>
  COMMODITY_INLINE void advance(Shared& shared, const ScanPlace& place, int chain, int link,
                                const Initial& initial) const {
    if (place.chunk > 0) return;
    double* next = published + ((int64_t(link) * links.chains + chain) * links.tile + place.lane) * kNumbers;
    State state;
    if (link == 0) {
      state = initial();
    } else {
      const double* numbers = next - int64_t(links.chains) * links.tile * kNumbers;
      double* to = reinterpret_cast<double*>(&state);
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) to[i] = await(numbers + i);
    }
    for (int group = 0; group < links.chunks / kScanGroup; ++group) {
      shared.states[group * links.tile + place.lane] = state;
      state = shared.groups[group * links.tile + place.lane](state);
    }
    const double* from = reinterpret_cast<const double*>(&state);
#pragma unroll
    for (int i = 0; i < kNumbers; ++i) publish(next + i, from[i]);
  }
  // The state before the rows of a thread.
  COMMODITY_INLINE State before(const Shared& shared, const ScanPlace& place) const {
    const int group = place.chunk / kScanGroup;
    State state = shared.states[group * links.tile + place.lane];
    for (int i = group * kScanGroup; i < place.chunk; ++i) state = shared.maps[i * links.tile + place.lane](state);
    return state;
  }
};

// A recurrence as one body: column(panel, n) holds what is constant in a column, load(column, i, t) the inputs of row
// t, map(column, row) its map, initial(column) the state before the first row, and write(column, i, t, row, previous
// state, state) takes the result. i is the index of the value in (batch, steps, columns). A body with kSums has sums
// over time: add(column, row, previous state, sums) adds to them, and they arrive in pieces of kSumRows rows at
// body.pieces[((panel * number of pieces + piece) * kSums + k) * columns + n].
template <typename scalar_t>
constexpr int64_t kSumRows = kScanRows<scalar_t> * kScanGroup;

template <typename Body>
constexpr int kSumsOf = 0;
template <typename Body>
  requires requires { Body::kSums; }
constexpr int kSumsOf<Body> = Body::kSums;

template <typename Scan, int kSums>
struct SharedSums : Scan::Shared {
  double sums[kSums][kScanThreads];
};
template <typename Scan>
struct SharedSums<Scan, 0> : Scan::Shared {};

template <typename Body, typename scalar_t>
struct ScanBlock {
  static constexpr int kRows = kScanRows<scalar_t>;
  using Column = decltype(std::declval<const Body&>().column(0, 0));
  using Row = decltype(std::declval<const Body&>().load(std::declval<Column>(), 0, 0));
  using Map = decltype(std::declval<const Body&>().map(std::declval<Column>(), std::declval<Row>()));
  using Scan = BlockScan<Map, kRows>;
  static constexpr int kSums = kSumsOf<Body>, kPhases = kSums ? 5 : 4;
  using Shared = SharedSums<Scan, kSums>;
  struct Thread {
    ScanPlace place;
    Column column;
    Row rows[kRows];
  };
  Body body;
  Scan scan;

  template <int phase>
  COMMODITY_INLINE void run(Thread& thread, Shared& shared, int chain, int link, int number) const {
    ScanPlace& place = thread.place;
    const Column& column = thread.column;
    if constexpr (phase == 0) {
      place = scan.links.place(chain, link, number);
      thread.column = body.column(place.panel, place.column);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const int row = ScanLinks<kRows>::row(place, i);
        thread.rows[i] = body.load(column, place.begin + row * scan.links.columns, place.first + row);
      }
      Map map = body.map(column, thread.rows[0]);
#pragma unroll
      for (int i = 1; i < kRows; ++i) map = body.map(column, thread.rows[i]).after(map);
      scan.put(shared, place, map);
    } else if constexpr (phase == 1) {
      scan.compose_groups(shared, place);
    } else if constexpr (phase == 2) {
      scan.advance(shared, place, chain, link, [&] { return body.initial(column); });
    } else if constexpr (phase == 3) {
      double sums[kSums + 1] = {};
      if (place.rows) apply(thread, scan.before(shared, place), sums);
      if constexpr (kSums > 0)
        for (int k = 0; k < kSums; ++k) shared.sums[k][number] = sums[k];
    } else if (place.rows && place.chunk % kScanGroup == 0) {
      constexpr int64_t piece_rows = kSumRows<scalar_t>;
      const int64_t pieces = (scan.links.steps + piece_rows - 1) / piece_rows;
      const int64_t piece = place.panel * pieces + place.first / piece_rows;
      for (int k = 0; k < kSums; ++k) {
        double sum = 0;
        for (int i = 0; i < kScanGroup; ++i) sum += shared.sums[k][number + i * scan.links.tile];
        body.pieces[(piece * kSums + k) * scan.links.columns + place.column] = sum;
      }
    }
  }

  // Applies the maps of the rows of a thread to the state before them.
  COMMODITY_INLINE void apply(Thread& thread, typename Scan::State state, double* sums) const {
    const ScanPlace& place = thread.place;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const auto previous = state;
      Row& row = thread.rows[i];
      forget(row);
      state = body.map(thread.column, row).apply(previous);
      if (i >= place.rows) continue;
      body.write(thread.column, place.begin + i * scan.links.columns, place.first + i, row, previous, state);
      if constexpr (kSums > 0) body.add(thread.column, row, previous, sums);
    }
  }
};

template <typename scalar_t, typename Body>
void run_scan(const Tensor& like, int64_t batch, int64_t steps, int64_t columns, const Body& body) {
  using Block = ScanBlock<Body, scalar_t>;
  const ScanLinks<Block::kRows> links(batch, steps, columns);
  const Tensor memory = scratch(like, links.memory(Block::Scan::kNumbers));
  launch_links(like, links.chains, links.links(), memory, Block{body, {links, data_ptr<double>(memory) + 1}});
}

// A recurrence of which maps(panel, t, n) reads and makes the map of a row, as a body of run_scan.
template <typename Maps, typename Initial, typename Write>
struct MapsBody {
  using Map = decltype(std::declval<const Maps&>()(0, 0, 0));
  using State = typename Map::State;
  struct Column {
    int64_t panel, n;
  };
  Maps maps;
  Initial initial_state;
  Write write_row;

  COMMODITY_INLINE Column column(int64_t panel, int64_t n) const { return {panel, n}; }
  COMMODITY_INLINE Map load(const Column& column, int64_t, int64_t t) const { return maps(column.panel, t, column.n); }
  COMMODITY_INLINE Map map(const Column&, const Map& row) const { return row; }
  COMMODITY_INLINE State initial(const Column& column) const { return initial_state(column.panel, column.n); }
  COMMODITY_INLINE void write(const Column& column, int64_t, int64_t t, const Map&, const State& previous,
                              const State& state) const {
    write_row(column.panel, t, column.n, previous, state);
  }
};

// Computes y_t = maps(panel, t, column)(y_{t-1}) from initial(panel, column), and calls
// write(panel, t, column, y_{t-1}, y_t) for every row.
template <typename scalar_t, typename Maps, typename Initial, typename Write>
void run_recurrence(const Tensor& like, int64_t batch, int64_t steps, int64_t columns, const Maps& maps,
                    const Initial& initial, const Write& write) {
  run_scan<scalar_t>(like, batch, steps, columns, MapsBody<Maps, Initial, Write>{maps, initial, write});
}

}  // namespace commodity
