#include "vgpu/runtime/pending_free.h"

#include <dlfcn.h>

namespace ferry::vgpu {
namespace {

bool is_in(std::string_view library, const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) return false;
  return std::string_view(found.dli_fname).find(library) != std::string_view::npos;
}

}  // namespace

void PendingFree::begin(const StreamOp& free, std::string_view library) {
  pending_[std::this_thread::get_id()] = {free, library, {}};
}

bool PendingFree::is_for_block(const void* caller) const {
  const auto found = pending_.find(std::this_thread::get_id());
  if (found == pending_.end() || of_programs_.contains(caller)) return false;
  return is_in(found->second.library, caller);
}

void PendingFree::add_use(StreamId stream) {
  pending_.at(std::this_thread::get_id()).uses.push_back(stream);
}

}  // namespace ferry::vgpu
