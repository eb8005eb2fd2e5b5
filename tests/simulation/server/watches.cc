#include "tests/simulation/server/watches.h"

#include <utility>
#include <vector>

#include "tests/simulation/server/reader.h"

namespace holdfast::simulation {
namespace {

ApiAnswer options_refused(const std::string& field, const std::string& why) {
  return failure(422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: " + field + ": " + why,
                 {{"group", "meta.k8s.io"},
                  {"kind", "ListOptions"},
                  {"causes", Json::array({{{"reason", "FieldValueForbidden"},
                                           {"message", "Forbidden: " + why},
                                           {"field", field}}})}});
}

// Status 0: nothing to say against it.
ApiAnswer check_options(const Target& target, const std::optional<std::uint64_t>& version) {
  const std::string match = target.value("resourceVersionMatch");
  if (target.has("sendInitialEvents") && match != "NotOlderThan") {
    return options_refused(
        "resourceVersionMatch",
        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
  }
  if (!match.empty() && !target.has("sendInitialEvents")) {
    return options_refused(
        "resourceVersionMatch",
        "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
  }
  if (!version) return failure(500, "", "Invalid value for resourceVersion");
  return {};
}

std::string line_of(const char* type, const std::string& object) {
  std::string line = "{\"type\":\"";
  line += type;
  line += "\",\"object\":";
  line += object;
  line += '}';
  return line;
}

}  // namespace

ApiServer::Opened Watches::open(const Target& target, bool metadata_only, WatchSink sink) {
  Watch watch;
  const std::string text = target.value("resourceVersion");
  const auto version = parse_version(text);
  if (ApiAnswer refused = check_options(target, version); refused.status != 0) {
    return {std::move(refused), 0};
  }
  if (ApiAnswer refused = parse_filter(target, watch.filter); refused.status != 0) {
    return {std::move(refused), 0};
  }
  watch.table = &storage_.table(*target.resource);
  watch.bookmarks = target.is_true("allowWatchBookmarks");
  watch.metadata_only = metadata_only;
  const bool streams_list = target.is_true("sendInitialEvents");
  const bool from_now = target.has("sendInitialEvents") && !streams_list && *version == 0;
  watch.initial = streams_list || (*version == 0 && !from_now);
  watch.marks_end = streams_list && watch.bookmarks;
  if (streams_list) watch.not_before = text.empty() ? storage_.version() : *version;
  watch.after = from_now ? storage_.cache_version() : *version;

  ApiServer::Opened opened;
  opened.answer.status = 200;
  opened.id = next_++;
  if (watch.not_before > storage_.version()) {
    fail(sink, too_large_version_status(watch.not_before, storage_.cache_version()));
    return opened;
  }
  if (!watch.initial && watch.after < storage_.watchable_from()) {
    fail(sink, expired_status("too old resource version: " + text + " (" +
                              std::to_string(storage_.watchable_from()) + ")"));
    return opened;
  }
  watch.sink = std::move(sink);
  Watch& added = watches_.emplace(opened.id, std::move(watch)).first->second;
  if (added.initial) {
    if (added.not_before <= storage_.cache_version()) send_initial(added);
  } else {
    // What the cache has seen already, since the version asked for.
    const Table& table = *added.table;
    for (std::size_t i = 0; i < table.served; ++i) {
      if (table.log[i].version > added.after) send_change(added, table.log[i]);
    }
  }
  return opened;
}

void Watches::advance(std::uint64_t version) {
  storage_.advance_cache(version, [this](const Table& table, const Change& change) {
    for (const auto& [id, watch] : watches_) {
      if (watch.table == &table && !watch.initial && change.version > watch.after) {
        send_change(watch, change);
      }
    }
  });
  for (auto& [id, watch] : watches_) {
    if (watch.initial && watch.not_before <= storage_.cache_version()) send_initial(watch);
  }
}

void Watches::send_bookmarks() {
  for (const auto& [id, watch] : watches_) {
    if (watch.bookmarks && !watch.initial && watch.after <= storage_.cache_version()) {
      send_bookmark(watch, false);
    }
  }
}

void Watches::expire_unserved() {
  std::vector<WatchId> ended;
  for (auto& [id, watch] : watches_) {
    const bool unserved = watch.table->served < watch.table->log.size();
    if (!unserved && !watch.initial) continue;
    fail(watch.sink, expired_status("The resourceVersion for the provided watch is too old."));
    ended.push_back(id);
  }
  for (const WatchId id : ended) watches_.erase(id);
}

void Watches::end_all(bool without_a_word) {
  const std::map<WatchId, Watch> ended = std::exchange(watches_, {});
  if (without_a_word) return;
  for (const auto& [id, watch] : ended) {
    if (watch.sink.on_end) watch.sink.on_end();
  }
}

void Watches::send_initial(Watch& watch) {
  watch.initial = false;
  watch.after = storage_.cache_version();
  for (const auto& [key, stored] : watch.table->cached) {
    if (watch.filter.matches(stored->json())) send(watch, "ADDED", *stored);
  }
  if (watch.marks_end) send_bookmark(watch, true);
}

void Watches::send_change(const Watch& watch, const Change& change) {
  const bool was = change.before && watch.filter.matches(change.before->json());
  const bool is = change.after && watch.filter.matches(change.after->json());
  if (is) {
    send(watch, was ? "MODIFIED" : "ADDED", *change.after);
  } else if (was && change.gone) {
    send(watch, "DELETED", *change.gone);
  } else if (was) {
    // It has left the selection: shown as it was, at the version at which it left.
    Json last = change.before->json();
    last["metadata"]["resourceVersion"] = std::to_string(change.version);
    send(watch, "DELETED", Stored(change.key(), change.version, std::move(last)));
  }
}

void Watches::send(const Watch& watch, const char* type, const Stored& object) {
  watch.sink.on_line(
      line_of(type, watch.metadata_only ? metadata_text(object.json()) : object.text()));
}

void Watches::send_bookmark(const Watch& watch, bool end_of_initial_events) {
  const Resource& resource = *watch.table->resource;
  Json object = {{"kind", watch.metadata_only ? "PartialObjectMetadata" : resource.kind},
                 {"apiVersion", watch.metadata_only ? "meta.k8s.io/v1" : resource.api_version()},
                 {"metadata", {{"resourceVersion", std::to_string(storage_.cache_version())}}}};
  if (end_of_initial_events) {
    object["metadata"]["annotations"] = {{"k8s.io/initial-events-end", "true"}};
  }
  watch.sink.on_line(line_of("BOOKMARK", object.dump()));
}

void Watches::fail(WatchSink& sink, const Json& status) {
  if (sink.on_line) sink.on_line(line_of("ERROR", status.dump()));
  if (sink.on_end) sink.on_end();
}

}  // namespace holdfast::simulation
