// The verb `top`: lists the jobs once, or follows them with a watch on a terminal.
#include <algorithm>

#include "core/utf8.h"
#include "plugin/terminal/cells.h"
#include "plugin/terminal/print.h"
#include "plugin/verbs/top.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

constexpr seconds kTopRedraw{1};
constexpr std::size_t kTroubleLimit = 500;

TopLook look_for(const Command& command, const Terminal& terminal, bool live) {
  TopLook look;
  look.with_namespace = command.has("all-namespaces");
  look.wide = command.text("output") == "wide";
  look.unicode = terminal.is_unicode();
  look.live = live;
  look.width = static_cast<std::size_t>(std::max(terminal.width(), 40));
  look.height = static_cast<std::size_t>(std::max(terminal.height(), 5));
  return look;
}

int follow(const Command& command, const std::string& namespace_, Api& api, Terminal& terminal) {
  const Result<std::unique_ptr<Mirror>> mirror = api.mirror(kJobs, namespace_, {});
  if (!mirror.ok()) return refuse(terminal, command, mirror.error().message);
  do {
    (*mirror)->wait(kTopRedraw);
    const auto objects = (*mirror)->objects();
    std::vector<const Json*> jobs;
    jobs.reserve(objects.size());
    for (const auto& object : objects) jobs.push_back(object.get());
    const TopLook look = look_for(command, terminal, true);
    std::vector<std::string> lines = top_table(jobs, api.now(), look);
    // What is shown may be old then.
    if (const std::string trouble = (*mirror)->trouble(); !trouble.empty()) {
      lines.front() =
          cut("not current: " + clean_text(trouble, kTroubleLimit), look.width, look.unicode);
    }
    terminal.show(lines);
  } while (terminal.wait(Duration::zero()));
  return kExitDone;
}

}  // namespace

int top(const Command& command, Api& api, Terminal& terminal) {
  const Result<std::string> namespace_ = namespace_of(command, api);
  if (!namespace_.ok()) return refuse(terminal, command, namespace_.error().message);
  const Result<std::vector<Json>> list = api.list(kJobs, *namespace_, {});
  if (!list.ok()) {
    return refuse(terminal, command, advice(list.error(), {"list", kJobs, *namespace_, ""}));
  }
  const std::string form = command.text("output");
  if (form == "json" || form == "yaml") {
    terminal.out(rendered(Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", *list}}, form));
    return kExitDone;
  }
  if (terminal.is_interactive() && !command.has("once")) {
    return follow(command, *namespace_, api, terminal);
  }
  std::vector<const Json*> jobs;
  for (const Json& job : *list) jobs.push_back(&job);
  const auto lines = top_table(jobs, api.now(), look_for(command, terminal, false));
  if (lines.empty()) terminal.err("no DurableJobs found\n");
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  terminal.out(text);
  return kExitDone;
}

}  // namespace holdfast::plugin
