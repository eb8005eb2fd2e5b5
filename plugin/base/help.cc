#include <algorithm>
#include <string>

#include "plugin/base/command.h"

namespace holdfast::plugin {
namespace {

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.append(width - text.size(), ' ');
  return text;
}

std::string flag_line(const Verb& verb, const Flag& flag) {
  std::string left = flag.letter != 0 ? std::string("-") + flag.letter + ", " : "    ";
  left += "--" + std::string(flag.name);
  if (flag.value != FlagValue::kNone) left += std::string(" ") + flag.placeholder;
  std::string right = flag.help;
  if (flag.value == FlagValue::kOutput) {
    right = "";
    for (const std::string_view form : verb.outputs) {
      right += (right.empty() ? "" : ", ") + std::string(form);
    }
  }
  return "  " + padded(left, 28) + " " + right + "\n";
}

std::string overview() {
  std::string text =
      "kubectl holdfast: submit, watch and steer DurableJobs\n\n"
      "  kubectl holdfast COMMAND [FLAGS]\n\n";
  for (const Verb& verb : all_verbs()) {
    text += "  " + padded(std::string(verb.name) + " " + verb.arguments, 21) + " " + verb.summary +
            "\n";
  }
  text +=
      "\nEvery command takes -n, --context, --kubeconfig and --help.\n"
      "Exit codes: 0 done; 1 the job failed or was cancelled (with --wait); 2 anything else.\n";
  return text;
}

}  // namespace

std::string help_text(std::string_view name) {
  if (name.empty()) return overview();
  const Verb& verb = *find_verb(name);
  std::string text = "kubectl holdfast " + std::string(verb.name);
  if (*verb.arguments != 0) text += std::string(" ") + verb.arguments;
  text += ": " + std::string(verb.summary) + "\n\n" + verb.text;
  text += *verb.text == 0 ? "Flags:\n" : "\nFlags:\n";
  for (const Flag& flag : all_flags()) {
    const auto in = [&](const std::vector<std::string_view>& names) {
      return std::find(names.begin(), names.end(), flag.name) != names.end();
    };
    const bool is_output = flag.value == FlagValue::kOutput && !verb.outputs.empty();
    if (in(verb.flags) || is_output || in(common_flags())) text += flag_line(verb, flag);
  }
  return text;
}

}  // namespace holdfast::plugin
