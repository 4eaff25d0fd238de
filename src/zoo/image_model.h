// What image classifiers share: options, the way in and out, and layers that several of them have.
#pragma once

#include <string_view>

#include "zoo/layers.h"
#include "zoo/model.h"

namespace emplace::zoo {

struct ImageOptions : StepOptions {
  std::int64_t image = 224;
  std::int64_t classes = 1000;

  // No aggregate: GCC 12 takes the strings of one within another for uninitialised.
  ImageOptions() { optimizer = "momentum"; }
};

// For models whose first linear layer fixes the size of the images.
template <class Options>
OptionSchema<Options> classifier_schema() {
  return step_schema<Options>().integer("classes", &Options::classes, 2, 1 << 20,
                                        "Classes to tell apart.");
}

template <class Options>
OptionSchema<Options> image_schema(std::int64_t smallest_image = 32) {
  return classifier_schema<Options>().integer("image", &Options::image, smallest_image, 1 << 14,
                                              "Height and width of the images.");
}

// [batch, 3, image, image].
Value input_images(Net& net, const ImageOptions& options);
// The logits [batch, classes] against labels that the step is given.
Value image_loss(Net& net, const Value& logits);

// A window on an input of this height and width, padded as TensorFlow's SAME: ceil(size / stride)
// steps, the odd pixel at the end.
ConvShape same_padding(std::int64_t size, std::int64_t kernel, std::int64_t stride = 1);

// The order of the searched networks: activation, convolution, normalisation.
Value relu_conv_bn(Net& net, std::string_view name, const Value& x, std::int64_t out,
                   const ConvShape& shape = {}, double epsilon = 1e-5);

// Half the size, nothing skipped: after the activation, a 1 x 1 convolution of every other pixel
// and one of the pixels between, joined and normalised (Zoph et al. 2018). `out` is even.
Value factorized_reduction(Net& net, std::string_view name, const Value& x, std::int64_t out,
                           double epsilon = 1e-5);

}  // namespace emplace::zoo
