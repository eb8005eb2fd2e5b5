// The filter of the page's table: words that all have to hold.
//
//   phase:Running,Backoff  reason:Queued  queue:night  pool:gpu  node:node-1  ns:media
//   label:team=film  label:team  is:stalled  is:late  age>1h  age<10m  since>5m
//   and any other word: a part of the name
//
// A word takes several values with commas, any of which may hold. `phase:new` is a job that no
// operator has read. Letters of either case are alike in `phase:` and `reason:`. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "plugin/ui/job_row.h"

namespace holdfast::plugin {

struct JobFilter {
  enum class Key { kPhase, kReason, kQueue, kPool, kPlace, kNamespace, kLabel, kIs };
  // Any of the values may hold.
  struct Term {
    Key key = Key::kPhase;
    std::vector<std::string> values;
  };
  struct Span {
    bool is_more = true;
    Duration span{};
  };
  std::vector<Term> terms;
  std::vector<std::string> words;
  std::vector<Span> ages, sinces;
};

// kInvalid says which word is wrong and what may stand there. At most 1 KiB.
Result<JobFilter> parse_job_filter(std::string_view text);

bool holds(const JobFilter& filter, const JobRow& row, Time now);

}  // namespace holdfast::plugin
