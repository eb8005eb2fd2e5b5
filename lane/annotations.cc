#include "lane/annotations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "lane/batch_job.h"
#include "reconciler/names.h"

namespace holdfast::lane {
namespace {

enum class Form { kSeconds, kCount, kObject, kQueue, kNames, kReplacement };
struct Field {
  std::string_view name;
  Form form;
};
constexpr std::array<Field, 10> kFields = {{{"attemptDeadlineSeconds", Form::kSeconds},
                                            {"disruptionLimit", Form::kCount},
                                            {"heartbeat", Form::kObject},
                                            {"lostAfterSeconds", Form::kSeconds},
                                            {"notify", Form::kNames},
                                            {"podReplacementPolicy", Form::kReplacement},
                                            {"queue", Form::kQueue},
                                            {"retryBackoff", Form::kObject},
                                            {"scheduleDeadlineSeconds", Form::kSeconds},
                                            {"startDeadlineSeconds", Form::kSeconds}}};

std::optional<Json> number(const std::string& text, std::int32_t least) {
  std::int32_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || value < least) return std::nullopt;
  return Json(value);
}

std::optional<Json> object(const std::string& text) {
  Result<Json> parsed = parse_json(text);
  if (!parsed.ok() || !parsed->is_object()) return std::nullopt;
  return std::move(*parsed);
}

// "a, b": the names, without blanks.
std::optional<Json> names(const std::string& text) {
  Json list = Json::array();
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    std::string name = text.substr(begin, comma - begin);
    std::erase(name, ' ');
    if (name.empty()) return std::nullopt;
    list.push_back(std::move(name));
    begin = comma + 1;
  }
  return list;
}

std::optional<Json> value_of(Form form, const std::string& text) {
  switch (form) {
    case Form::kSeconds:
      return number(text, 1);
    case Form::kCount:
      return number(text, 0);
    case Form::kObject:
      return object(text);
    case Form::kQueue:
      if (text.starts_with('{')) return object(text);
      return text.empty() ? std::nullopt : std::optional(Json{{"name", text}});
    case Form::kNames:
      return names(text);
    case Form::kReplacement:
      break;
  }
  const bool is_known = text == "TerminatingOrFailed" || text == "Failed";
  return is_known ? std::optional(Json(text)) : std::nullopt;
}

const char* advice(Form form) {
  switch (form) {
    case Form::kSeconds:
      return "give a whole number of seconds above 0";
    case Form::kCount:
      return "give a whole number";
    case Form::kObject:
      return "give the field's value as a JSON object";
    case Form::kQueue:
      return "give the name of a JobQueue, or a JSON object with name, priority and key";
    case Form::kNames:
      return "give names of targets with commas between them";
    case Form::kReplacement:
      break;
  }
  return "give TerminatingOrFailed or Failed";
}

std::string known_fields() {
  std::string list;
  for (const Field& field : kFields) list += (list.empty() ? "" : ", ") + std::string(field.name);
  return list;
}

}  // namespace

bool is_ours(std::string_view annotation) {
  return annotation.starts_with(reconciler::kLabelPrefix);
}

void add_annotated_fields(const Json& annotations, Json& spec, Differences& differences) {
  if (!annotations.is_object()) return;
  for (const auto& [key, value] : annotations.items()) {
    const bool is_record = key == kNameAnnotation || key == kUidsAnnotation;
    if (!is_ours(key) || is_record) continue;
    const std::string name = key.substr(std::string_view(reconciler::kLabelPrefix).size());
    const auto field = std::find_if(kFields.begin(), kFields.end(),
                                    [&](const Field& one) { return one.name == name; });
    if (field == kFields.end()) {
      differences.errors.push_back("the annotation " + key +
                                   " names no field: remove it, or use one of " + known_fields());
      continue;
    }
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    std::optional<Json> parsed = value_of(field->form, text);
    if (!parsed) {
      differences.refuse(name, "the annotation " + key + " has the value \"" + text +
                                   "\": " + advice(field->form));
      continue;
    }
    spec[name] = std::move(*parsed);
  }
}

}  // namespace holdfast::lane
