#include "lane/batch_job.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "reconciler/names.h"

namespace holdfast::lane {
namespace {

constexpr std::size_t kNameLimit = 63;  // of a DNS label
constexpr std::size_t kObjectNameLimit = 253;
constexpr std::size_t kHashDigits = 8;

// The last pod of an Indexed job has the hostname "<name>-<completions - 1>".
std::size_t tail_of(const BatchJob& job) {
  if (string_at(job.spec, "completionMode") != "Indexed") return 0;
  const std::int64_t last = std::max<std::int64_t>(int_at(job.spec, "completions", 1) - 1, 0);
  return 1 + std::to_string(last).size();
}

bool can_be_a_label(const std::string& name, std::size_t tail) {
  return name.size() + tail <= kNameLimit && name.find('.') == std::string::npos;
}

std::string short_hash(const std::string& text) {
  std::string digits;
  std::uint64_t hash = reconciler::mixed(reconciler::hash64(text));
  for (std::size_t i = 0; i < kHashDigits; ++i, hash >>= 4) {
    digits += "0123456789abcdef"[hash & 0xf];
  }
  return digits;
}

}  // namespace

bool is_object_name(std::string_view text) {
  return !text.empty() && text.size() <= kObjectNameLimit &&
         std::all_of(text.begin(), text.end(), [](char one) {
           return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '-' ||
                  one == '.';
         });
}

bool is_finished(const Json& status) {
  const Json& conditions = at(status, "conditions");
  return std::any_of(conditions.begin(), conditions.end(), [](const Json& one) {
    const std::string type = string_at(one, "type");
    return (type == "Complete" || type == "Failed") && string_at(one, "status") == "True";
  });
}

std::optional<Record> record_of(const BatchJob& job) {
  const Json& annotations = at(job.metadata, "annotations");
  const std::string name = string_at(annotations, kNameAnnotation);
  const std::string uids = string_at(annotations, kUidsAnnotation);
  const std::string own = job.uid + "/";
  if (!is_object_name(name) || !uids.starts_with(own)) return std::nullopt;
  const std::string uid = uids.substr(own.size());
  if (!uid.empty() && !is_object_name(uid)) return std::nullopt;
  return Record{name, uid};
}

Json with_record(const BatchJob& job, const Record& record) {
  Json metadata = job.metadata;
  metadata["annotations"][kNameAnnotation] = record.name;
  metadata["annotations"][kUidsAnnotation] = job.uid + "/" + record.uid;
  return metadata;
}

bool has_queue(const Json& metadata) {
  return !string_at(at(metadata, "annotations"), "holdfast.dev/queue").empty();
}

std::string first_name(const BatchJob& job) {
  return can_be_a_label(job.name, tail_of(job)) ? job.name : second_name(job);
}

bool keeps_its_name(const BatchJob& job) {
  constexpr std::size_t kLongestTail = 1 + std::numeric_limits<std::int32_t>::digits10 + 1;
  return can_be_a_label(job.name, kLongestTail);
}

std::string second_name(const BatchJob& job) {
  std::string name = job.name.substr(0, kNameLimit - tail_of(job) - kHashDigits - 1);
  std::replace(name.begin(), name.end(), '.', '-');
  while (name.ends_with('-')) name.pop_back();
  return name + "-" + short_hash(job.uid);
}

}  // namespace holdfast::lane
