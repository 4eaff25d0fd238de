// A general policy as a file: what kind it is, how large, its parameters, and what it was trained
// on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "learn/general/network.h"
#include "learn/train/state.h"

namespace emplace::learn {

class Parameters;

class PolicyFile {
 public:
  // Throws an Error that names the file and what is wrong: damaged, no policy, of another version.
  PolicyFile(std::string_view bytes, const std::string& file_name);

  const std::string& file_name() const { return state_.file_name(); }
  const std::string& kind() const { return kind_; }  // gdp, placeto, mars
  const GeneralNetwork& network() const { return network_; }
  // What it was trained on, for people.
  std::string card() const { return state_.text("card"); }
  // Into parameters of the same kind and network.
  void load_into(Parameters& parameters) const;

 private:
  StateReader state_;
  std::string kind_;
  GeneralNetwork network_;
};

std::string policy_bytes(const std::string& kind, const GeneralNetwork& network,
                         const Parameters& parameters, const std::string& card);

}  // namespace emplace::learn
