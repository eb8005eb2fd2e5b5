// convert as a verb: what it writes where.
#include <gtest/gtest.h>

#include "plugin/verbs/verbs.h"
#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/text_terminal.h"

namespace holdfast::plugin {
namespace {

TEST(ConvertVerb, ANoteHasNoControlCharacters) {
  test::MemoryApi api;
  test::TextTerminal terminal;
  terminal.files["job.json"] = R"({"apiVersion": "batch/v1", "kind": "CronJob",
    "metadata": {"name": "pi"},
    "spec": {"schedule": "\u001b[2J\u009b31m\r\n* * * * *", "timeZone": "\u0007UTC",
             "jobTemplate": {"spec": {"managedBy": "x\u001b]0;y\u0007/z", "template": {"spec": {
               "restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}}}}})";
  const Result<Command> command = parse_command({"convert", "-f", "job.json"});
  ASSERT_TRUE(command.ok()) << command.error().message;
  ASSERT_EQ(convert(*command, api, terminal), kExitDone) << terminal.errors;
  EXPECT_NE(terminal.errors.find("differs: schedule"), std::string::npos);
  for (const unsigned char character : terminal.errors) {
    EXPECT_TRUE(character == '\n' || (character >= 0x20 && character != 0x7f)) << terminal.errors;
  }
  EXPECT_EQ(terminal.errors.find("\xc2\x9b"), std::string::npos) << "CSI in one character";
}

}  // namespace
}  // namespace holdfast::plugin
