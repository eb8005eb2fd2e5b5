// holdfast-simulate: runs the simulated world for many seeds, says how much it has seen, and for a
// seed that fails prints the shortest script that it found and how to see it again.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "tests/simulation/run.h"

namespace {

using namespace holdfast;              // NOLINT: a program of its own
using namespace holdfast::simulation;  // NOLINT

constexpr const char* kUsage =
    "holdfast-simulate [--seeds A..B | --seed N] [--profile NAME] [--minutes M] [--only SELECTION]\n"
    "                  [--trace FILE] [--log] [--shrink RUNS] [--keep-going] [--hashes] [--list]\n"
    "  --minutes   of simulated time until the faults stop (45)\n"
    "  --only      part of the script, as a failing run prints it\n"
    "  --trace     a line for each thing that happens (-: standard output)\n"
    "  --log       what the operator logs, on standard error\n"
    "  --hashes    for each seed a hash of all that happens, and nothing else\n"
    "  --list      the names of the profiles, and nothing else\n";

constexpr std::uint64_t kEnoughRuns = 20;

struct Arguments {
  std::uint64_t first = 1;
  std::uint64_t last = 100;
  RunRequest run;
  int shrink_runs = 400;
  bool keep_going = false;
  bool hashes = false;
  bool list = false;
  std::string trace;
};

std::optional<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--log") {
      arguments.run.log = Log::create(LogLevel::kDebug, LogFormat::kText);
    } else if (name == "--keep-going") {
      arguments.keep_going = true;
    } else if (name == "--hashes") {
      arguments.hashes = true;
    } else if (name == "--list") {
      arguments.list = true;
    } else if (!has_value) {
      return std::nullopt;
    } else if (name == "--seeds") {
      const std::string range = argv[++i];
      const std::size_t dots = range.find("..");
      if (dots == std::string::npos) return std::nullopt;
      arguments.first = std::stoull(range.substr(0, dots));
      arguments.last = std::stoull(range.substr(dots + 2));
    } else if (name == "--seed") {
      arguments.first = arguments.last = std::stoull(argv[++i]);
    } else if (name == "--profile") {
      arguments.run.profile = argv[++i];
      if (!find_profile(arguments.run.profile)) return std::nullopt;
    } else if (name == "--minutes") {
      arguments.run.length = std::chrono::minutes(std::stol(argv[++i]));
    } else if (name == "--only") {
      const auto selection = Selection::parse(argv[++i]);
      if (!selection) return std::nullopt;
      arguments.run.selection = *selection;
    } else if (name == "--trace") {
      arguments.trace = argv[++i];
    } else if (name == "--shrink") {
      arguments.shrink_runs = std::stoi(argv[++i]);
    } else {
      return std::nullopt;
    }
  }
  return arguments;
}

struct Totals {
  std::uint64_t runs = 0;
  std::uint64_t failed = 0;
  std::uint64_t writes = 0;
  std::uint64_t requests = 0;
  std::uint64_t checks = 0;
  Duration simulated{0};
  std::set<std::uint64_t> states;
  std::map<Act, std::uint64_t> fired;
  std::set<Act> scheduled;
  std::map<std::string, double> slowest;
  std::uint64_t hash = 0;

  void add(const RunResult& result) {
    ++runs;
    writes += result.writes;
    requests += result.requests;
    checks += result.checks;
    simulated += result.simulated;
    states.insert(result.states.begin(), result.states.end());
    for (const auto& [act, count] : result.fired) fired[act] += count;
    scheduled.insert(result.scheduled.begin(), result.scheduled.end());
    for (const auto& [trouble, share] : result.slowest) {
      slowest[trouble] = std::max(slowest[trouble], share);
    }
    hash = mix(hash, result.trace_hash);
  }
};

