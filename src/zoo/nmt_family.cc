// Sequence-to-sequence networks of random depth, length, width and batch, as Addanki et al. 2019
// (Placeto) vary them: the translation network of gnmt.cc with
//   layers 2, 3 or 4, sequence 6, 8, 10, 12, 14 or 16, hidden 256, 512 or 1024,
//   batch 32, 64, 128 or 256, and 32,000 words,
// each equally likely: some 1,500 to 7,000 ops in a training step.
#include "base/error.h"

#include "zoo/family.h"
#include "zoo/gnmt.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

struct Nmt : FamilyOptions {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t sequence = 0;

  static OptionSchema<Nmt> schema() {
    return family_schema<Nmt>()
        .integer("layers", &Nmt::layers, 0, 256, "LSTM layers of the encoder and of the decoder.")
        .integer("hidden", &Nmt::hidden, 0, 1 << 16, "Width of the layers and word vectors.")
        .integer("sequence", &Nmt::sequence, 0, 1 << 12, "Words of the source and of the target.");
  }
};

void build(Net& net, const Nmt& options) {
  if (options.layers == 1) fail_option("layers: 1 is too few; expected 0 (the seed decides) or 2+");
  Decisions decisions(options.seed);
  GnmtShape shape;
  shape.layers = decisions.next(options.layers, {2, 3, 4});
  shape.sequence = decisions.next(options.sequence, {6, 8, 10, 12, 14, 16});
  shape.hidden = decisions.next(options.hidden, {256, 512, 1024});
  shape.batch = decisions.next(options.batch, {32, 64, 128, 256});
  build_gnmt(net, shape);
}

}  // namespace

std::vector<ModelInfo> nmt_family() {
  return {model<Nmt>({.name = "nmt",
                      .summary = "LSTM translation of random depth, length, width and batch.",
                      .source = "Addanki et al. 2019 (Placeto); Wu et al. 2016"},
                     build)};
}

}  // namespace emplace::zoo
