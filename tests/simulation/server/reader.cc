#include "tests/simulation/server/reader.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace holdfast::simulation {
namespace {

// Where a paged list goes on: the version that all its pages show (0: whatever is there now), and
// the last key that was sent. Opaque to clients, so hexadecimal is enough.
struct Continuation {
  std::uint64_t version = 0;
  std::string after;
};

std::string encode(const Continuation& continuation) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string token;
  for (const char c : std::to_string(continuation.version) + ":" + continuation.after) {
    const auto byte = static_cast<unsigned char>(c);
    token += {kHex[byte >> 4], kHex[byte & 15]};
  }
  return token;
}

std::optional<Continuation> decode(const std::string& token) {
  std::string text;
  for (std::size_t i = 0; i + 1 < token.size(); i += 2) {
    const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    text += static_cast<char>(digit(token[i]) * 16 + digit(token[i + 1]));
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto version = parse_version(text.substr(0, colon));
  if (!version) return std::nullopt;
  return Continuation{*version, text.substr(colon + 1)};
}

// What a list is to show. `answer` has a status when it is refused.
struct Source {
  ApiAnswer answer;
  const Objects* objects = nullptr;
  Objects old;  // what `objects` points to, of a version that has passed
  std::uint64_t version = 0;
  std::string after;  // of a continued list
  int limit = 0;
};

ApiAnswer query_refused(const std::string& field, const std::string& why) {
  return failure(422, "Invalid", "ListOptions.meta.k8s.io \"\" is invalid: " + field + ": " + why,
                 {{"group", "meta.k8s.io"},
                  {"kind", "ListOptions"},
                  {"causes", Json::array({{{"reason", "FieldValueForbidden"},
                                           {"message", "Forbidden: " + why},
                                           {"field", field}}})}});
}

void show_version(const Storage& storage, const Table& table, std::uint64_t version,
                  Source& source) {
  source.version = version;
  if (version == storage.version()) {
    source.objects = &table.truth;
  } else {
    source.old = storage.at_version(table, version);
    source.objects = &source.old;
  }
}

void show_continued(const Storage& storage, const Table& table, const std::string& token,
                    Source& source) {
  auto continuation = decode(token);
  if (!continuation) {
    source.answer = bad_request("continue key is not valid");
    return;
  }
  source.after = continuation->after;
  if (continuation->version == 0) {
    show_version(storage, table, storage.version(), source);
  } else if (continuation->version < storage.compacted() ||
             continuation->version > storage.version()) {
    Json status = expired_status(
        "The provided continue parameter is too old to display a consistent list result.");
    status["metadata"]["continue"] = encode({0, continuation->after});
    source.answer = object_answer(410, status);
  } else {
    show_version(storage, table, continuation->version, source);
  }
}

// From the watch cache, at `version` or later.
void show_cached(const Storage& storage, const Table& table, std::uint64_t version,
                 Source& source) {
  if (version > storage.cache_version()) {
    source.answer = object_answer(504, too_large_version_status(version, storage.cache_version()));
    source.answer.retry_after_seconds = 1;
    return;
  }
  source.version = storage.cache_version();
  source.objects = &table.cached;
}

void show_exactly(const Storage& storage, const Table& table, std::uint64_t version,
                  Source& source) {
  if (version > storage.version()) {
    source.answer = object_answer(504, too_large_version_status(version, storage.version()));
    source.answer.retry_after_seconds = 1;
  } else if (version < storage.compacted()) {
    source.answer =
        object_answer(410, expired_status("The resourceVersion for the provided list is too old."));
  } else {
    show_version(storage, table, version, source);
  }
}

Source source_of(const Storage& storage, const Table& table, const Target& target) {
  Source source;
  const std::string text = target.value("resourceVersion");
  const std::string match = target.value("resourceVersionMatch");
  const std::string token = target.value("continue");
  const auto version = parse_version(text);
  const auto limit = parse_version(target.value("limit"));
  if (!limit) {
    source.answer = bad_request("limit is not a number");
  } else if (!match.empty() && text.empty()) {
    source.answer =
        query_refused("resourceVersionMatch",
                      "resourceVersionMatch is forbidden unless resourceVersion is provided");
  } else if (!match.empty() && !token.empty()) {
    source.answer = query_refused("resourceVersionMatch",
                                  "resourceVersionMatch is forbidden when continue is provided");
  } else if (target.has("sendInitialEvents")) {
    source.answer = query_refused("sendInitialEvents", "sendInitialEvents is forbidden for list");
  } else if (!version) {
    source.answer = bad_request("Invalid value: \"" + text + "\": strconv.ParseUint");
  } else if (!token.empty() && *version != 0) {
    source.answer = bad_request("specifying resource version is not allowed when using continue");
  }
  if (source.answer.status != 0) return source;
  source.limit = text == "0" ? 0 : static_cast<int>(*limit);
  const bool exact = match == "Exact" || (match.empty() && *limit > 0 && *version > 0);
  if (!token.empty()) {
    source.limit = static_cast<int>(*limit);
    show_continued(storage, table, token, source);
  } else if (text.empty()) {
    show_version(storage, table, storage.version(), source);
  } else if (exact) {
    show_exactly(storage, table, *version, source);
  } else {
    show_cached(storage, table, *version, source);
  }
  return source;
}

// Items of a built-in list do not say what they are.
void append_item(const Resource& resource, const Stored& stored, std::string& body) {
  const std::string& text = stored.text();
  const std::string head =
      "{\"apiVersion\":\"" + resource.api_version() + "\",\"kind\":\"" + resource.kind + "\",";
  if (!resource.custom && text.compare(0, head.size(), head) == 0) {
    body += '{';
    body.append(text, head.size());
  } else {
    body += text;
  }
}

}  // namespace

