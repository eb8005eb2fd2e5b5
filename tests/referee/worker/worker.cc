// What each job system runs for the referee: a process that writes a line each half a second to a file outside of
// Kubernetes, so that a node that is cut off still writes, and that can be told to crash or to hang.
//
//   worker SYSTEM JOB INDEX SECONDS      "-" for JOB or INDEX: from HOLDFAST_JOB_NAME, JOB_COMPLETION_INDEX
//   worker check FILE SECONDS            for a liveness probe: is the file that it touches younger than that?
//
// Folder /referee: ledger/KEY.ndjson is written, switch/KEY is read ("crash", "hang"). KEY is the pod's UID, the job, the
// index and the moment of the start, so that each start has its own, also two of a warm worker at one moment. Times are CLOCK_BOOTTIME in seconds: all nodes
// of one machine share it, and it goes on while a process is frozen.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

namespace {

constexpr double kBeat = 0.5;
volatile sig_atomic_t term = 0;

double now() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

std::string text_of(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", seconds);
  return text;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value ? value : "";
}

// An argument, or the variable in its place. Names of Kubernetes need no escapes in JSON.
std::string given(const char* argument, const char* name) {
  return std::string(argument) == "-" ? variable(name) : argument;
}

void pause_for(double seconds) {
  timespec time{static_cast<time_t>(seconds),
                static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
  nanosleep(&time, nullptr);  // a signal ends it early
}

class Ledger {
 public:
  Ledger(const std::string& key, std::string who)
      : file_(open(("/referee/ledger/" + key + ".ndjson").c_str(), O_WRONLY | O_CREAT | O_APPEND,
                   0644)),
        who_(std::move(who)) {}
  bool is_open() const { return file_ >= 0; }

  // One write for each line: lines are whole, whenever the process dies.
  void note(const char* event) const {
    const std::string line =
        "{\"at\":" + text_of(now()) + ",\"event\":\"" + event + "\"," + who_ + "}\n";
    if (write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(3);
  }

 private:
  int file_;
  std::string who_;
};

std::string told(const std::string& key) {
  std::ifstream file("/referee/switch/" + key);
  std::string word;
  file >> word;
  return word;
}

// For a program that is watched for progress: it touches the file that it was given, by Holdfast or for its probe.
void report_progress() {
  std::string file = variable("HOLDFAST_PROGRESS_FILE");
  if (file.empty()) file = variable("PROBED_FILE");
  if (file.empty()) return;
  const int opened = open(file.c_str(), O_WRONLY | O_CREAT, 0644);
  if (opened < 0) return;
  futimens(opened, nullptr);
  close(opened);
}

int check(const char* file, const char* seconds) {
  struct stat found {};
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return stat(file, &found) == 0 && time.tv_sec - found.st_mtim.tv_sec <= std::atoi(seconds) ? 0
                                                                                             : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 4 && std::string(arguments[1]) == "check") return check(arguments[2], arguments[3]);
  if (count != 5) {
    std::fprintf(stderr, "usage: worker SYSTEM JOB INDEX SECONDS\n");
    return 2;
  }
  signal(SIGTERM, [](int) { term = 1; });
  const std::string pod = variable("POD_UID");
  const std::string job = given(arguments[2], "HOLDFAST_JOB_NAME"),
                    index = given(arguments[3], "JOB_COMPLETION_INDEX");
  const std::string key =
      (pod.empty() ? "nowhere" : pod) + "-" + job + "-" + index + "-" + text_of(now());
  const Ledger ledger(key, "\"system\":\"" + std::string(arguments[1]) + "\",\"job\":\"" + job +
                               "\",\"index\":" + index + ",\"key\":\"" + key + "\",\"pod\":\"" +
                               pod + "\",\"node\":\"" + variable("NODE_NAME") + "\",\"token\":\"" +
                               variable("HOLDFAST_ATTEMPT") + "\"");
  if (!ledger.is_open()) {
    std::perror("worker: /referee/ledger");
    return 2;
  }
  ledger.note("start");
  bool was_told = false;
  // Beats are counted, not time: whoever was frozen has its work still before it.
  const int beats = 2 * std::atoi(arguments[4]);
  for (int beat = 0; beat < beats; ++beat) {
    pause_for(kBeat);
    if (term) {
      ledger.note("term");
      return 143;
    }
    const std::string word = told(key);
    const bool hangs = word == "hang";
    if ((hangs && !was_told) || word == "crash") ledger.note("told");
    if (word == "crash") std::abort();
    was_told = hangs;
    if (hangs) {
      --beat;
      continue;
    }
    ledger.note("beat");
    report_progress();
  }
  ledger.note("end");
  return 0;
}
