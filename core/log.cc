#include "core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "core/json.h"
#include "core/time.h"

namespace holdfast {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kTrace:
      return spdlog::level::trace;
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

const char* level_name(LogLevel level, LogFormat format) {
  const bool text = format == LogFormat::kText;
  switch (level) {
    case LogLevel::kTrace:
      return text ? "TRACE" : "trace";
    case LogLevel::kDebug:
      return text ? "DEBUG" : "debug";
    case LogLevel::kInfo:
      return text ? "INFO" : "info";
    case LogLevel::kWarn:
      return text ? "WARN" : "warn";
    case LogLevel::kError:
      return text ? "ERROR" : "error";
  }
  return "info";
}

std::string timestamp() {
  // The machine's clock, on purpose: a log line is compared with other logs of this machine.
  const auto now = std::chrono::system_clock::now();
  std::string text = format_time_nanos(now);
  text.replace(text.find('.') + 4, 6, "");  // milliseconds are enough
  return text;
}

std::string json_string(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Text from outside cannot add lines or send escape sequences to a terminal.
std::string escaped(const std::string& text) {
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  if (std::none_of(text.begin(), text.end(), is_control)) return text;
  const std::string quoted = json_string(text);
  std::string result;
  for (const char c : quoted.substr(1, quoted.size() - 2)) {
    if (c == 0x7f) {
      result += "\\u007f";
    } else {
      result += c;
    }
  }
  return result;
}

std::string text_value(const std::string& value) {
  const auto is_plain = [](unsigned char c) {
    return c > 0x20 && c != 0x7f && c != '"' && c != '=' && c != '\\';
  };
  if (!value.empty() && std::all_of(value.begin(), value.end(), is_plain)) return value;
  return escaped(json_string(value));
}

}  // namespace

std::string Log::render(LogLevel level, const std::string& time, const std::string& message,
                        const Fields& fields) const {
  if (format_ == LogFormat::kJson) {
    nlohmann::ordered_json line;
    line["time"] = time;
    line["level"] = level_name(level, format_);
    line["message"] = message;
    for (const auto& [key, value] : fields_) line[key] = value;
    for (const auto& [key, value] : fields) line[key] = value;
    return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  }
  std::string line = time + " " + level_name(level, format_) + " " + escaped(message);
  const auto append = [&line](const Field& field) {
    line += " " + field.first + "=" + text_value(field.second);
  };
  for (const Field& field : fields_) {
    // A field of the call takes the place of the log's own of that name.
    const auto same = [&field](const Field& other) { return other.first == field.first; };
    if (std::none_of(fields.begin(), fields.end(), same)) append(field);
  }
  for (const Field& field : fields) append(field);
  return line;
}

Log Log::create(LogLevel level, LogFormat format) {
  Log log;
  log.logger_ = std::make_shared<spdlog::logger>("holdfast",
                                                 std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log.logger_->set_pattern("%v");
  log.logger_->set_level(spdlog_level(level));
  log.logger_->flush_on(spdlog::level::trace);
  log.format_ = format;
  return log;
}

Log Log::with(Fields fields) const {
  Log log = *this;
  log.fields_.insert(log.fields_.end(), std::make_move_iterator(fields.begin()),
                     std::make_move_iterator(fields.end()));
  return log;
}

void Log::write(LogLevel level, const std::string& message, const Fields& fields) const {
  if (!logger_ || !logger_->should_log(spdlog_level(level))) return;
  logger_->log(spdlog_level(level), render(level, timestamp(), message, fields));
}

void Log::debug(const std::string& message, const Fields& fields) const {
  write(LogLevel::kDebug, message, fields);
}
void Log::info(const std::string& message, const Fields& fields) const {
  write(LogLevel::kInfo, message, fields);
}
void Log::warn(const std::string& message, const Fields& fields) const {
  write(LogLevel::kWarn, message, fields);
}
void Log::error(const std::string& message, const Fields& fields) const {
  write(LogLevel::kError, message, fields);
}
bool Log::debug_enabled() const { return logger_ && logger_->should_log(spdlog::level::debug); }

}  // namespace holdfast
