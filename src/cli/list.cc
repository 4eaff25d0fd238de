// emplace list: what there is to choose from.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/json_output.h"
#include "report/methods_report.h"

namespace emplace::cli {

void add_list(Command& root, Session&) {
  struct Arguments {
    std::string key;
    bool markdown = false;
    bool json = false;
  };
  auto arguments = std::make_shared<Arguments>();
  Command command =
      root.command("list", "List placers, schedulers and partition methods, or one's options");
  command.text("placer", arguments->key, "A placer or partition method, to see its options")
      .type("NAME");
  command.flag("--markdown", arguments->markdown, "Everything as a page of documentation");
  add_json(command, arguments->json);
  command.footer("Example: emplace list heft");
  command.run([arguments] {
    const std::string& key = arguments->key;
    if (arguments->markdown) {
      fmt::print("{}", methods_page());
    } else if (arguments->json) {
      fmt::print("{}", key.empty() ? with_header({.format = "emplace.methods/1"}, methods_json())
                                   : with_header({.format = "emplace.method/1"}, method_json(key)));
    } else if (key.empty()) {
      fmt::print("{}\nOptions of one: emplace list NAME\n", methods_text());
    } else {
      fmt::print("{}", method_text(key));
    }
  });
}

}  // namespace emplace::cli
