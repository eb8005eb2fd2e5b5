// An environment, in which one variable at a time is wrong.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

namespace holdfast::agent {

// `read_all` takes a function from a variable's name to its value; none: it is not set.
template <auto read_all>
class SettingsOf : public ::testing::Test {
 protected:
  auto read() const {
    return read_all([this](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    });
  }
  // The error names the variable and holds the words.
  void refuses(const std::string& name, const std::string& value, const std::string& words) {
    const std::string before = variables[name];
    variables[name] = value;
    const auto settings = read();
    ASSERT_FALSE(settings.ok()) << name << "=" << value;
    EXPECT_EQ(settings.error().message.find(name), 0u) << settings.error().message;
    EXPECT_NE(settings.error().message.find(words), std::string::npos) << settings.error().message;
    variables[name] = before;
  }

  std::map<std::string, std::string> variables;
};

}  // namespace holdfast::agent
