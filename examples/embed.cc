// A program of one's own that asks emplace where a model's ops should run.
//
//   c++ -std=c++20 embed.cc $(pkg-config --cflags --libs emplace) -o embed
//   ./embed zoo:bert-base
#include <cstdio>

#include <emplace/emplace.h>

int main(int argc, char** argv) {
  try {
    const emplace::Model model = emplace::read_model(argc > 1 ? argv[1] : "zoo:resnet-50:batch=64");
    const auto problem = emplace::compile(model.graph, emplace::read_cluster("4xp100"));

    emplace::PlaceOptions options;
    options.budget.seconds = 2;
    const emplace::Answer answer = emplace::place(problem, options);

    std::printf("%s\n%s%s", emplace::describe(*problem).c_str(), answer.to_text().c_str(),
                answer.explanation().c_str());
    return answer.fits() ? 0 : 1;
  } catch (const emplace::Error& error) {
    std::fprintf(stderr, "embed: %s\n", error.what());
    return 2;
  }
}
