#include "plugin/terminal/yaml_text.h"

#include <algorithm>
#include <cctype>

#include "client/kube/yaml.h"
#include "core/utf8.h"

namespace holdfast::plugin {
namespace {

// A plain scalar must start like a word, and hold nothing that YAML could read otherwise.
bool is_plain(const std::string& text) {
  if (text.empty() || text.size() > 200) return false;
  const auto is_inside = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.' ||
           c == '/' || c == '=' || c == '+' || c == '$' || c == '(' || c == ')';
  };
  // "-c" is a word, "- c" is a list.
  const std::size_t first = text.find_first_not_of('-');
  if (first == std::string::npos || first > 2) return false;
  const char c = text[first];
  if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '/' && c != '$') return false;
  for (const char one : text) {
    if (!is_inside(one)) return false;
  }
  // "yes", "1e3" and "~" would change their type. The reader itself says which do.
  const auto read = kube::parse_manifest(text);
  if (!read.ok() || read->size() != 1 || (*read)[0] != Json(text)) return false;
  // A date is a string for us and a time for others.
  return text[0] < '0' || text[0] > '9' ||
         text.find_first_not_of("0123456789-:.") != std::string::npos;
}

// A text of several lines that a literal block ("|") keeps as it is.
bool is_block(const std::string& text) {
  if (text.find('\n') == std::string::npos || text[0] == ' ' || text[0] == '\n') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n') || c == 0x7f || c >= 0x80) return false;
    if (c == '\n' && i > 0 && text[i - 1] == ' ') return false;
  }
  return !text.ends_with("\n\n") && !text.ends_with(' ');
}

std::string quoted(const std::string& text) {
  return escape_controls(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string block(const std::string& text, const std::string& indent) {
  std::string lines = text.ends_with('\n') ? "|" : "|-";
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines += "\n";
    if (end > begin) lines += indent + text.substr(begin, end - begin);
    begin = end + 1;
  }
  return lines;
}

std::string scalar(const Json& json, const std::string& indent) {
  if (!json.is_string()) return json.dump();
  const auto& text = json.get_ref<const std::string&>();
  if (is_plain(text)) return text;
  return is_block(text) ? block(text, indent) : quoted(text);
}

void write(const Json& json, const std::string& indent, std::string& text);

// The value behind "key:" or "-".
void write_value(const Json& json, const std::string& indent, bool in_list, std::string& text) {
  if (json.is_object() && !json.empty()) {
    std::string inner;
    write(json, indent + "  ", inner);
    // The first member of an object in a list stands behind the dash.
    text += in_list ? " " + inner.substr(indent.size() + 2) : "\n" + inner;
  } else if (json.is_array() && !json.empty()) {
    text += "\n";
    write(json, in_list ? indent + "  " : indent, text);
  } else {
    text += " " + scalar(json, indent + "  ") + "\n";
  }
}

void write(const Json& json, const std::string& indent, std::string& text) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.items()) {
      text += indent + (is_plain(key) ? key : quoted(key)) + ":";
      write_value(value, indent, false, text);
    }
  } else {
    for (const Json& value : json) {
      text += indent + "-";
      write_value(value, indent, true, text);
    }
  }
}

}  // namespace

std::string to_yaml(const Json& json) {
  if (!json.is_structured() || json.empty()) return scalar(json, "  ") + "\n";
  std::string text;
  write(json, "", text);
  return text;
}

}  // namespace holdfast::plugin
