#include "operator/runtime/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <fstream>

#include "operator/runtime/flags.h"
#include "operator/runtime/version.h"

extern char** environ;  // POSIX has it declared by the program

namespace holdfast::runtime {
namespace {

constexpr const char* kDefaultNamespace = "holdfast-system";
constexpr const char* kReleasePods = "release-pods";
constexpr const char* kNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

// Hostnames may have capitals, dots and underscores; an id may not.
std::string id_from_hostname(const std::string& hostname) {
  std::string id;
  // The end of a pod's name makes it unique.
  const std::size_t skip = hostname.size() - std::min(hostname.size(), kMaxIdLength);
  for (const char c : hostname.substr(skip)) {
    const bool is_upper = c >= 'A' && c <= 'Z';
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    id += is_upper ? static_cast<char>(c - 'A' + 'a') : is_plain ? c : '-';
  }
  id.erase(0, id.find_first_not_of('-'));
  id.erase(id.find_last_not_of('-') + 1);
  return id.empty() ? "holdfast-operator" : id;
}

constexpr std::size_t kHelpColumn = 32;  // the column of the descriptions
constexpr std::size_t kHelpWidth = 96;

// "  --workers NUMBER          Reconciles ..." with the descriptions wrapped.
std::string help_text() {
  std::string text =
      "holdfast-operator: runs DurableJobs, and requeues them within a bound that is known "
      "beforehand\nwhen their pod, node or worker dies.\n\nUsage: holdfast-operator [FLAG]...\n"
      "       holdfast-operator release-pods [FLAG]...   Before uninstalling: waits until no replica "
      "is\n"
      "           alive, and removes the operator's finalizer from all pods\n\n";
  const auto add = [&text](const std::string& head, const std::string& description) {
    std::string line = "  " + head;
    line.resize(std::max(kHelpColumn, line.size() + 1), ' ');
    std::size_t begin = 0;
    while (begin < description.size()) {
      std::size_t end = std::min(description.size(), begin + kHelpWidth - line.size());
      if (end < description.size()) end = std::min(description.rfind(' ', end), end);
      text += line + description.substr(begin, end - begin) + "\n";
      line = std::string(kHelpColumn, ' ');
      begin = description.find_first_not_of(' ', end);
    }
  };
  for (const Flag& flag : flags()) {
    add(std::string(flag.name) + " " + flag.value_name, flag.description);
  }
  add("--version", "Print the version and end");
  add("--help", "Print this text and end");
  return text +
         "\nEach flag may also be given by environment: HOLDFAST_WORKERS=32 is --workers 32, "
         "HOLDFAST_LOG_LEVEL\nis --log-level, and so on. A flag wins over its variable.\n"
         "SIGTERM stops cleanly, a second one at once.\n";
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ",") + part;
  return text;
}

std::string variable(const Surroundings& surroundings, const std::string& name) {
  const auto found = surroundings.environment.find(name);
  return found == surroundings.environment.end() ? "" : found->second;
}

}  // namespace

Result<Options> parse_options(const std::vector<std::string>& arguments,
                              const Surroundings& surroundings) {
  Options options;
  CLI::App app;
  app.set_help_flag();
  bool help = false;
  bool version = false;
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  const std::span<const Flag> known = flags();
  std::vector<std::vector<std::string>> given(known.size());
  std::vector<CLI::Option*> found;
  for (std::size_t i = 0; i < known.size(); ++i) {
    found.push_back(app.add_option(known[i].name, given[i])->expected(1)->allow_extra_args(false));
    if (known[i].repeats) found[i]->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  options.release_pods = !arguments.empty() && arguments.front() == kReleasePods;
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    if (options.release_pods) reversed.pop_back();
    app.parse(std::move(reversed));
  } catch (const CLI::Error& error) {
    return make_error(ErrorCode::kInvalid,
                      std::string(error.what()) + "; see holdfast-operator --help");
  }
  if (help || version) {
    options.print = help ? help_text() : std::string("holdfast-operator ") + kVersion + "\n";
    return options;
  }

  for (std::size_t i = 0; i < known.size(); ++i) {
    Setting setting{known[i].name, joined(given[i])};
    if (found[i]->count() == 0) {
      setting = {known[i].environment, trimmed(variable(surroundings, known[i].environment))};
      if (setting.value.empty()) continue;
    }
    if (const auto error = known[i].parse(setting, options)) return *error;
  }
  if (const std::string advice = misfit(options.replica.timings); !advice.empty()) {
    return make_error(ErrorCode::kInvalid, advice);
  }
  if (options.replica.namespace_.empty())
    options.replica.namespace_ = trimmed(surroundings.in_cluster_namespace);
  if (options.replica.namespace_.empty()) options.replica.namespace_ = kDefaultNamespace;
  if (options.replica.id.empty()) options.replica.id = id_from_hostname(surroundings.hostname);
  return options;
}

Surroundings read_surroundings() {
  Surroundings surroundings;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) {
      surroundings.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  std::ifstream(kNamespaceFile) >> surroundings.in_cluster_namespace;
  std::array<char, 256> hostname{};
  if (gethostname(hostname.data(), hostname.size() - 1) == 0) {
    surroundings.hostname = hostname.data();
  }
  return surroundings;
}

}  // namespace holdfast::runtime
