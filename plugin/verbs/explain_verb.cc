// The verb `explain`: reads what the page needs, and shows it once or again and again.
#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/steady_now.h"
#include "plugin/base/installation.h"
#include "plugin/base/job_text.h"
#include "plugin/base/refusals.h"
#include "plugin/explain/explain.h"
#include "plugin/explain/facts_reader.h"
#include "plugin/explain/html.h"
#include "plugin/terminal/print.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

// Times on the page move each second.
constexpr seconds kRedraw{1};
// A change of the job shows at once. What stands beside it is read again now and then.
constexpr seconds kReadAgain{5};

Page page_for(const Command& command, const Terminal& terminal, bool live) {
  Page page;
  page.unicode = terminal.is_unicode();
  page.width = static_cast<std::size_t>(std::max(terminal.width(), 40));
  // The last row is the shell's prompt.
  page.height = static_cast<std::size_t>(std::max(terminal.height() - (live ? 0 : 1), 10));
  if (command.text("output") == "wide") page.height = 0;
  return page;
}

Model model_for(const Command& command, const ExplainFacts& facts, Time now) {
  Model model = model_of(facts, now);
  if (command.has("no-logs")) leave_words_out(model);
  return model;
}

void print(const std::vector<std::string>& lines, Terminal& terminal) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  terminal.out(text);
}

// On a terminal the page stays and changes. Piped, each change of the job is a page, until it ends.
int watch(const Command& command, FactsReader& facts, Api& api, Terminal& terminal) {
  const Json& metadata = at(facts.facts().job, "metadata");
  const Subject subject = {"get", kJobs, string_at(metadata, "namespace"),
                           string_at(metadata, "name")};
  const Result<std::unique_ptr<Mirror>> mirror = api.mirror(
      kJobs, subject.namespace_, {.labels = "", .fields = "metadata.name=" + subject.name});
  if (!mirror.ok()) return refuse(terminal, command, mirror.error().message);
  const bool live = terminal.is_interactive();
  std::string printed;
  Time read = api.now();
  Refusals refusals;
  do {
    const Time now = api.now();
    const auto lines =
        draw(model_for(command, facts.facts(), now), now, page_for(command, terminal, live));
    const std::string version = string_at(at(facts.facts().job, "metadata"), "resourceVersion");
    if (live) {
      terminal.show(lines);
    } else if (version != printed) {
      if (!printed.empty()) terminal.out("\n");
      print(lines, terminal);
      printed = version;
    }
    if (!live && read_job(facts.facts().job).has_ended()) return kExitDone;
    if (!(*mirror)->wait(kRedraw) && api.now() - read < kReadAgain) continue;
    read = api.now();
    const Result<> again = facts.read();
    // A server that is away comes back. A job that is gone does not, nor do revoked credentials.
    if (!again.ok() && again.error().code == ErrorCode::kNotFound) {
      return refuse(terminal, command, advice(again.error(), subject));
    }
    const auto error = again.ok() ? std::nullopt : std::optional(again.error());
    if (refusals.note(error, steady_now())) {
      return refuse(terminal, command,
                    "for " + human_duration(kRefusedFor) + ", " + advice(*error, subject));
    }
  } while (terminal.wait(Duration::zero()));
  return kExitDone;
}

}  // namespace

int explain(const Command& command, Api& api, Terminal& terminal) {
  const std::string form = command.text("output");
  if (command.has("watch") && !form.empty() && form != "wide") {
    return refuse(terminal, command,
                  "--watch shows the page again and again: give it no -o, or -o wide");
  }
  if (command.has("no-logs") && (form == "json" || form == "yaml")) {
    return refuse(terminal, command,
                  "-o " + form + " prints the job as it is: --no-logs goes with -o model and html");
  }
  Result<Json> job = job_of(command, api);
  if (!job.ok()) return refuse(terminal, command, job.error().message);
  if (form == "json" || form == "yaml") {
    terminal.out(rendered(*job, form));
    return kExitDone;
  }
  FactsReader facts(api, std::move(*job), operator_namespace(command));
  if (command.has("watch")) return watch(command, facts, api, terminal);
  const Time now = api.now();
  const Model model = model_for(command, facts.facts(), now);
  if (form == "model") {
    terminal.out(rendered(to_json(model, now), "json"));
  } else if (form == "html") {
    terminal.out(html_of(model, now));
  } else {
    print(draw(model, now, page_for(command, terminal, false)), terminal);
  }
  return kExitDone;
}

}  // namespace holdfast::plugin
