// The verbs and the flags. Help and shell completion are made from these tables.
#include <algorithm>

#include "plugin/base/command.h"

namespace holdfast::plugin {

const std::vector<Flag>& all_flags() {
  using enum FlagValue;
  static const std::vector<Flag> flags = {
      {"namespace", 'n', kText, "NAMESPACE", "the namespace; default: the context's"},
      {"all-namespaces", 'A', kNone, "", "all namespaces"},
      {"context", 0, kText, "CONTEXT", "the kubeconfig's context; default: its current one"},
      {"kubeconfig", 0, kPath, "FILE", "the kubeconfig; default: $KUBECONFIG, then ~/.kube/config"},
      {"help", 'h', kNone, "", "this text"},
      {"output", 'o', kOutput, "FORM", "how to print it"},
      {"filename", 'f', kPath, "FILE", "a file in YAML or JSON; -: standard input"},
      {"key", 0, kText, "KEY", "submit at most one job for this key"},
      {"wait", 0, kNone, "", "wait until the job has ended; the exit code says how"},
      {"timeout", 0, kDuration, "DURATION",
       "how long --wait waits, such as 10m; default: no limit"},
      {"dry-run", 0, kNone, "", "let the API server check it, and change nothing"},
      {"watch", 'w', kNone, "", "go on showing it while it changes"},
      {"operator-namespace", 0, kText, "NAMESPACE", "where the operator is; default: look for it"},
      {"no-logs", 0, kNone, "", "leave out what programs said last: it may hold secrets"},
      {"port", 0, kNumber, "N", "serve the page on this port; default: any free one"},
      {"no-open", 0, kNone, "", "open no browser"},
      {"once", 0, kNone, "", "print once and end, also on a terminal"},
      {"attempt", 0, kNumber, "N", "the log of this attempt; default: the last"},
      {"index", 0, kNumber, "I", "the log of the last attempt of this index"},
      {"stage", 0, kText, "STAGE", "the log of the last attempt of this stage"},
      {"container", 'c', kText, "NAME", "of this container; default: the pod's first"},
      {"tail", 0, kNumber, "LINES", "only the last lines"},
      {"limit-bytes", 0, kNumber, "BYTES", "no more than so many bytes"},
      {"since", 0, kDuration, "DURATION", "of so long ago at most, such as 24h, the default"},
      {"failed-indexes", 0, kNone, "", "run only the indexes that failed"},
      {"name", 0, kText, "NAME", "the name of the new job"},
  };
  return flags;
}

const std::vector<std::string_view>& common_flags() {
  static const std::vector<std::string_view> names = {"namespace", "context", "kubeconfig", "help"};
  return names;
}

const std::vector<Verb>& all_verbs() {
  static const std::vector<std::string_view> object = {"json", "yaml", "name"};
  static const std::vector<Verb> verbs = {
      {"submit",
       "-f FILE",
       0,
       0,
       {"filename", "key", "wait", "timeout", "dry-run"},
       {"json", "yaml", "wide", "name"},
       "create a job, at most once for a key",
       "Creates the DurableJob in FILE.\n\n"
       "With --key, the job's name is made from the key. The same key with the same spec answers\n"
       "with the job that is there. Another spec is refused, and the difference is shown. Once the\n"
       "job is deleted, the key is free. So you can repeat a submit whose answer was lost.\n\n"
       "With --wait, the exit code is 0 if the job succeeds, and 1 if it fails or is cancelled.\n\n"
       "  kubectl holdfast submit -f job.yaml\n"
       "  kubectl holdfast submit -f job.yaml --key invoice-2026-07 --wait --timeout 1h\n"},
      {"explain",
       "JOB",
       1,
       1,
       {"watch", "no-logs", "operator-namespace"},
       {"json", "yaml", "wide", "model", "html"},
       "say what a job waits for, why, and what comes next",
       "Says in one screen what the job waits for, why, since when, what comes next and by when,\n"
       "and what you can do. It draws the timeline of the attempts.\n\n"
       "-o model prints what it knows as JSON, and -o html one file to attach to a ticket.\n"
       "Both have the last words of programs, which may be secret: --no-logs leaves them out.\n\n"
       "  kubectl holdfast explain encode-7\n"
       "  kubectl holdfast explain encode-7 --watch\n"},
      {"ui",
       "",
       0,
       0,
       {"all-namespaces", "port", "no-open", "operator-namespace"},
       {},
       "serve a page that says why jobs are not done",
       "Serves a page on 127.0.0.1 with your own rights, and opens a browser. Ctrl-C ends it.\n"
       "Nothing runs in the cluster.\n\n"
       "  kubectl holdfast ui -A\n"
       "  kubectl holdfast ui -n media --port 8080 --no-open\n"},
      {"top",
       "",
       0,
       0,
       {"all-namespaces", "once"},
       {"json", "yaml", "wide"},
       "show the jobs as a live table",
       "On a terminal the table stays and changes; Ctrl-C ends it. Piped, it is printed once.\n"
       "The worst jobs come first.\n\n"
       "  kubectl holdfast top -A\n"
       "  kubectl holdfast top --once\n"},
      {"logs",
       "JOB",
       1,
       1,
       {"attempt", "index", "stage", "container", "tail", "limit-bytes"},
       {},
       "print the log of an attempt",
       "Prints the log of the job's last attempt, or of the attempt that you name. If the attempt\n"
       "ran in a warm worker, it prints the worker's lines of this job. The log goes with the pod.\n"
       "It is written as it is, with its escape sequences.\n\n"
       "  kubectl holdfast logs encode-7\n"
       "  kubectl holdfast logs encode-7 --attempt 2\n"
       "  kubectl holdfast logs sweep --index 41\n"},
      {"retry",
       "JOB",
       1,
       1,
       {"failed-indexes", "name", "wait", "timeout", "dry-run"},
       {"json", "yaml", "wide", "name"},
       "run a job that has ended again, as a new job",
       "Creates a new job with the spec of a job that has ended. An annotation names the source.\n"
       "With --failed-indexes, the new job runs only the indexes that failed.\n"
       "A repeated retry of one job makes no second job, unless you give --name.\n\n"
       "  kubectl holdfast retry encode-7\n"
       "  kubectl holdfast retry sweep --failed-indexes\n"},
      {"cancel",
       "JOB",
       1,
       1,
       {"wait", "timeout"},
       object,
       "end a job for good",
       "Sets spec.cancel. The running attempts are ended, and the job becomes Cancelled.\n"
       "With --wait, the exit code is 0 once it is Cancelled, and 1 if it has ended otherwise.\n\n"
       "  kubectl holdfast cancel encode-7 --wait\n"},
      {"suspend",
       "JOB",
       1,
       1,
       {},
       object,
       "stop a job until it is resumed",
       "Sets spec.suspend. The running attempts are ended, and cost no budget.\n\n"
       "  kubectl holdfast suspend encode-7\n"},
      {"resume",
       "JOB",
       1,
       1,
       {},
       object,
       "let a suspended job go on",
       "Clears spec.suspend.\n\n  kubectl holdfast resume encode-7\n"},
      {"convert",
       "-f FILE",
       0,
       0,
       {"filename"},
       {"json", "yaml"},
       "turn a batch/v1 Job or CronJob into ours",
       "Prints the DurableJob for the Job or CronJob in FILE. On standard error it says what\n"
       "differs, and why. It asks no API server. If no DurableJob can do what the Job does, it says\n"
       "so, and the exit code is 2.\n\n"
       "  kubectl holdfast convert -f job.yaml | kubectl apply -f -\n"},
      {"report",
       "",
       0,
       0,
       {"since", "operator-namespace"},
       {"json"},
       "show which pods of other controllers hung",
       "Lists the pods that hung on silent nodes, for how long, and for how long with Holdfast. It\n"
       "also lists those whose node came back, which Holdfast would have freed in vain. The operator\n"
       "writes this down with rescue.mode: observe.\n\n"
       "  kubectl holdfast report --since 24h\n"},
      {"completion",
       "bash|zsh",
       1,
       1,
       {},
       {},
       "print the completion for a shell",
       "  source <(kubectl holdfast completion bash)      # in ~/.bashrc\n"
       "  source <(kubectl holdfast completion zsh)       # in ~/.zshrc\n\n"
       "kubectl completes `kubectl holdfast` itself, if it finds kubectl_complete-holdfast in PATH:\n\n"
       "  ln -s kubectl-holdfast \"$(dirname \"$(command -v kubectl-holdfast)\")/"
       "kubectl_complete-holdfast\"\n"},
      {"version", "", 0, 0, {}, {}, "print the version", ""},
      {"help", "[COMMAND]", 0, 1, {}, {}, "print the help of a command", ""},
  };
  return verbs;
}

const Flag* find_flag(std::string_view name) {
  const auto& flags = all_flags();
  const auto found =
      std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
  return found == flags.end() ? nullptr : &*found;
}

const Verb* find_verb(std::string_view name) {
  const auto& verbs = all_verbs();
  const auto found =
      std::find_if(verbs.begin(), verbs.end(), [&](const Verb& verb) { return verb.name == name; });
  return found == verbs.end() ? nullptr : &*found;
}

}  // namespace holdfast::plugin
