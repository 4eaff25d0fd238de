// emplace report: several results side by side, as one page.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/messages.h"
#include "cli/output.h"
#include "report/page.h"

namespace emplace::cli {
namespace {

struct ReportArguments {
  std::vector<std::string> files;
  std::string output = "report.html";
};

void report(const ReportArguments& arguments, Session& session) {
  const Outputs outputs(session, {arguments.output}, false, arguments.files);
  std::vector<std::string> results;
  for (const std::string& path : arguments.files) {
    for (std::string& result : results_in(path)) results.push_back(std::move(result));
  }
  outputs.write(arguments.output, page_html(results));
  for (const std::string& path : outputs.files()) {
    outputs.print("wrote {} (open it in a browser)\n", path);
  }
}

}  // namespace

void add_report(Command& root, Session& session) {
  auto arguments = std::make_shared<ReportArguments>();
  Command command = root.command("report", "Put several results side by side, as one page");
  command
      .list(
          "FILES", arguments->files,
          "Pages that --report wrote, data downloaded from them, or what --json printed (of which "
          "there is less to see)")
      .required()
      .type("FILE");
  add_file(command, "-o,--output", arguments->output,
           "Write the page here; - for standard output. Default: report.html");
  add_quiet(command);
  command.footer("Example: emplace report two.html four.html -o both.html");
  command.run([arguments, &session] { report(*arguments, session); });
}

}  // namespace emplace::cli
