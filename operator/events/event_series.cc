#include "operator/events/event_series.h"

#include <array>
#include <cstdio>

#include "api/docs_link.h"
#include "core/json.h"
#include "core/time.h"
#include "core/utf8.h"
#include "reconciler/names.h"

namespace holdfast::events {
namespace {

constexpr const char* kReportingController = "holdfast.dev/operator";

}  // namespace

Series series_of(const ObjectReference& regarding, const EventPace::Entry& entry) {
  Series event;
  event.regarding = regarding;
  event.warning = entry.warning;
  event.reason = entry.reason;
  event.action = entry.action;
  event.note = clean_text(entry.note, kMaxNote);
  return event;
}

bool is_end(const Series& series) { return series.action == EventPace::kFinish; }

std::string series_key(const Series& series) {
  std::string key;
  for (const std::string* part :
       {&series.regarding.uid, &series.reason, &series.action, &series.note}) {
    key += *part;
    key += '\0';
  }
  return key + (series.warning ? 'W' : 'N');
}

std::string event_name(const Series& series) {
  std::array<char, 20> hash;
  std::snprintf(hash.data(), hash.size(), ".%016llx",
                static_cast<unsigned long long>(reconciler::hash64(series_key(series))));
  return series.regarding.name + hash.data();
}

Json series_json(const Series& series) {
  return {{"count", series.count}, {"lastObservedTime", format_time_micros(series.last)}};
}

std::string event_json(const Series& series, const std::string& instance) {
  const ObjectReference& regarding = series.regarding;
  Json event = {
      {"apiVersion", "events.k8s.io/v1"},
      {"kind", "Event"},
      {"metadata", {{"name", series.name}, {"namespace", regarding.namespace_}}},
      {"eventTime", format_time_micros(series.first)},
      {"reportingController", kReportingController},
      {"reportingInstance", instance},
      {"regarding",
       {{"apiVersion", regarding.api_version},
        {"kind", regarding.kind},
        {"namespace", regarding.namespace_},
        {"name", regarding.name},
        {"uid", regarding.uid}}},
      {"type", series.warning ? "Warning" : "Normal"},
      {"reason", series.reason},
      {"action", series.action},
      {"note", api::with_reason_link(series.note, series.reason, kMaxNote)},
  };
  if (series.count > 1) event["series"] = series_json(series);  // the API refuses fewer
  return event.dump();
}

}  // namespace holdfast::events
