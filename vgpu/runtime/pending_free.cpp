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

bool PendingFree::takes(StreamId stream, const void* caller) {
  const auto found = pending_.find(std::this_thread::get_id());
  if (found == pending_.end() || of_programs_.contains(caller)) return false;
  if (!is_in(found->second.library, caller)) return false;
  found->second.uses.push_back(stream);
  return true;
}

}  // namespace ferry::vgpu