void report_failure(const Arguments& arguments, RunRequest request, const RunResult& result) {
  std::printf("\nseed %llu FAILED after %s: %s\n", static_cast<unsigned long long>(request.seed),
              human_duration(result.violated_at).c_str(), result.violation.c_str());
  std::printf("  all of it: %s\n", replay_command(request, request.selection).c_str());
  std::fflush(stdout);
  if (arguments.shrink_runs <= 0 || !arguments.trace.empty()) return;
  const Selection shortest = shrink(request, result, arguments.shrink_runs);
  std::printf("  shortest:  %s\n", replay_command(request, shortest).c_str());
  request.selection = shortest;
  request.trace = std::tmpfile();
  run_seed(request);
  // The end of it; the whole is the command's to show.
  constexpr long kTail = 6000;
  std::fseek(request.trace, 0, SEEK_END);
  const long size = std::ftell(request.trace);
  std::fseek(request.trace, size > kTail ? size - kTail : 0, SEEK_SET);
  char line[4096];
  while (std::fgets(line, sizeof(line), request.trace)) std::printf("    %s", line);
  std::fclose(request.trace);
  std::fflush(stdout);
}

// A kind of act that was drawn and never happened in all runs: the run shows nothing about it.
bool report_fired(const Totals& totals) {
  bool all = true;
  std::printf("what happened:");
  for (const Act act : totals.scheduled) {
    const auto found = totals.fired.find(act);
    const std::uint64_t count = found == totals.fired.end() ? 0 : found->second;
    std::printf(" %s %llu", to_string(act), static_cast<unsigned long long>(count));
    all = all && count > 0;
  }
  std::printf("\n");
  // Of a few runs not each kind can be asked: a quota needs a pod that is just being created.
  const bool enough = totals.runs >= kEnoughRuns;
  if (!all && enough) std::printf("FAILED: a kind that was drawn never happened\n");
  return all || !enough;
}

void list_profiles() {
  for (const Profile& profile : profiles()) std::printf("%s\n", profile.name.c_str());
}

// How the world goes, whether that breaks a rule or not.
void print_hashes(const Arguments& arguments) {
  for (std::uint64_t seed = arguments.first; seed <= arguments.last; ++seed) {
    RunRequest request = arguments.run;
    request.seed = seed;
    std::printf("hash %s/%llu %016llx\n", request.profile.c_str(),
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(run_seed(request).trace_hash));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<Arguments> parsed = parse(argc, argv);
  if (!parsed) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  Arguments& arguments = *parsed;
  if (!arguments.trace.empty()) {
    arguments.run.trace =
        arguments.trace == "-" ? stdout : std::fopen(arguments.trace.c_str(), "w");
    if (!arguments.run.trace) return 2;
  }
  if (arguments.list) return list_profiles(), 0;
  if (arguments.hashes) return print_hashes(arguments), 0;
  Totals totals;
  const auto began = std::chrono::steady_clock::now();
  for (std::uint64_t seed = arguments.first; seed <= arguments.last; ++seed) {
    RunRequest request = arguments.run;
    request.seed = seed;
    const RunResult result = run_seed(request);
    totals.add(result);
    if (result.violation.empty()) continue;
    ++totals.failed;
    report_failure(arguments, request, result);
    if (!arguments.keep_going) break;
  }
  const double real =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const double hours = to_seconds(totals.simulated) / 3600;
  std::printf(
      "%llu runs of profile %s: %.1f simulated hours in %.1f s, %.0f hours a minute; "
      "%llu requests, %llu writes, %llu checks, %zu distinct states; trace %016llx\n",
      static_cast<unsigned long long>(totals.runs), arguments.run.profile.c_str(), hours, real,
      hours / real * 60, static_cast<unsigned long long>(totals.requests),
      static_cast<unsigned long long>(totals.writes),
      static_cast<unsigned long long>(totals.checks), totals.states.size(),
      static_cast<unsigned long long>(totals.hash));
  const bool fired = !arguments.run.selection.everything || report_fired(totals);
  std::printf("longest troubles, as shares of their bounds:");
  for (const auto& [trouble, share] : totals.slowest) {
    std::printf(" %s %.2f;", trouble.c_str(), share);
  }
  std::printf("\n%llu passed, %llu failed\n",
              static_cast<unsigned long long>(totals.runs - totals.failed),
              static_cast<unsigned long long>(totals.failed));
  return totals.failed == 0 && fired ? 0 : 1;
}
