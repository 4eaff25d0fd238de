// What recurrent models share: layers that are unrolled in time, a few ops a step. The weights of a
// layer "encoder.layer.1" belong to the module of that name, the ops of its seventh step to
// "encoder.layer.1.step.6".
#pragma once

#include <optional>
#include <string>

#include "zoo/layers.h"

namespace emplace::zoo {

// Zeros of the net's element type.
Value zeros(Net& net, const Shape& shape);

// A table of word vectors, looked up a step at a time.
class WordVectors {
 public:
  // The words are numbers [n, length].
  WordVectors(Net& net, std::string name, std::int64_t rows, std::int64_t width,
              const Value& words);

  Value step(Net& net, std::int64_t step) const;  // [n, width]
  const Value& table() const { return table_; }

 private:
  std::string name_;
  Value table_;
  Values words_;  // [n] of each step
};

// A layer of LSTM cells, whose state starts from zeros and is handed on from step to step.
class LstmLayer {
 public:
  LstmLayer(Net& net, std::string name, std::int64_t in, std::int64_t hidden);

  // To [n, hidden], from inputs that are joined to [n, in]. A residual step adds the first of them
  // to what it returns, but not to the state.
  Value step(Net& net, const Values& inputs, std::int64_t step, bool residual = false);

 private:
  std::string name_;
  LstmWeights weights_;
  std::optional<LstmState> state_;
};

// Which word follows: a projection to all words and its mean cross entropy, a step at a time.
class WordClassifier {
 public:
  // The labels are numbers [n, length].
  WordClassifier(Net& net, std::string name, std::int64_t in, std::int64_t words, Value labels);
  // With the word vectors themselves as the weights (Press and Wolf 2017).
  WordClassifier(std::string name, const WordVectors& tied, Value labels);

  // Adds the loss of [n, in] against the step's labels.
  void step(Net& net, const Value& x, std::int64_t step);
  // The sum of the losses of all steps.
  Value total(Net& net) const;

 private:
  std::string name_;
  Value weight_;
  std::optional<Value> bias_;
  Value labels_;
  Values labels_of_step_;
  Values losses_;
};

}  // namespace emplace::zoo
