// BERT (Devlin et al. 2019), as Hugging Face's BertModel has it: token, position and type
// embeddings, layers normalised after their residuals, exact GELU, dropout everywhere.
//
// Without a head it is BertModel with its pooler; the masked-language-model head (with the
// embedding as its decoder unless untied) needs no pooler, that of pre-training has both.
#include "base/error.h"

#include "zoo/attention.h"
#include "zoo/layers.h"
#include "zoo/model.h"
#include "zoo/models.h"

namespace emplace::zoo {
namespace {

constexpr double kBertEpsilon = 1e-12;

struct Bert : AttentionStep {
  Bert() {
    batch = 24;
    optimizer = "adam";
  }

  std::int64_t sequence = 384;
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t intermediate = 0;
  std::int64_t vocabulary = 30522;
  std::int64_t positions = 512;
  std::string head = "masked-lm";
  bool tied = true;
  double dropout = 0.1;

  std::int64_t inner() const { return intermediate > 0 ? intermediate : 4 * hidden; }

  static OptionSchema<Bert> schema() {
    return attention_schema<Bert>()
        .integer("sequence", &Bert::sequence, 1, 1 << 20, "Tokens of an example.")
        .integer("layers", &Bert::layers, 1, 10'000, "Of the encoder.")
        .integer("hidden", &Bert::hidden, 1, 1 << 20, "Width of the model.")
        .integer("heads", &Bert::heads, 1, 10'000, "Of attention; they divide the width.")
        .integer("intermediate", &Bert::intermediate, 0, 1 << 24,
                 "Width inside of the feed-forward layers; 0: four times hidden.")
        .integer("vocabulary", &Bert::vocabulary, 1, 1 << 24, "Distinct tokens.")
        .integer("positions", &Bert::positions, 1, 1 << 20, "Rows of the position table.")
        .choice("head", &Bert::head, {"masked-lm", "pretraining", "none"},
                "Masked tokens; those and the next sentence; or the pooled output alone.")
        .flag("tied", &Bert::tied, "The decoder of tokens is the embedding.")
        .real("dropout", &Bert::dropout, 0, 0.99, "Everywhere.");
  }
};

struct Embedded {
  Value x;
  Value words;  // the table
};

Embedded embed(Net& net, const Bert& options) {
  const Value ids = net.input("input_ids", {options.batch, options.sequence}, DType::kInt64);
  const Value types = net.input("token_type_ids", {options.batch, options.sequence}, DType::kInt64);
  const Value positions = net.input("position_ids", {1, options.sequence}, DType::kInt64);
  const auto scope = net.scope("embeddings");
  Embedded result;
  {
    const auto words = net.scope("word_embeddings");
    result.words = net.parameter("weight", {options.vocabulary, options.hidden});
    result.x = gather(net, result.words, ids);
  }
  const Value type = embedding(net, "token_type_embeddings", types, 2, options.hidden);
  result.x = add(net, result.x, type);
  const Value position =
      embedding(net, "position_embeddings", positions, options.positions, options.hidden);
  result.x = add(net, result.x, position);
  result.x = dropout(net, layer_norm(net, "LayerNorm", result.x, kBertEpsilon), options.dropout);
  return result;
}

// What follows attention and the feed-forward layer alike.
Value output(Net& net, const Value& x, const Value& residual, const Bert& options) {
  const auto scope = net.scope("output");
  const Value y = dropout(net, linear(net, "dense", x, options.hidden), options.dropout);
  return layer_norm(net, "LayerNorm", add(net, y, residual), kBertEpsilon);
}

Value self_attention(Net& net, const Value& x, const Bert& options) {
  const auto scope = net.scope("self");
  const Value q = split_heads(net, linear(net, "query", x, options.hidden), options.heads);
  const Value k = split_heads(net, linear(net, "key", x, options.hidden), options.heads);
  const Value v = split_heads(net, linear(net, "value", x, options.hidden), options.heads);
  return merge_heads(net,
                     attend(net, q, k, v, {.dropout = options.dropout, .fused = options.fused()}));
}

Value layer(Net& net, const Value& x, const Bert& options) {
  Value attended;
  {
    const auto scope = net.scope("attention");
    attended = output(net, self_attention(net, x, options), x, options);
  }
  Value inner;
  {
    const auto scope = net.scope("intermediate");
    inner = gelu(net, linear(net, "dense", attended, options.inner()));
  }
  return output(net, inner, attended, options);
}

Value pool(Net& net, const Value& x) {
  const auto scope = net.scope("pooler");
  const Value first = reshape(net, slice(net, x, 1, 0, 1), {x.dim(0), x.last()});
  return tanh(net, linear(net, "dense", first, x.last()));
}

Value masked_lm_loss(Net& net, const Value& x, const Value& words, const Bert& options) {
  const Value labels = net.input("labels", {options.batch, options.sequence}, DType::kInt64);
  const auto scope = net.scope("cls.predictions");
  Value y;
  {
    const auto transform = net.scope("transform");
    y = gelu(net, linear(net, "dense", x, options.hidden));
    y = layer_norm(net, "LayerNorm", y, kBertEpsilon);
  }
  Value logits;
  if (options.tied) {
    logits = project(net, y, words, net.parameter("bias", {options.vocabulary}));
  } else {
    logits = linear(net, "decoder", y, options.vocabulary);
  }
  return classification_loss(net, logits, labels);
}

Value next_sentence_loss(Net& net, const Value& pooled, const Bert& options) {
  const Value labels = net.input("next_sentence_label", {options.batch}, DType::kInt64);
  const auto scope = net.scope("cls");
  return classification_loss(net, linear(net, "seq_relationship", pooled, 2), labels);
}

void build(Net& net, const Bert& options) {
  if (options.sequence > options.positions) {
    fail_option(
        "sequence {} is longer than the table of positions; expected at most {} (or more "
        "positions)",
        options.sequence, options.positions);
  }
  Embedded embedded;
  Value pooled;
  {
    const auto scope = net.scope("bert");
    embedded = embed(net, options);
    for (std::int64_t i = 0; i < options.layers; ++i) {
      const auto at = net.scope("encoder.layer", i);
      embedded.x = layer(net, embedded.x, options);
    }
    if (options.head != "masked-lm") pooled = pool(net, embedded.x);
  }
  if (options.head == "none") return;
  const Value loss = masked_lm_loss(net, embedded.x, embedded.words, options);
  if (options.head == "pretraining") add(net, loss, next_sentence_loss(net, pooled, options));
}

}  // namespace

std::vector<ModelInfo> bert_models() {
  return {
      model<Bert>({.name = "bert-base",
                   .summary = "BERT of 12 layers with its masked-language-model head.",
                   .source = "Devlin et al. 2019; Hugging Face BertForMaskedLM, bert-base-uncased "
                             "(head=none: BertModel, 109,482,240)",
                   .parameters = 109'514'298},
                  build),
      model<Bert>({.name = "bert-large",
                   .summary = "BERT of 24 layers with its masked-language-model head.",
                   .source = "Devlin et al. 2019; Hugging Face BertForMaskedLM, bert-large-uncased "
                             "(head=none: BertModel, 335,141,888)",
                   .parameters = 335'174'458},
                  build, {{"layers", "24"}, {"hidden", "1024"}, {"heads", "16"}}),
  };
}

}  // namespace emplace::zoo
