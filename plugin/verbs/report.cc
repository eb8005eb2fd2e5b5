// The verb `report`: what the operator would have freed with --rescue=on (docs/rescue.md, Observe).
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/utf8.h"
#include "plugin/base/installation.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/moments.h"
#include "plugin/terminal/print.h"
#include "plugin/verbs/verbs.h"
#include "reconciler/rescue/journal_text.h"

namespace holdfast::plugin {
namespace {

using reconciler::JournalEntry;

constexpr std::chrono::hours kSince{24};
constexpr std::size_t kTextLimit = 253;
// An observer renews its Lease every few seconds.
constexpr std::chrono::minutes kObserves{1};
constexpr Resource kConfigMaps{"/api/v1", "configmaps", "ConfigMap", "configmap"};

const char* what_became(const JournalEntry& entry) {
  if (entry.returned) return "went on";
  if (entry.unseen) return "unknown";
  return entry.ended ? "ended" : "hangs";
}

std::vector<std::string> table(const std::vector<JournalEntry>& entries, Time now) {
  std::vector<std::vector<std::string>> rows = {
      {"NAMESPACE", "POD", "CONTROLLER", "NODE", "HUNG", "WITH HOLDFAST", "THEN"}};
  for (const JournalEntry& entry : entries) {
    const auto clean = [](const std::string& text) { return clean_text(text, kTextLimit); };
    rows.push_back({clean(entry.namespace_), clean(entry.pod), clean(entry.controller),
                    clean(entry.node), span_text(hung_for(entry, now)),
                    entry.stays.empty() ? span_text(entry.due - entry.silent_since)
                                        : "stays: " + clean(entry.stays),
                    what_became(entry)});
  }
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], cells(row[i]));
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i + 1 < row.size(); ++i) line += fit(row[i], widths[i] + 2, true);
    lines.push_back(line + row.back());
  }
  return lines;
}

std::string pods_text(std::size_t pods) {
  return std::to_string(pods) + (pods == 1 ? " pod" : " pods");
}

// Since when nobody observes. None: somebody does, or this user may not see it.
std::optional<Time> unobserved_since(Api& api, const std::string& namespace_, Time now) {
  const Result<Json> lease = api.get(kLeases, namespace_, reconciler::kObserverLease);
  if (!lease.ok()) return std::nullopt;
  const Json& spec = at(*lease, "spec");
  const auto renewed = parse_time(string_at(spec, "renewTime"));
  const bool is_held = !string_at(spec, "holderIdentity").empty();
  if (!renewed || (is_held && now - *renewed < kObserves)) return std::nullopt;
  return renewed;
}

// The time within what was asked for in which somebody observed.
std::string observed_text(Time from, std::optional<Time> until, Time now) {
  const std::string observed =
      "Observed for " + span_text(std::max(Duration::zero(), until.value_or(now) - from)) + ". ";
  return until ? observed + "Nobody has observed since " + clock_text(*until, now) + " UTC. "
               : observed;
}

// " 3 pods on silent nodes would have stayed as they are: Volumes 2, OwnerKind 1."
std::string stay_text(const reconciler::JournalSum& sum) {
  std::size_t all = 0;
  std::string reasons;
  for (const auto& [reason, pods] : sum.stay) {
    all += pods;
    reasons +=
        (reasons.empty() ? "" : ", ") + clean_text(reason, kTextLimit) + " " + std::to_string(pods);
  }
  return all == 0 ? ""
                  : " " + pods_text(all) +
                        " on silent nodes would have stayed as they are: " + reasons + ".";
}

std::string summed(const reconciler::JournalSum& sum, const std::string& within) {
  if (sum.pods + sum.hurt == 0) return within + "No pod would have been freed." + stay_text(sum);
  return within + pods_text(sum.pods) + " hung on silent nodes for " + span_text(sum.hung) +
         " in all; with Holdfast for " + span_text(sum.with_holdfast) + ". " + pods_text(sum.hurt) +
         " would have been freed although the pod went on." + stay_text(sum);
}

Json as_json(const std::vector<JournalEntry>& entries, const std::string& observed,
             std::optional<Time> until, Time since, Time now) {
  const reconciler::JournalSum sum = sum_of(entries, now);
  const auto seconds = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::seconds>(duration).count();
  };
  Json listed = Json::array();
  for (const JournalEntry& entry : entries) {
    Json one = encode_entry(entry);
    one["then"] = what_became(entry);
    one["hungSeconds"] = seconds(hung_for(entry, now));
    if (entry.stays.empty()) one["withHoldfastSeconds"] = seconds(entry.due - entry.silent_since);
    listed.push_back(std::move(one));
  }
  Json json = {{"observedSince", observed},
               {"since", format_time(since)},
               {"pods", sum.pods},
               {"hungSeconds", seconds(sum.hung)},
               {"withHoldfastSeconds", seconds(sum.with_holdfast)},
               {"falseVerdicts", sum.hurt},
               {"stay", sum.stay},
               {"entries", std::move(listed)}};
  if (until) json["observedUntil"] = format_time(*until);
  return json;
}

}  // namespace

int report(const Command& command, Api& api, Terminal& terminal) {
  const std::string where = operator_namespace(command);
  const std::string namespace_ = where.empty() ? kUsualNamespace : where;
  const Result<Json> found = api.get(kConfigMaps, namespace_, reconciler::kJournalName);
  if (!found.ok() && found.error().code == ErrorCode::kNotFound) {
    return refuse(terminal, command,
                  "nobody has observed in namespace " + namespace_ +
                      ": install Holdfast there with rescue.mode=observe, or say with "
                      "--operator-namespace where it is");
  }
  if (!found.ok()) {
    return refuse(
        terminal, command,
        advice(found.error(), {"get", kConfigMaps, namespace_, reconciler::kJournalName}));
  }
  const Time now = api.now();
  const Time since = now - command.duration("since").value_or(kSince);
  std::vector<JournalEntry> entries =
      reconciler::decode_journal(string_at(at(*found, "data"), reconciler::kJournalKey)).entries();
  std::erase_if(entries,
                [&](const JournalEntry& entry) { return !is_of_time_since(entry, since); });
  const std::string observed = string_at(at(*found, "data"), reconciler::kSinceKey);
  const std::optional<Time> until = unobserved_since(api, namespace_, now);
  if (command.text("output") == "json") {
    terminal.out(rendered(as_json(entries, observed, until, since, now), "json"));
    return kExitDone;
  }
  std::string text;
  if (!entries.empty()) {
    for (const std::string& line : table(entries, now)) text += line + "\n";
    text += "\n";
  }
  const Time begin = std::max(parse_time(observed).value_or(since), since);
  const std::string within = observed_text(begin, until, now);
  terminal.out(text + summed(sum_of(entries, now), within) + "\n");
  return kExitDone;
}

}  // namespace holdfast::plugin
