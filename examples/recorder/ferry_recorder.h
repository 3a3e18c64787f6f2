// Writes the stream log that `ferry check` reads (formats/STREAM_LOG.md). Copy this file into your
// project; C++17, no dependencies.
//
//   ferry::Recorder log("run.jsonl");
//   log.kernel(stream, {weights}, {{x, x_bytes}}, "mm");
//   log.record(event, stream).wait(event, side);
//   log.kernel(side, {{x, x_bytes}}, {"y"}, "relu");
//
// A buffer is a name, or an address and bytes. Streams, events and tokens are names, numbers or
// handles (cudaStream_t, cudaEvent_t). Calls may come from several threads: each writes its line
// under a lock, with the thread that `thread` last named on it (default: one host thread).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <mutex>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace ferry {

class Recorder {
 public:
  // A name, a number or a handle.
  struct Id {
    Id(const char* name) : text(quote(name)) {}
    Id(const std::string& name) : text(quote(name)) {}
    template <class T, class = std::enable_if_t<std::is_integral_v<T> || std::is_pointer_v<T>>>
    Id(T handle) {
      if constexpr (std::is_pointer_v<T>) {
        text = std::to_string(reinterpret_cast<std::uintptr_t>(handle));
      } else {
        text = std::to_string(handle);
      }
    }
    std::string text;  // as JSON
  };
  struct Buffer {
    Buffer(const char* name) : text(quote(name)) {}
    Buffer(const std::string& name) : text(quote(name)) {}
    Buffer(const void* address, std::size_t bytes)
        : Buffer(reinterpret_cast<std::uintptr_t>(address), bytes) {}
    Buffer(std::uintptr_t address, std::size_t bytes)
        : text("{\"address\":" + std::to_string(address) + ",\"bytes\":" + std::to_string(bytes) +
               "}") {}
    std::string text;
  };
  using Buffers = std::initializer_list<Buffer>;

  explicit Recorder(const char* path) : file_(std::fopen(path, "w")) {
    if (file_ == nullptr) throw std::runtime_error(std::string("cannot write ") + path);
  }
  // Without close() nobody is told that the end could not be written.
  ~Recorder() {
    if (file_ != nullptr) std::fclose(file_);
  }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Ends the log. Throws, as every call does, where it could not be written whole.
  void close() {
    std::FILE* file = file_;
    file_ = nullptr;
    if (file == nullptr || std::fclose(file) != 0) fail();
  }

  // Of the lines that the calling thread writes from now on. Empty: the default one.
  static void thread(const std::string& name) { this_thread() = name; }

  // kind: "legacy", "blocking", "nonblocking".
  Recorder& stream(const Id& id, const char* kind, int device = 0) {
    return line("stream", key("id", id.text) + key("kind", quote(kind)) +
                              key("device", std::to_string(device)));
  }
  Recorder& stream_destroy(const Id& s) { return line("stream_destroy", on(s)); }
  Recorder& event_destroy(const Id& e) { return line("event_destroy", key("event", e.text)); }
  Recorder& kernel(const Id& s, Buffers reads, Buffers writes, const char* name = "") {
    return line("kernel",
                on(s) + list("reads", reads) + list("writes", writes) + key("name", quote(name)));
  }
  Recorder& host_func(const Id& s, Buffers reads, Buffers writes) {
    return line("host_func", on(s) + list("reads", reads) + list("writes", writes));
  }
  // Kinds: "device", "pinned", "pageable". sync: cudaMemcpy; else cudaMemcpyAsync.
  Recorder& copy(const Id& s, const Buffer& dst, const char* dst_kind, const Buffer& src,
                 const char* src_kind, bool sync = false) {
    return line("copy", on(s) + key("dst", dst.text) + key("dst_kind", quote(dst_kind)) +
                            key("src", src.text) + key("src_kind", quote(src_kind)) + api(sync));
  }
  Recorder& memset(const Id& s, const Buffer& dst, bool sync = false) {
    return line("memset", on(s) + key("dst", dst.text) + api(sync));
  }
  Recorder& record(const Id& e, const Id& s) {
    return line("record", key("event", e.text) + on(s));
  }
  Recorder& wait(const Id& e, const Id& s) { return line("wait", key("event", e.text) + on(s)); }
  Recorder& event_sync(const Id& e) { return line("event_sync", key("event", e.text)); }
  Recorder& stream_sync(const Id& s) { return line("stream_sync", on(s)); }
  Recorder& device_sync(int device = 0) {
    return line("device_sync", key("device", std::to_string(device)));
  }
  Recorder& event_query(const Id& e, bool done) {
    return line("event_query", key("event", e.text) + result(done));
  }
  Recorder& stream_query(const Id& s, bool done) {
    return line("stream_query", on(s) + result(done));
  }
  // pool: "caching", "async", "host", "malloc".
  Recorder& alloc(const void* address, std::size_t bytes, const Id& s, const char* pool) {
    return line("alloc", range(address, bytes) + on(s) + key("pool", quote(pool)));
  }
  Recorder& free(const void* address, std::size_t bytes, const Id& s, const char* pool) {
    return line("free", range(address, bytes) + on(s) + key("pool", quote(pool)));
  }
  Recorder& record_use(const Buffer& b, const Id& s) {
    return line("record_use", key("buffer", b.text) + on(s));
  }
  Recorder& host_read(const Buffer& b) { return line("host_read", key("buffer", b.text)); }
  Recorder& host_write(const Buffer& b) { return line("host_write", key("buffer", b.text)); }
  Recorder& host_view(const Buffer& b) { return line("host_view", key("buffer", b.text)); }
  Recorder& host_view_end(const Buffer& b) { return line("host_view_end", key("buffer", b.text)); }
  Recorder& release(const Id& token) { return line("release", key("token", token.text)); }
  Recorder& acquire(const Id& token) { return line("acquire", key("token", token.text)); }
  // A host function's, in the stream's order.
  Recorder& release(const Id& token, const Id& s) {
    return line("release", key("token", token.text) + on(s));
  }
  Recorder& acquire(const Id& token, const Id& s) {
    return line("acquire", key("token", token.text) + on(s));
  }

 private:
  [[noreturn]] static void fail() { throw std::runtime_error("cannot write the whole log"); }
  static std::string& this_thread() {
    thread_local std::string name;
    return name;
  }
  static std::string quote(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + "\"";
  }
  static std::string key(const char* name, const std::string& value) {
    return std::string(",\"") + name + "\":" + value;
  }
  static std::string on(const Id& s) { return key("stream", s.text); }
  static std::string api(bool sync) { return key("api", sync ? "\"sync\"" : "\"async\""); }
  static std::string result(bool done) {
    return key("result", done ? "\"done\"" : "\"not_ready\"");
  }
  static std::string range(const void* address, std::size_t bytes) {
    return key("address", std::to_string(reinterpret_cast<std::uintptr_t>(address))) +
           key("bytes", std::to_string(bytes));
  }
  static std::string list(const char* name, Buffers buffers) {
    std::string out;
    for (const Buffer& each : buffers) out += (out.empty() ? "" : ",") + each.text;
    return key(name, "[" + out + "]");
  }
  Recorder& line(const char* op, const std::string& keys) {
    std::string text = std::string("{\"op\":\"") + op + "\"" + keys;
    if (!this_thread().empty()) text += key("thread", quote(this_thread()));
    text += "}\n";
    const std::lock_guard<std::mutex> lock(mutex_);
    if (file_ == nullptr) fail();  // it was closed
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail();
    return *this;
  }

  std::mutex mutex_;
  std::FILE* file_;
};

}  // namespace ferry
