#include "cli/question.h"

#include <utility>

#include <fmt/core.h>

#include "cli/messages.h"
#include "report/assessment_report.h"
#include "report/shortfall.h"

namespace emplace::cli {

Question::Question(const QuestionArguments& arguments, ProblemRequest request, const char* format,
                   const Session& session, std::vector<Solution> more)
    : request_(std::move(request)),
      format_(format),
      json_(arguments.json),
      page_(!arguments.report.empty()),
      session_(session),
      loaded_(load_noted(request_)),
      problems_(
          arguments.subsets.make(loaded_.problem, arguments.objective.make(), std::move(more))),
      given_(arguments.budget.make(session)),
      budget_(given_.or_default()) {
  problems_.set_terms(terms_of(request_, *loaded_.problem));
  problems_.set_granularity(request_.granularity);
}

JsonHeader Question::header() const {
  return {.format = format_,
          .model = request_.model,
          .made_with = request_.made_with(),
          .problem = loaded_.problem.get(),
          .objective = problems_.objective(),
          .budget = &budget_,
          .ranks = session_.crew != nullptr ? session_.crew->size() : 1,
          .lost_ranks = session_.crew != nullptr ? session_.crew->lost() : 0};
}

bool Question::refuse_hopeless(Session& session) const {
  if (!problems_.why_nothing_fits()) return false;
  const bool whole = request_.granularity != Granularity::kOp;
  say(fmt::format(
      "emplace: no placement of '{}' {}fits: {}{}\n", loaded_.problem->graph().name(),
      whole ? fmt::format("that keeps {}s whole ", granularity_name(request_.granularity)) : "",
      *problems_.why_nothing_fits(), whole ? "; op by op one may" : ""));
  const std::string advice = describe_hopeless(problems_, request_.could_recompute());
  if (json_) {
    fmt::print("{}",
               with_header(header(), why_nothing_fits_json(*problems_.why_nothing_fits(), advice)));
  } else if (!advice.empty()) {
    fmt::print("What is short\n{}", advice);
  }
  if (page_) note("there is no placement to show, so no page was written");
  session.exit_code = kExitNothingFits;
  return true;
}

WholeModules Question::compare_with_ops(const Assessment& answer, const RunResult& found,
                                        const Budget& budget) const {
  const OpByOp ops(loaded_.op_by_op, answer, found);
  if (budget.cancelled != nullptr && budget.cancelled->load()) {
    return ops.compare(request_.granularity, nullptr);
  }
  const PortfolioResult result = run_portfolio(ops.problems(), ops.request(budget));
  return ops.compare(request_.granularity, &result);
}

}  // namespace emplace::cli
