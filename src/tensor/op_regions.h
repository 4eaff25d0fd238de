// What groups of workers make and need of tensors, for every way to cut an op on the levels that
// make the groups; as numbers in rows, since there are many.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tensor/movement.h"
#include "tensor/partition_problem.h"

namespace emplace {

// By way and group, a box.
class BoxRows {
 public:
  BoxRows(std::size_t groups, std::size_t rank) : groups_(groups), rank_(rank) {}

  // Nothing where it is not `there`.
  void add(const tdl::Region& region, bool there = true);
  double volume(std::size_t way, std::size_t group) const {
    return volumes_[way * groups_ + group];
  }
  double common(std::size_t way, const BoxRows& other, std::size_t other_way,
                std::size_t group) const;
  // At least how many elements there are in all groups' boxes together.
  double least_union(std::size_t way) const;
  std::size_t groups() const { return groups_; }

 private:
  const tdl::Position* ends(std::size_t way, std::size_t group) const {
    return ends_.data() + (way * groups_ + group) * 2 * rank_;
  }

  std::size_t groups_, rank_;
  std::vector<tdl::Position> ends_;  // begin and end of each dimension
  std::vector<double> volumes_;
};

struct OpRegions {
  struct Made {
    BoxRows boxes;
    std::vector<int> partial;  // by way: of how many partial results each element is made
  };
  struct Needed {
    BoxRows boxes;
    // Whether a group needs all of its box, even if its workers divide their part further.
    bool dense = true;
  };
  std::vector<Cuts> ways;  // kUncut beyond the levels
  std::vector<Made> outputs;
  std::vector<Needed> inputs;
};

class OpRegionTable {
 public:
  OpRegionTable(const PartitionInput& input, const Workers& workers, std::size_t levels)
      : input_(input), workers_(workers), levels_(levels) {}

  // Of a source, how it lies. nullptr: the op can be cut in too many ways, or a tensor of it has no
  // shape. Ops of one signature share them.
  const OpRegions* of(OpId op);

 private:
  static constexpr std::size_t kMostWays = 100;
  std::unique_ptr<OpRegions> make(OpId op) const;
  std::vector<Cuts> ways_of(OpId op) const;
  bool add_way(OpId op, const Cuts& cuts, OpRegions& regions) const;
  tdl::Piece piece_at(OpId op, const Cuts& cuts, Worker worker) const;
  void extend(const tdl::Region& variables, const std::vector<std::int8_t>& divisible, Cuts& cuts,
              std::size_t level, std::vector<Cuts>& ways) const;
  Worker group_size() const;

  const PartitionInput& input_;
  const Workers& workers_;
  std::size_t levels_;
  std::map<std::uint32_t, std::unique_ptr<OpRegions>> by_signature_;
  std::map<OpId, std::unique_ptr<OpRegions>> undescribed_;
};

}  // namespace emplace
