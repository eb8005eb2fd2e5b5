#include "plugin/terminal/print.h"

#include "core/utf8.h"
#include "plugin/terminal/yaml_text.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kMaxCellBytes = 200;

std::string cell(const Json& object, std::string_view key) {
  const std::string text = clean_text(string_at(object, key), kMaxCellBytes);
  return text.empty() ? "-" : text;
}

// Two lines: what the columns are, and the job.
std::string wide(const Json& job) {
  const Json& metadata = at(job, "metadata");
  const Json& status = at(job, "status");
  const std::vector<std::pair<std::string, std::string>> columns = {
      {"NAMESPACE", cell(metadata, "namespace")},
      {"NAME", cell(metadata, "name")},
      {"PHASE", cell(status, "phase")},
      {"ATTEMPT", std::to_string(int_at(status, "attempt"))},
      {"WAITING", cell(at(status, "waiting"), "reason")},
      {"UID", cell(metadata, "uid")},
  };
  std::string head, row;
  for (const auto& [title, value] : columns) {
    const auto width = std::max(title.size(), value.size()) + 3;
    head += title + std::string(width - title.size(), ' ');
    row += value + std::string(width - value.size(), ' ');
  }
  const auto trimmed = [](const std::string& line) {
    return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  return trimmed(head) + trimmed(row);
}

}  // namespace

std::string job_reference(std::string_view name) {
  return "durablejob.holdfast.dev/" + std::string(name);
}

std::string key_of(const Json& object) {
  const Json& metadata = at(object, "metadata");
  return string_at(metadata, "namespace") + "/" + string_at(metadata, "name");
}

std::string rendered(const Json& json, std::string_view form) {
  if (form == "yaml") return to_yaml(json);
  return escape_controls(json.dump(4, ' ', false, Json::error_handler_t::replace)) + "\n";
}

void print_job(Terminal& terminal, const Command& command, const Json& job, std::string_view what) {
  const std::string form = command.text("output");
  const std::string name = string_at(at(job, "metadata"), "name");
  if (form == "json" || form == "yaml") {
    terminal.out(rendered(job, form));
  } else if (form == "name") {
    terminal.out(job_reference(name) + "\n");
  } else if (form == "wide") {
    terminal.out(wide(job));
  } else {
    terminal.out(job_reference(name) + " " + std::string(what) + "\n");
  }
}

}  // namespace holdfast::plugin
