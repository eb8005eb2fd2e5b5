#include "plugin/verbs/completion.h"

#include <algorithm>

#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kMostNames = 500;

// The script asks the program itself, so it never knows less than the program.
constexpr const char* kBash =
    R"(# bash completion of kubectl-holdfast; and of `kubectl holdfast` where kubectl's own is loaded before it.
_kubectl_holdfast_words() {
  local IFS=$'\n'
  # shellcheck disable=SC2207
  COMPREPLY=($(kubectl-holdfast __complete "$@" 2>/dev/null))
  # A file after -f.
  if [[ ${COMPREPLY[0]:-} == ":files" ]]; then
    # shellcheck disable=SC2207
    COMPREPLY=($(compgen -f -- "${@: -1}"))
    compopt -o filenames 2>/dev/null
  fi
}
_kubectl_holdfast() {
  _kubectl_holdfast_words "${COMP_WORDS[@]:1:COMP_CWORD}"
}
complete -F _kubectl_holdfast kubectl-holdfast

if declare -F __start_kubectl >/dev/null; then
  _kubectl_or_holdfast() {
    if [[ ${COMP_WORDS[1]:-} == holdfast && $COMP_CWORD -gt 1 ]]; then
      _kubectl_holdfast_words "${COMP_WORDS[@]:2:COMP_CWORD-1}"
    else
      __start_kubectl "$@"
    fi
  }
  complete -o default -F _kubectl_or_holdfast kubectl
fi
)";

constexpr const char* kZsh = R"(#compdef kubectl-holdfast
# zsh completion of kubectl-holdfast; and of `kubectl holdfast` where kubectl's own is loaded before it.
_kubectl_holdfast_words() {
  local -a answers
  answers=("${(@f)$(kubectl-holdfast __complete "$@" 2>/dev/null)}")
  if [[ ${answers[1]:-} == ":files" ]]; then
    _files
  elif [[ -n ${answers[1]:-} ]]; then
    compadd -a answers
  fi
}
_kubectl_holdfast() {
  _kubectl_holdfast_words "${(@)words[2,CURRENT]}"
}
compdef _kubectl_holdfast kubectl-holdfast

if (( $+functions[_kubectl] )); then
  _kubectl_or_holdfast() {
    if [[ ${words[2]} == holdfast && $CURRENT -gt 2 ]]; then
      _kubectl_holdfast_words "${(@)words[3,CURRENT]}"
    else
      _kubectl "$@"
    fi
  }
  compdef _kubectl_or_holdfast kubectl
fi
)";

// The flag whose value the last word is, or null.
const Flag* flag_before(const std::vector<std::string>& words) {
  if (words.size() < 2) return nullptr;
  const std::string& word = words[words.size() - 2];
  for (const Flag& flag : all_flags()) {
    const bool is_this = word == "--" + std::string(flag.name) ||
                         (flag.letter != 0 && word == std::string("-") + flag.letter);
    if (is_this && flag.value != FlagValue::kNone) return &flag;
  }
  return nullptr;
}

// The first word that is no flag and no flag's value.
const Verb* verb_of(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].starts_with("-")) continue;
    const std::vector<std::string> up_to(words.begin(), words.begin() + static_cast<long>(i) + 1);
    if (flag_before(up_to) == nullptr) return find_verb(words[i]);
  }
  return nullptr;
}

std::string value_of(const std::vector<std::string>& words, const std::string& name, char letter) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (words[i] == name || words[i] == std::string("-") + letter) return words[i + 1];
  }
  return "";
}

std::vector<std::string> job_names(const std::vector<std::string>& words, Api& api) {
  std::string namespace_ = value_of(words, "--namespace", 'n');
  if (namespace_.empty()) {
    const Result<std::string> own = api.context_namespace();
    if (!own.ok()) return {};
    namespace_ = *own;
  }
  const auto jobs = api.list(kJobs, namespace_, {});
  std::vector<std::string> names;
  if (!jobs.ok()) return names;
  for (const Json& job : *jobs) {
    if (names.size() < kMostNames) names.push_back(string_at(at(job, "metadata"), "name"));
  }
  return names;
}

std::vector<std::string> flags_of(const Verb* verb) {
  std::vector<std::string> names;
  for (const std::string_view name : common_flags()) names.push_back("--" + std::string(name));
  if (verb == nullptr) return names;
  for (const std::string_view name : verb->flags) names.push_back("--" + std::string(name));
  if (!verb->outputs.empty()) names.emplace_back("--output");
  return names;
}

std::vector<std::string> values_of(const Flag& flag, const Verb* verb) {
  if (flag.value == FlagValue::kPath) {
    return {":files"};
  }
  if (flag.value != FlagValue::kOutput || verb == nullptr) return {};
  return {verb->outputs.begin(), verb->outputs.end()};
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const Verb& verb : all_verbs()) names.emplace_back(verb.name);
  return names;
}

}  // namespace

std::vector<std::string> candidates(const std::vector<std::string>& words, Api& api) {
  const std::string last = words.empty() ? "" : words.back();
  const Verb* const verb = verb_of(words);
  std::vector<std::string> all;
  if (const Flag* const flag = flag_before(words)) {
    all = values_of(*flag, verb);
    if (all == std::vector<std::string>{":files"}) return all;
  } else if (last.starts_with("-")) {
    all = flags_of(verb);
  } else if (verb == nullptr || std::string_view(verb->name) == "help") {
    all = verb_names();
  } else if (std::string_view(verb->name) == "completion") {
    all = {"bash", "zsh"};
  } else if (std::string_view(verb->arguments) == "JOB") {
    all = job_names(words, api);
  }
  std::erase_if(all, [&](const std::string& one) { return !one.starts_with(last); });
  std::sort(all.begin(), all.end());
  return all;
}

std::string completion_script(const std::string& shell) {
  return shell == "bash" ? kBash : shell == "zsh" ? kZsh : "";
}

int completion(const Command& command, Api&, Terminal& terminal) {
  const std::string script = completion_script(command.arguments[0]);
  if (script.empty()) {
    return refuse(terminal, command,
                  "there is no completion for '" + command.arguments[0] + "'; give bash or zsh");
  }
  terminal.out(script);
  return kExitDone;
}

}  // namespace holdfast::plugin
