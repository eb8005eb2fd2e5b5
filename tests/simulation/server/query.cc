#include "tests/simulation/server/query.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace holdfast::simulation {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 &&
        hex_digit(text[i + 2]) >= 0) {
      decoded += static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
      i += 2;
    } else {
      decoded += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return decoded;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(' ') - first + 1));
}

// At the commas outside of parentheses.
std::vector<std::string> requirements_in(std::string_view text) {
  std::vector<std::string> parts;
  std::string part;
  int depth = 0;
  for (const char c : text) {
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(trim(part));
      part.clear();
    } else {
      part += c;
    }
  }
  if (!trim(part).empty() || !parts.empty()) parts.push_back(trim(part));
  return parts;
}

// "key=value", "key==value", "key!=value"; false: none of them.
bool parse_equality(const std::string& text, Requirement& requirement) {
  const std::size_t sign = text.find('=');
  if (sign == std::string::npos) return false;
  const bool negated = sign > 0 && text[sign - 1] == '!';
  std::size_t value = sign + 1;
  if (!negated && value < text.size() && text[value] == '=') ++value;
  requirement.key = trim(text.substr(0, negated ? sign - 1 : sign));
  requirement.op = negated ? Requirement::Operator::kNotIn : Requirement::Operator::kIn;
  requirement.values = {trim(text.substr(value))};
  return !requirement.key.empty();
}

// "key in (a,b)", "key notin (a,b)".
bool parse_set(const std::string& text, Requirement& requirement) {
  const std::size_t open = text.find('(');
  if (open == std::string::npos || text.back() != ')') return false;
  const std::string head = trim(text.substr(0, open));
  const std::size_t space = head.find(' ');
  if (space == std::string::npos) return false;
  requirement.key = head.substr(0, space);
  const std::string word = trim(head.substr(space));
  if (word != "in" && word != "notin") return false;
  requirement.op = word == "in" ? Requirement::Operator::kIn : Requirement::Operator::kNotIn;
  for (const std::string_view value :
       split(std::string_view(text).substr(open + 1, text.size() - open - 2), ',')) {
    requirement.values.push_back(trim(value));
  }
  return !requirement.key.empty();
}

const Json& field_at(const Json& object, std::string_view path) {
  const Json* place = &object;
  for (const std::string_view step : split(path, '.')) place = &at(*place, step);
  return *place;
}

bool holds(const Requirement& requirement, const Json& value) {
  using enum Requirement::Operator;
  if (requirement.op == kExists) return !value.is_null();
  if (requirement.op == kAbsent) return value.is_null();
  const std::string* const text = value.get_ptr<const std::string*>();
  const bool in =
      std::any_of(requirement.values.begin(), requirement.values.end(),
                  [&](const std::string& wanted) { return text != nullptr && *text == wanted; });
  return in == (requirement.op == kIn);
}

}  // namespace

std::string Target::value(const std::string& parameter) const {
  const auto found = query.find(parameter);
  return found == query.end() ? "" : found->second;
}

bool Target::is_true(const std::string& parameter) const {
  const std::string text = value(parameter);
  return text == "true" || text == "1" || (text.empty() && has(parameter));
}

Target parse_target(std::string_view text) {
  Target target;
  const std::size_t mark = text.find('?');
  std::vector<std::string> path;
  for (const std::string_view segment : split(text.substr(0, mark), '/')) {
    path.push_back(decode(segment, false));
  }
  if (mark != std::string_view::npos) {
    for (const std::string_view pair : split(text.substr(mark + 1), '&')) {
      const std::size_t sign = std::min(pair.find('='), pair.size());
      target.query[decode(pair.substr(0, sign), true)] =
          decode(pair.substr(std::min(sign + 1, pair.size())), true);
    }
  }
  std::size_t next = 0;
  const auto take = [&] { return next < path.size() ? path[next++] : std::string(); };
  const std::string root = take();
  if (root != "api" && root != "apis") return target;
  const std::string group = root == "api" ? "" : take();
  const std::string version = take();
  std::string plural = take();
  // namespaces/x/pods is about pods, namespaces/x and namespaces/x/status are about x.
  if (plural == "namespaces" && path.size() >= next + 2) {
    const std::string& below = path[next + 1];
    if (below != "status" && below != "finalize") {
      target.namespace_ = take();
      plural = take();
    }
  }
  target.name = take();
  target.subresource = take();
  if (next == path.size()) target.resource = find_resource(group, version, plural);
  const bool scoped = !target.namespace_.empty();
  if (target.resource && scoped && !target.resource->namespaced) target.resource = nullptr;
  if (target.resource && !scoped && target.resource->namespaced && !target.name.empty()) {
    target.resource = nullptr;
  }
  return target;
}

namespace {

bool is_label_text(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || more.find(c) != more.npos;
  });
}

}  // namespace

std::optional<Selector> parse_label_selector(std::string_view text) {
  Selector selector;
  for (const std::string& part : requirements_in(text)) {
    Requirement requirement;
    if (part.empty()) return std::nullopt;
    if (!parse_set(part, requirement) && !parse_equality(part, requirement)) {
      const bool negated = part[0] == '!';
      requirement.key = trim(negated ? part.substr(1) : part);
      requirement.op = negated ? Requirement::Operator::kAbsent : Requirement::Operator::kExists;
    }
    if (requirement.key.empty() || !is_label_text(requirement.key, "-_./")) return std::nullopt;
    for (const std::string& value : requirement.values) {
      if (!is_label_text(value, "-_.")) return std::nullopt;
    }
    selector.push_back(std::move(requirement));
  }
  return selector;
}

std::optional<Selector> parse_field_selector(std::string_view text) {
  Selector selector;
  for (const std::string& part : requirements_in(text)) {
    Requirement requirement;
    if (!parse_equality(part, requirement)) return std::nullopt;
    selector.push_back(std::move(requirement));
  }
  return selector;
}

bool Filter::matches(const Json& object) const {
  const Json& metadata = at(object, "metadata");
  if (!namespace_.empty()) {
    const Json& place = at(metadata, "namespace");
    if (!place.is_string() || place.get_ref<const std::string&>() != namespace_) return false;
  }
  const Json& values = at(metadata, "labels");
  for (const Requirement& requirement : labels) {
    if (!holds(requirement, at(values, requirement.key))) return false;
  }
  for (const Requirement& requirement : fields) {
    // An absent field reads as empty.
    const Json& value = field_at(object, requirement.key);
    const bool is_true = value.is_boolean() && value.get<bool>();
    const Json text = value.is_null() ? "" : is_true ? "true" : "false";
    if (!holds(requirement, value.is_string() ? value : text)) return false;
  }
  return true;
}

std::optional<std::uint64_t> parse_version(const std::string& text) {
  std::uint64_t version = 0;
  if (text.empty()) return version;
  const char* const end = text.data() + text.size();
  const auto [last, error] = std::from_chars(text.data(), end, version);
  if (error != std::errc() || last != end) return std::nullopt;
  return version;
}

}  // namespace holdfast::simulation
