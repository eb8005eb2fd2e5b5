// Structured logging over spdlog: a message and fields, as text or as one JSON object a line.
//
//   Log log = root.with({{"job", "media/encode-7"}, {"uid", uid}, {"attempt", "3"}});
//   log.info("attempt ended", {{"outcome", "Lost"}, {"reason", "NodeSilent"}});
//
// Any thread may log. No field may hold a token, a key or a request body.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace spdlog {
class logger;
}

namespace holdfast {

enum class LogLevel { kTrace, kDebug, kInfo, kWarn, kError };
enum class LogFormat { kText, kJson };

class Log {
 public:
  using Field = std::pair<std::string, std::string>;
  using Fields = std::vector<Field>;

  Log() = default;  // logs nowhere: what tests use

  // Writes to standard error.
  static Log create(LogLevel level, LogFormat format);

  // The same log, with these fields on every line.
  Log with(Fields fields) const;

  void debug(const std::string& message, const Fields& fields = {}) const;
  void info(const std::string& message, const Fields& fields = {}) const;
  void warn(const std::string& message, const Fields& fields = {}) const;
  void error(const std::string& message, const Fields& fields = {}) const;
  bool debug_enabled() const;

  // The line as it is written, without its end. Control characters are escaped, so a message from
  // outside cannot add lines.
  std::string render(LogLevel level, const std::string& time, const std::string& message,
                     const Fields& fields) const;

 private:
  void write(LogLevel level, const std::string& message, const Fields& fields) const;

  std::shared_ptr<spdlog::logger> logger_;
  LogFormat format_ = LogFormat::kText;
  Fields fields_;
};

}  // namespace holdfast
