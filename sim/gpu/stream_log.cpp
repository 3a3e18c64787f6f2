#include "sim/gpu/stream_log.h"

#include <utility>

#include "sim/check/hazard.h"

namespace ferry::sim {
namespace {

Range logged(Range range) {
  if (check::is_host(range.address)) range.address += kLoggedHost - check::kHostBase;
  return range;
}

std::span<const Range> logged(std::span<const Range> ranges, std::vector<Range>& into) {
  into.clear();
  for (const Range range : ranges) into.push_back(logged(range));
  return into;
}

}  // namespace

std::string stream_name(StreamId stream) {
  const auto number = static_cast<std::uint32_t>(stream);
  switch (number) {
    case 0:
      return "compute";
    case 1:
      return "d2h";
    case 2:
      return "h2d";
    default:
      return "compute " + std::to_string(number - 2);
  }
}

StreamLog::StreamLog(StreamLogFile& file)
    : StreamLog([&file](std::string_view line) { file.write(line); }) {}

StreamLog::StreamLog(std::function<void(std::string_view line)> sink) : sink_(std::move(sink)) {
  text_.call(kNoStream, "host");
}

void StreamLog::operator()(const StreamOp& op) {
  meet(op.stream);
  StreamOp line = op;
  if (check::is_host(op.range.address)) line.pool = PoolKind::kHost;
  line.range = logged(op.range);
  line.reads = logged(op.reads, reads_);
  line.writes = logged(op.writes, writes_);
  sink_(text_.line(line));
}

void StreamLog::meet(StreamId stream) {
  const auto number = static_cast<std::size_t>(stream);
  if (stream == kNoStream) return;
  if (number >= met_.size()) met_.resize(number + 1, false);
  if (met_[number]) return;
  met_[number] = true;
  text_.call(stream, stream_name(stream));
  StreamOp declared;
  declared.kind = StreamOpKind::kStream;
  declared.stream = stream;
  sink_(text_.line(declared));
}

}  // namespace ferry::sim
