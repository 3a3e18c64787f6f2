// The writer of stream logs: what its lines look like, what it refuses, and its file.
#include "formats/stream_log_write.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include "formats/stream_log.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

namespace fs = std::filesystem;
using Kind = StreamOpKind;

StreamOp op_of(Kind kind) {
  StreamOp op;
  op.kind = kind;
  return op;
}

TEST(StreamLogWrite, LinesAreThoseOfTheFormat) {
  StreamLogText text;
  text.call(StreamId{1}, "d2h");
  text.call(HostThread{2}, "engine");
  const Range x{4096, 512}, y{8192, 16};
  StreamOp copy = op_of(Kind::kCopy);
  copy.copy = CopyKind::kDeviceToHost;
  copy.step = Step::kOffload;
  copy.stream = StreamId{1};
  copy.reads = {&x, 1};
  copy.writes = {&y, 1};
  EXPECT_EQ(text.line(copy),
            R"({"op":"copy","stream":"d2h","src":{"address":4096,"bytes":512},)"
            R"("dst":{"address":8192,"bytes":16},"src_kind":"device","dst_kind":"pinned",)"
            R"("name":"offload"})"
            "\n");
  StreamOp kernel = op_of(Kind::kKernel);
  kernel.thread = HostThread{2};
  kernel.writes = {&x, 1};
  kernel.name = "mm";
  EXPECT_EQ(text.line(kernel),
            R"({"op":"kernel","stream":0,"reads":[],"writes":[{"address":4096,"bytes":512}],)"
            R"("thread":"engine","name":"mm"})"
            "\n");
  StreamOp wait = op_of(Kind::kWait);
  wait.step = Step::kConsume;
  wait.event = EventId{7};
  EXPECT_EQ(text.line(wait), "{\"op\":\"wait\",\"event\":7,\"stream\":0,\"name\":\"consume\"}\n");
}

TEST(StreamLogWrite, WhatTheLogCannotSayIsRefused) {
  StreamLogText text;
  const Range most{kNamedBuffers - 4, 4}, beyond{kNamedBuffers - 4, 5};
  StreamOp read = op_of(Kind::kHostRead);
  read.range = most;
  EXPECT_NO_THROW(text.line(read));
  read.range = beyond;
  EXPECT_THROW(text.line(read), std::invalid_argument);
  StreamOp copy = op_of(Kind::kCopy);
  copy.writes = {&most, 1};
  EXPECT_THROW(text.line(copy), std::invalid_argument) << "it reads nothing";
  copy.reads = {&most, 1};
  EXPECT_NO_THROW(text.line(copy));
  copy.host_order = HostOrder::kDone;  // copies within a device make nobody wait
  EXPECT_THROW(text.line(copy), std::invalid_argument);
  copy.copy = CopyKind::kDeviceToHost;
  EXPECT_NO_THROW(text.line(copy));
  copy.host_order = HostOrder::kStaged;
  EXPECT_THROW(text.line(copy), std::invalid_argument);
}

TEST(StreamLogWrite, TheFileIsThereWholeOrNotAtAll) {
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("ferry_stream_log_write_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  const auto files = [&] {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  };
  EXPECT_THROW(StreamLogFile(folder / "none" / "log"), std::system_error);
  {
    StreamLogFile file(folder / "log");
    file.write(op_of(Kind::kDeviceSync));
  }
  EXPECT_EQ(files(), 0);
  StreamLogFile file(folder / "log");
  file.write(op_of(Kind::kDeviceSync));
  file.commit();
  EXPECT_EQ(read_file(folder / "log"), "{\"op\":\"device_sync\"}\n");
  EXPECT_EQ(files(), 1);
  fs::remove_all(folder);
}

TEST(StreamLogWrite, AFullDiskIsNamed) {
  const fs::path folder =
      fs::path(::testing::TempDir()) / ("ferry_trace_full_" + std::to_string(::getpid()));
  fs::create_directories(folder);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);  // then the write fails
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  std::string message;
  try {
    StreamLogFile file(folder / "log");
    for (int i = 0; i < 10'000; ++i) file.write(op_of(Kind::kDeviceSync));
    file.commit();
  } catch (const std::system_error& error) {
    message = error.what();
  }
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message.rfind("cannot write " + (folder / "log").string() + ": ", 0), 0u) << message;
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace ferry
