// The command line: what is understood, and what is refused in which words.
#include <gtest/gtest.h>

#include "plugin/base/command.h"
#include "plugin/verbs/verbs.h"

namespace holdfast::plugin {
namespace {

using namespace std::chrono_literals;

Command parsed(const std::vector<std::string>& words) {
  const Result<Command> command = parse_command(words);
  EXPECT_TRUE(command.ok()) << command.error().message;
  return command.ok() ? *command : Command{};
}

std::string refused(const std::vector<std::string>& words) {
  const Result<Command> command = parse_command(words);
  EXPECT_FALSE(command.ok());
  return command.ok() ? "" : command.error().message;
}

TEST(PluginCommand, FlagsMayStandAnywhereAndInEachForm) {
  const std::vector<std::vector<std::string>> forms = {
      {"logs", "encode-7", "--attempt", "2", "-n", "media"},
      {"-n", "media", "logs", "--attempt=2", "encode-7"},
      {"logs", "-nmedia", "encode-7", "--attempt", "2"},
      {"logs", "-n=media", "--attempt", "2", "--", "encode-7"},
      {"--namespace=media", "logs", "--attempt", "2", "encode-7"},
  };
  for (const auto& form : forms) {
    const Command command = parsed(form);
    EXPECT_EQ(command.verb, "logs");
    EXPECT_EQ(command.arguments, std::vector<std::string>{"encode-7"});
    EXPECT_EQ(command.text("namespace"), "media");
    EXPECT_EQ(command.number("attempt"), 2);
  }
}

TEST(PluginCommand, ADashAloneIsAValue) {
  EXPECT_EQ(parsed({"submit", "-f", "-"}).text("filename"), "-");
}

TEST(PluginCommand, ASwitchMayBeTurnedOff) {
  EXPECT_TRUE(parsed({"submit", "--wait"}).has("wait"));
  EXPECT_TRUE(parsed({"submit", "--wait=true"}).has("wait"));
  EXPECT_FALSE(parsed({"submit", "--wait=false"}).has("wait"));
}

TEST(PluginCommand, WithoutAVerbOrWithHelpItIsHelp) {
  EXPECT_EQ(parsed({}).verb, "help");
  EXPECT_EQ(parsed({"--help"}).verb, "help");
  const Command help = parsed({"logs", "--help"});
  EXPECT_EQ(help.verb, "help");
  EXPECT_EQ(help.arguments, std::vector<std::string>{"logs"});
  EXPECT_EQ(parsed({"--version"}).verb, "version");
}

TEST(PluginCommand, WhatGoesToTheApiServerIsUtf8) {
  EXPECT_EQ(refused({"submit", "-f", "a", "--key", "k\xFF"}),
            "--key is not UTF-8; give it in UTF-8");
  EXPECT_EQ(refused({"retry", "a", "--name=\xC3"}), "--name is not UTF-8; give it in UTF-8");
  EXPECT_EQ(refused({"explain", "\x80"}), "'\x80' is not UTF-8; give it in UTF-8");
  // A file's name is bytes.
  EXPECT_EQ(parsed({"submit", "-f", "\xFF.yaml", "--key", "ü"}).text("filename"), "\xFF.yaml");
}

TEST(PluginCommand, WhatIsWrongIsSaidInOneLineWithWhatToDo) {
  EXPECT_EQ(refused({"lgos"}),
            "there is no command 'lgos'; kubectl holdfast --help lists the commands");
  EXPECT_EQ(refused({"logs", "x", "--follow"}),
            "there is no flag --follow; kubectl holdfast logs --help shows what it takes");
  EXPECT_EQ(refused({"logs", "x", "--key=7"}),
            "logs has no flag --key; kubectl holdfast logs --help shows what it takes");
  EXPECT_EQ(refused({"cancel"}), "something is missing: kubectl holdfast cancel JOB");
  EXPECT_EQ(refused({"cancel", "a", "b"}), "'b' is too much: kubectl holdfast cancel JOB");
  EXPECT_EQ(refused({"logs", "x", "--attempt"}), "--attempt needs a value: --attempt N");
  EXPECT_EQ(refused({"logs", "x", "--attempt", "two"}),
            "--attempt takes a number from 0, not 'two'");
  EXPECT_EQ(refused({"submit", "--timeout", "soon"}),
            "--timeout takes a duration such as 90s or 5m, not 'soon'");
  EXPECT_EQ(refused({"submit", "-o", "xml"}), "-o takes json, yaml, wide or name, not 'xml'");
  EXPECT_EQ(refused({"submit", "--wait=maybe"}), "--wait is a switch and takes no value");
  EXPECT_EQ(refused({"submit", "--key="}), "--key is empty");
  EXPECT_EQ(refused({"submit", "-n", "a", "-n", "b"}),
            "--namespace is given twice; once is enough");
  EXPECT_EQ(refused({"top", "-A", "-n", "media"}), "give -n or -A, not both");
}

TEST(PluginCommand, DurationsAreThoseOfKubectl) {
  EXPECT_EQ(parse_duration("90s"), 90s);
  EXPECT_EQ(parse_duration("1h30m"), 90min);
  EXPECT_EQ(parse_duration("250ms"), 250ms);
  EXPECT_EQ(parse_duration("0"), 0s);
  for (const char* wrong : {"", "5", "s", "-5s", "5d", "5s5", "99999999999h", "1.5h"}) {
    EXPECT_FALSE(parse_duration(wrong).has_value()) << wrong;
  }
}

TEST(PluginCommand, EachVerbHasItsFunction) {
  for (const Verb& verb : all_verbs()) {
    // That one calls the others.
    if (std::string_view(verb.name) == "ui") continue;
    EXPECT_NE(function_of(verb.name), nullptr) << verb.name;
  }
  EXPECT_EQ(function_of("nothing"), nullptr);
}

TEST(PluginCommand, EachVerbHasHelpWithEachOfItsFlags) {
  for (const Verb& verb : all_verbs()) {
    const std::string text = help_text(verb.name);
    EXPECT_NE(help_text("").find(verb.summary), std::string::npos) << verb.name;
    for (const std::string_view flag : verb.flags) {
      EXPECT_NE(text.find("--" + std::string(flag)), std::string::npos) << verb.name << " " << flag;
      EXPECT_NE(find_flag(flag), nullptr) << flag;
    }
  }
}

TEST(PluginCommand, HelpFitsATerminalOf80Columns) {
  // Examples may be longer: they are commands to copy.
  const auto check = [](const std::string& text) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = text.find('\n', begin);
      const std::string line = text.substr(begin, end - begin);
      EXPECT_TRUE(line.size() <= 100) << line;
      begin = end + 1;
    }
  };
  check(help_text(""));
  for (const Verb& verb : all_verbs()) check(help_text(verb.name));
}

}  // namespace
}  // namespace holdfast::plugin
