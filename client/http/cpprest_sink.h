// A write-only stream buffer for cpprestsdk that forwards its input. Runs on cpprestsdk's threads.
//
// cpprestsdk reads from the socket again only after the task from _putn() has completed. This task
// must not fail: cpprestsdk would then close the buffer and wait for that on its own thread. With
// one thread it would wait forever.
//
// Only cpprest_wire.cc includes it, because it brings cpprestsdk's headers.
#pragma once

#include <cpprest/streams.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace holdfast::http {

class Sink : public concurrency::streams::details::streambuf_state_manager<std::uint8_t> {
 public:
  using Base = concurrency::streams::details::streambuf_state_manager<std::uint8_t>;
  using Consume = std::function<pplx::task<std::size_t>(const char* data, std::size_t size)>;
  explicit Sink(Consume consume) : Base(std::ios_base::out), consume_(std::move(consume)) {}

  bool can_seek() const override { return false; }
  bool has_size() const override { return false; }
  std::size_t buffer_size(std::ios_base::openmode) const override { return 0; }
  void set_buffer_size(std::size_t, std::ios_base::openmode) override {}
  std::size_t in_avail() const override { return 0; }
  pos_type getpos(std::ios_base::openmode) const override { return pos_type(traits::eof()); }
  pos_type seekpos(pos_type, std::ios_base::openmode) override { return pos_type(traits::eof()); }
  pos_type seekoff(off_type, std::ios_base::seekdir, std::ios_base::openmode) override {
    return pos_type(traits::eof());
  }
  bool acquire(std::uint8_t*& data, std::size_t& count) override {
    data = nullptr;
    count = 0;
    return false;
  }
  void release(std::uint8_t*, std::size_t) override {}

 protected:
  pplx::task<std::size_t> _putn(const std::uint8_t* data, std::size_t size) override {
    return consume_(reinterpret_cast<const char*>(data), size);
  }
  pplx::task<int_type> _putc(std::uint8_t c) override {
    return _putn(&c, 1).then([c](std::size_t) { return static_cast<int_type>(c); });
  }
  pplx::task<int_type> _bumpc() override { return nothing(); }
  int_type _sbumpc() override { return traits::eof(); }
  pplx::task<int_type> _getc() override { return nothing(); }
  int_type _sgetc() override { return traits::eof(); }
  pplx::task<int_type> _nextc() override { return nothing(); }
  pplx::task<int_type> _ungetc() override { return nothing(); }
  pplx::task<std::size_t> _getn(std::uint8_t*, std::size_t) override {
    return pplx::task_from_result<std::size_t>(0);
  }
  std::size_t _scopy(std::uint8_t*, std::size_t) override { return 0; }
  pplx::task<bool> _sync() override { return pplx::task_from_result(true); }
  std::uint8_t* _alloc(std::size_t) override { return nullptr; }
  void _commit(std::size_t) override {}

 private:
  static pplx::task<int_type> nothing() {
    return pplx::task_from_result(static_cast<int_type>(traits::eof()));
  }
  const Consume consume_;
};

class SinkBuffer : public concurrency::streams::streambuf<std::uint8_t> {
 public:
  explicit SinkBuffer(std::shared_ptr<Sink> sink)
      : concurrency::streams::streambuf<std::uint8_t>(
            std::shared_ptr<concurrency::streams::details::basic_streambuf<std::uint8_t>>(
                std::move(sink))) {}
};

inline concurrency::streams::ostream output(Sink::Consume consume) {
  return concurrency::streams::ostream(SinkBuffer(std::make_shared<Sink>(std::move(consume))));
}

}  // namespace holdfast::http
