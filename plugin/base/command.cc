#include "plugin/base/command.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/utf8.h"

namespace holdfast::plugin {
namespace {

constexpr std::chrono::hours kLongestDuration{24 * 3650};

std::string see_help(std::string_view verb) {
  return "; kubectl holdfast " + std::string(verb) + (verb.empty() ? "" : " ") + "--help " +
         (verb.empty() ? "lists the commands" : "shows what it takes");
}

bool takes(const Verb& verb, const Flag& flag) {
  const auto in = [&](const std::vector<std::string_view>& names) {
    return std::find(names.begin(), names.end(), flag.name) != names.end();
  };
  return in(common_flags()) || in(verb.flags) ||
         (flag.value == FlagValue::kOutput && !verb.outputs.empty());
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string text;
  for (const std::string_view word : words) {
    if (!text.empty()) text += word == words.back() ? " or " : ", ";
    text += word;
  }
  return text;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

// Empty: the value is right.
std::string complaint(const Verb& verb, const Flag& flag, const std::string& value) {
  const std::string name = "--" + std::string(flag.name);
  switch (flag.value) {
    case FlagValue::kNone:
      return value == "true" || value == "false" ? "" : name + " is a switch and takes no value";
    case FlagValue::kText:
      if (!is_utf8(value)) return name + " is not UTF-8; give it in UTF-8";
      [[fallthrough]];
    case FlagValue::kPath:
      return value.empty() ? name + " is empty" : "";
    case FlagValue::kNumber:
      return parse_number(value) ? "" : name + " takes a number from 0, not '" + value + "'";
    case FlagValue::kDuration:
      return parse_duration(value)
                 ? ""
                 : name + " takes a duration such as 90s or 5m, not '" + value + "'";
    case FlagValue::kOutput: {
      const auto& known = verb.outputs;
      if (std::find(known.begin(), known.end(), value) != known.end()) return "";
      return "-o takes " + joined(known) + ", not '" + value + "'";
    }
  }
  return "";
}

// One flag as it was written: "--name", "--name=value", "-n", "-nvalue".
struct Written {
  const Flag* flag = nullptr;
  std::optional<std::string> value;
};

Written read_flag(const std::string& word) {
  Written written;
  if (word.starts_with("--")) {
    const std::size_t equals = std::min(word.find('='), word.size());
    written.flag = find_flag(std::string_view(word).substr(2, equals - 2));
    if (equals < word.size()) written.value = word.substr(equals + 1);
    return written;
  }
  for (const Flag& flag : all_flags()) {
    if (flag.letter != 0 && flag.letter == word[1]) written.flag = &flag;
  }
  if (word.size() > 2) {
    if (written.flag != nullptr && written.flag->value == FlagValue::kNone) return {};
    written.value = word.substr(word[2] == '=' ? 3 : 2);
  }
  return written;
}

class Parser {
 public:
  explicit Parser(const std::vector<std::string>& words) : words_(words) {}

  Result<Command> run() {
    for (; next_ < words_.size(); ++next_) {
      const std::string& word = words_[next_];
      if (word == "--") {
        ++next_;
        break;
      }
      const bool is_flag = word.size() > 1 && word[0] == '-';
      const Result<> read = is_flag ? flag(word) : argument(word);
      if (!read.ok()) return read.error();
    }
    for (; next_ < words_.size(); ++next_) {
      const Result<> read = argument(words_[next_]);
      if (!read.ok()) return read.error();
    }
    return finish();
  }

 private:
  Result<> argument(const std::string& word) {
    if (verb_ != nullptr) {
      command_.arguments.push_back(word);
      return Unit{};
    }
    verb_ = find_verb(word);
    if (verb_ == nullptr) {
      return invalid("there is no command '" + word + "'" + see_help(""));
    }
    command_.verb = verb_->name;
    return Unit{};
  }

  Result<> flag(const std::string& word) {
    if (word == "-h" || word == "--help") {
      wants_help_ = true;
      return Unit{};
    }
    // `kubectl-holdfast --version`, as other programs have it.
    if (word == "--version" && verb_ == nullptr) return argument("version");
    const Written written = read_flag(word);
    if (written.flag == nullptr) {
      return invalid("there is no flag " + word.substr(0, word.find('=')) +
                     see_help(command_.verb));
    }
    std::string value = written.value.value_or("true");
    if (written.flag->value != FlagValue::kNone && !written.value) {
      if (next_ + 1 == words_.size()) {
        return invalid(word + " needs a value: " + word + " " + written.flag->placeholder);
      }
      value = words_[++next_];
    }
    if (!seen_.emplace(written.flag, value).second) {
      return invalid("--" + std::string(written.flag->name) + " is given twice; once is enough");
    }
    return Unit{};
  }

  Result<Command> finish() {
    if (wants_help_ || verb_ == nullptr) {
      Command help;
      help.verb = "help";
      if (verb_ != nullptr) help.arguments = {verb_->name};
      return help;
    }
    for (const auto& [flag, value] : seen_) {
      if (!takes(*verb_, *flag)) {
        return invalid(command_.verb + " has no flag --" + flag->name + see_help(command_.verb));
      }
      const std::string what = complaint(*verb_, *flag, value);
      if (!what.empty()) return invalid(what);
      if (flag->value != FlagValue::kNone || value == "true") command_.flags[flag->name] = value;
    }
    if (command_.has("namespace") && command_.has("all-namespaces")) {
      return invalid("give -n or -A, not both");
    }
    for (const std::string& argument : command_.arguments) {
      if (!is_utf8(argument)) return invalid("'" + argument + "' is not UTF-8; give it in UTF-8");
    }
    const std::size_t count = command_.arguments.size();
    if (count < verb_->min_arguments) {
      return invalid("something is missing: kubectl holdfast " + command_.verb + " " +
                     verb_->arguments);
    }
    if (count > verb_->max_arguments) {
      return invalid("'" + command_.arguments[verb_->max_arguments] +
                     "' is too much: kubectl holdfast " + command_.verb + " " + verb_->arguments);
    }
    return command_;
  }

  const std::vector<std::string>& words_;
  std::size_t next_ = 0;
  const Verb* verb_ = nullptr;
  std::map<const Flag*, std::string> seen_;  // a flag may stand before its verb
  bool wants_help_ = false;
  Command command_;
};

}  // namespace

std::string Command::text(std::string_view flag, std::string_view fallback) const {
  const auto found = flags.find(flag);
  return found == flags.end() ? std::string(fallback) : found->second;
}

std::optional<std::int64_t> Command::number(std::string_view flag) const {
  return has(flag) ? parse_number(text(flag)) : std::nullopt;
}

std::optional<Duration> Command::duration(std::string_view flag) const {
  return has(flag) ? parse_duration(text(flag)) : std::nullopt;
}

Result<Command> parse_command(const std::vector<std::string>& arguments) {
  return Parser(arguments).run();
}

std::optional<Duration> parse_duration(std::string_view text) {
  static constexpr std::pair<std::string_view, Duration> kUnits[] = {
      {"ms", std::chrono::milliseconds(1)},
      {"h", std::chrono::hours(1)},
      {"m", std::chrono::minutes(1)},
      {"s", std::chrono::seconds(1)}};
  if (text.empty()) return std::nullopt;
  if (text == "0") return Duration::zero();
  Duration total{};
  while (!text.empty()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || number < 0) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const auto* const unit =
        std::find_if(std::begin(kUnits), std::end(kUnits),
                     [&](const auto& one) { return text.starts_with(one.first); });
    if (unit == std::end(kUnits) || number > kLongestDuration / unit->second) return std::nullopt;
    text.remove_prefix(unit->first.size());
    total += number * unit->second;
    if (total > kLongestDuration) return std::nullopt;
  }
  return total;
}

}  // namespace holdfast::plugin