std::string metadata_text(const Json& object) {
  const Json partial = {{"kind", "PartialObjectMetadata"},
                        {"apiVersion", "meta.k8s.io/v1"},
                        {"metadata", at(object, "metadata")}};
  return partial.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ApiAnswer parse_filter(const Target& target, Filter& filter) {
  filter.namespace_ = target.namespace_;
  const auto labels = parse_label_selector(target.value("labelSelector"));
  if (!labels) return bad_request("unable to parse requirement of the label selector");
  const auto fields = parse_field_selector(target.value("fieldSelector"));
  if (!fields) return bad_request("invalid field selector");
  filter.labels = *labels;
  filter.fields = *fields;
  for (const Requirement& requirement : filter.fields) {
    const std::string& key = requirement.key;
    const bool of_pods = std::string_view(target.resource->plural) == "pods" &&
                         (key == "spec.nodeName" || key == "status.phase");
    const bool of_jobs = std::string_view(target.resource->plural) == "durablejobs" &&
                         (key == "status.settled" || key == "status.shard");
    if (key != "metadata.name" && key != "metadata.namespace" && !of_pods && !of_jobs) {
      return bad_request("field label not supported: " + key);
    }
  }
  return {};
}

ApiAnswer Reader::get(const Target& target, bool metadata_only) {
  const Resource& resource = *target.resource;
  const auto version = parse_version(target.value("resourceVersion"));
  if (!version) return bad_request("Invalid value for resourceVersion");
  const std::string key = key_of(resource, target.namespace_, target.name);
  const Table& table = storage_.table(resource);
  const bool cached = target.has("resourceVersion") && !target.value("resourceVersion").empty();
  if (cached && *version > storage_.cache_version()) {
    return object_answer(504, too_large_version_status(*version, storage_.cache_version()));
  }
  const Objects& objects = cached ? table.cached : table.truth;
  const auto found = objects.find(key);
  if (found == objects.end()) return not_found(resource, target.name);
  ApiAnswer answer;
  answer.status = 200;
  answer.body = metadata_only ? metadata_text(found->second->json()) : found->second->text();
  return answer;
}

ApiAnswer Reader::list(const Target& target, bool metadata_only) {
  const Resource& resource = *target.resource;
  Filter filter;
  if (ApiAnswer refused = parse_filter(target, filter); refused.status != 0) return refused;
  const Source source = source_of(storage_, storage_.table(resource), target);
  if (source.answer.status != 0) return source.answer;
  ApiAnswer answer;
  answer.status = 200;
  answer.body = metadata_only ? "{\"apiVersion\":\"meta.k8s.io/v1\",\"items\":["
                              : "{\"apiVersion\":\"" + resource.api_version() + "\",\"items\":[";
  // A list of one namespace begins and ends with its keys.
  const std::string prefix = filter.namespace_.empty() ? "" : filter.namespace_ + "/";
  auto place = source.after.empty() ? source.objects->lower_bound(prefix)
                                    : source.objects->upper_bound(source.after);
  int count = 0;
  std::string last;
  Json metadata = {{"resourceVersion", std::to_string(source.version)}};
  for (; place != source.objects->end() && place->first.compare(0, prefix.size(), prefix) == 0;
       ++place) {
    if (source.limit > 0 && count == source.limit) {
      metadata["continue"] = encode({source.version, last});
      if (filter.labels.empty() && filter.fields.empty()) {
        const auto end = filter.namespace_.empty()
                             ? source.objects->end()
                             : source.objects->lower_bound(filter.namespace_ + "0");  // after '/'
        metadata["remainingItemCount"] = std::distance(place, end);
      }
      break;
    }
    last = place->first;
    if (!filter.matches(place->second->json())) continue;
    if (count++ > 0) answer.body += ',';
    if (metadata_only) {
      answer.body += metadata_text(place->second->json());
    } else {
      append_item(resource, *place->second, answer.body);
    }
  }
  answer.body += std::string("],\"kind\":\"") +
                 (metadata_only ? "PartialObjectMetadata" : resource.kind) +
                 "List\",\"metadata\":" + metadata.dump() + "}";
  return answer;
}

}  // namespace holdfast::simulation
