// The verb `convert`: the DurableJob on standard output, what differs on standard error.
#include "core/utf8.h"
#include "plugin/terminal/print.h"
#include "plugin/verbs/convert.h"
#include "plugin/verbs/job_file.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {

int convert(const Command& command, Api&, Terminal& terminal) {
  const Result<Json> object = read_manifest(command, terminal);
  if (!object.ok()) return refuse(terminal, command, object.error().message);
  const Conversion conversion = convert(*object);
  if (!conversion.errors.empty()) {
    for (const std::string& error : conversion.errors) refuse(terminal, command, error);
    return kExitRefused;
  }
  // They quote the manifest, which may come from anywhere.
  constexpr std::size_t kMaxLine = 4096;
  for (const std::string& note : conversion.notes) {
    terminal.err("differs: " + clean_text(note, kMaxLine) + "\n");
  }
  terminal.out(rendered(conversion.job, command.text("output", "yaml")));
  return kExitDone;
}

}  // namespace holdfast::plugin
