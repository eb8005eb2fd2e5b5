#include "plugin/explain/explain.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/docs_link.h"
#include "plugin/explain/parts.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/moments.h"

namespace holdfast::plugin {
namespace {

constexpr Detail kEverything = {1000, 1000, 1000};
// From all that there is to the least.
constexpr std::array kDetails = {Detail{10, 17, 5}, Detail{8, 17, 5}, Detail{6, 17, 4},
                                 Detail{5, 12, 4},  Detail{4, 8, 4},  Detail{3, 6, 3},
                                 Detail{2, 5, 3},   Detail{2, 5, 2},  Detail{1, 4, 2},
                                 Detail{0, 4, 3},   Detail{0, 3, 2},  Detail{0, 1, 1}};

// The phase may be that of a wait which will not be.
std::string phase_of(const Explaining& explaining) {
  const JobText& job = explaining.job;
  if (job.phase.empty()) return "not read by any operator yet";
  const bool is_reported = job.has_ended() || job.phase == "Cancelling";
  const std::string next = is_reported ? "" : outlook_words(explaining);
  return next.empty() ? job.phase : next + " (phase " + job.phase + ")";
}

std::string state_of(const Explaining& explaining) {
  const JobText& job = explaining.job;
  std::string state = phase_of(explaining);
  if (!job.has_ended() && !job.stage.empty()) state += ", stage " + job.stage;
  if (!job.has_ended() && holds(explaining.facts.job, "Stalled")) state += ", needs a person";
  return state;
}

// The name, the phase and the age. A long name has a line of its own.
Lines title(const Explaining& explaining) {
  const JobText& job = explaining.job;
  const std::string name = job.namespace_ + "/" + job.name;
  const std::string left = name + "  " + state_of(explaining);
  std::string right;
  if (job.completed) {
    right = "ended " + span_text(explaining.now - *job.completed) + " ago";
  } else if (job.created) {
    right = "created " + span_text(explaining.now - *job.created) + " ago";
  }
  const std::size_t width = explaining.page.width;
  if (cells(left) + 2 + cells(right) <= width) {
    return {left + std::string(width - cells(left) - cells(right), ' ') + right};
  }
  if (cells(left) <= width) return {left};
  Lines lines = wrap(name, width, 4, explaining.page.unicode);
  lines.push_back(cut(state_of(explaining) + "  " + right, width, explaining.page.unicode));
  return lines;
}

void add_part(const Lines& part, Lines& lines) {
  if (part.empty()) return;
  lines.emplace_back();
  lines.insert(lines.end(), part.begin(), part.end());
}

// Where the manual says more. Neither cut nor wrapped, so that it can be pasted: a page that is too
// narrow has none. Nor has a reason that the manual does not know.
Lines link_lines(const Explaining& explaining) {
  const bool has_ended = explaining.job.has_ended();
  const std::string reason = has_ended ? ended_reason(explaining) : waiting_reason(explaining);
  // The job's own conditions say how it has ended. A kubelet may say what it waits for.
  const std::string_view heading = has_ended ? std::string_view(reason) : heading_of(reason);
  const std::string line = "More:   " + api::reason_link(heading);
  if (heading.empty() || cells(line) > explaining.page.width) return {};
  return {line};
}

Lines page_of(const Explaining& explaining) {
  Lines lines = title(explaining);
  Lines facts;
  add_fact(explaining, "About", clean_at(at(explaining.facts.job, "spec"), "description"), facts);
  const bool has_ended = explaining.job.has_ended();
  for (std::string& line : has_ended ? ended_lines(explaining) : waiting_lines(explaining)) {
    facts.push_back(std::move(line));
  }
  add_part(facts, lines);
  add_part(stage_lines(explaining), lines);
  if (explaining.detail.attempts > 0) add_part(attempt_lines(explaining), lines);
  for (std::string& line : link_lines(explaining)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace

std::vector<std::string> explain(const ExplainFacts& facts, Time now, const Page& page) {
  const JobText job = read_job(facts.job);
  const Outlook outlook = outlook_of(facts.job, job, now);
  if (page.height == 0) return page_of({facts, job, now, page, kEverything, outlook});
  Lines lines;
  for (const Detail& detail : kDetails) {
    lines = page_of({facts, job, now, page, detail, outlook});
    if (lines.size() <= page.height) break;
  }
  return lines;
}

}  // namespace holdfast::plugin
