// emplace completion, emplace man: the command line, told to shells and to man(1).
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/shell_completion.h"

namespace emplace::cli {

void add_completion(Command& root, const CommandLine& line) {
  auto shell = std::make_shared<std::string>();
  Command completion =
      root.command("completion", "Print what a shell needs to complete commands and options");
  completion.text("shell", *shell, "bash, zsh or fish")
      .required()
      .type("SHELL")
      .one_of({"bash", "zsh", "fish"});
  completion.footer("Example: source <(emplace completion bash)");
  completion.run([shell, &line] {
    const CommandOutline outline = line.outline();
    fmt::print("{}", *shell == "bash"  ? bash_completion(outline)
                     : *shell == "zsh" ? zsh_completion(outline)
                                       : fish_completion(outline));
  });
  Command manual = root.command("man", "Print the manual page, in roff");
  manual.footer("Example: emplace man | man -l -");
  manual.run([&line] { fmt::print("{}", manual_page(line.outline(), EMPLACE_VERSION)); });
}

}  // namespace emplace::cli
