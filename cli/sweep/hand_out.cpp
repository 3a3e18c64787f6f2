#include "cli/sweep/hand_out.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <optional>

#include "cli/sweep/children.h"
#include "cli/sweep/outcome.h"

namespace ferry::cli {
namespace {

constexpr std::chrono::milliseconds kPause(1);  // between checks for messages

std::string with_number(std::uint64_t number, std::string_view text) {
  std::string bytes(sizeof number, '\0');
  std::memcpy(bytes.data(), &number, sizeof number);
  return bytes.append(text);
}

std::uint64_t number_of(std::string_view bytes) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
  return number;
}

// Joins arguments with zero bytes, which no argument contains.
std::string joined(const std::vector<std::string>& arguments) {
  std::string text;
  for (const std::string& argument : arguments) text.append(argument).push_back('\0');
  return text;
}

std::vector<std::string> taken_apart(std::string_view text) {
  std::vector<std::string> arguments;
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(end + 1)) {
    end = text.find('\0');
    arguments.emplace_back(text.substr(0, end));
  }
  return arguments;
}

}  // namespace

HandOut::HandOut(Ranks* ranks)
    : ranks_(ranks), room_(ranks ? static_cast<std::size_t>(ranks->size()) : 0) {}

int HandOut::rank_with_room() const {
  const auto found = std::find_if(room_.begin(), room_.end(), [](auto room) { return room > 0; });
  return found == room_.end() ? 0 : static_cast<int>(found - room_.begin());
}

void HandOut::give(int rank, std::uint64_t number, const std::vector<std::string>& arguments) {
  --room_[static_cast<std::size_t>(rank)];
  ranks_->send(rank, Tag::kWork, with_number(number, joined(arguments)));
}

void HandOut::take(
    const std::function<void(std::uint64_t number, std::string_view outcome)>& result) {
  if (ranks_ == nullptr) return;
  while (const std::optional<Message> message = ranks_->receive()) {
    std::uint32_t& room = room_[static_cast<std::size_t>(message->from)];
    if (message->tag == Tag::kWant) room = static_cast<std::uint32_t>(number_of(message->bytes));
    if (message->tag == Tag::kLeave) std::raise(SIGTERM);
    if (message->tag != Tag::kResult) continue;
    ++room;
    result(number_of(message->bytes),
           std::string_view(message->bytes).substr(sizeof(std::uint64_t)));
  }
}

void serve_items(Ranks& ranks, const RunOptions& options) {
  Children children;
  ranks.send(0, Tag::kWant, with_number(options.jobs, ""));
  for (bool stopped = false;;) {
    while (const std::optional<Message> message = ranks.receive()) {
      if (message->tag == Tag::kLetGo) return;
      if (message->tag != Tag::kWork || stopped) continue;
      children.start(
          number_of(message->bytes),
          command_of(taken_apart(std::string_view(message->bytes).substr(sizeof(std::uint64_t)))),
          options.limit);
    }
    for (const ChildEnd& end : children.wait(kPause)) {
      ranks.send(0, Tag::kResult, with_number(end.number, outcome_of(end)));
    }
    if (stopped || !options.stop()) continue;
    stopped = true;
    children.kill();
    ranks.send(0, Tag::kLeave, "");
  }
}

}  // namespace ferry::cli
