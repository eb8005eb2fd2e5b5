// The command line: which verb, its arguments and its flags. Pure; any thread.
//
//   Result<Command> command = parse_command({"submit", "-f", "job.yaml", "--wait"});
//   if (command->has("wait")) ...
//
// The table of verbs and flags is the only one: help and shell completion are made from it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::plugin {

// The kind of a flag's value. Checked when the command line is parsed.
enum class FlagValue {
  kNone,      // a switch
  kText,      // not empty, UTF-8
  kPath,      // not empty; a file name may have any bytes
  kNumber,    // from 0
  kDuration,  // as kubectl writes them: 90s, 5m, 1h30m
  kOutput,    // one of the verb's output forms
};

struct Flag {
  const char* name;  // without "--"
  char letter;       // 0: none
  FlagValue value;
  const char* placeholder;  // of the value, in help
  const char* help;
};

struct Verb {
  const char* name;
  const char* arguments;  // in help: "JOB", "-f FILE"
  std::size_t min_arguments;
  std::size_t max_arguments;
  std::vector<std::string_view> flags;    // besides those of every verb
  std::vector<std::string_view> outputs;  // what -o takes; empty: the verb has no -o
  const char* summary;                    // one line
  const char* text;                       // the rest of its help, with examples
};

const std::vector<Flag>& all_flags();
const std::vector<Verb>& all_verbs();
// Flags that every verb has.
const std::vector<std::string_view>& common_flags();
const Flag* find_flag(std::string_view name);
const Verb* find_verb(std::string_view name);

struct Command {
  std::string verb;
  std::vector<std::string> arguments;
  std::map<std::string, std::string, std::less<>> flags;  // by name; a switch has "true"

  bool has(std::string_view flag) const { return flags.find(flag) != flags.end(); }
  // The flag's value, or the fallback.
  std::string text(std::string_view flag, std::string_view fallback = "") const;
  std::optional<std::int64_t> number(std::string_view flag) const;
  std::optional<Duration> duration(std::string_view flag) const;
};

// kInvalid says in one line what is wrong and what to do. Without arguments the verb is "help".
// "--help" anywhere turns the verb into "help" with the verb as its argument.
Result<Command> parse_command(const std::vector<std::string>& arguments);

// "90s", "1h30m", "250ms". No value: not a duration, negative, or above 10 years.
std::optional<Duration> parse_duration(std::string_view text);

// The verb's help, or all verbs' for an empty name. The verb must exist.
std::string help_text(std::string_view verb);

}  // namespace holdfast::plugin
