#include "real/python/guards.h"

#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "real/autograd/late_writes.h"
#include "real/autograd/torch_autograd.h"
#include "real/python/errors.h"
#include "real/python/fork.h"
#include "real/python/gil.h"
#include "real/python/pair.h"
#include "real/python/parameters.h"

namespace ferry::real::python {
namespace {

// A guard that is open on this thread.
struct Open {
  const void* owner;
  PyObject* pair;
  OpTraceScope* ops;
  PlannedSpans::Forward* spans;
};

// The open guards of the calling thread, in order of opening. Guards that are still open when the
// thread ends are left alone.
struct OpenHere {
  std::vector<Open> guards;
  bool late_writes = false;  // we included this dispatch key ourselves

  static OpenHere& now() {
    thread_local OpenHere here;
    return here;
  }
  void add(Open guard) {
    guards.push_back(guard);
    if (guards.size() > 1 || c10::impl::tls_is_dispatch_key_included(kLateWrites)) return;
    c10::impl::tls_set_dispatch_key_included(kLateWrites, true);
    late_writes = true;
  }
  Open take(const void* owner) {
    const auto last = std::find_if(guards.rbegin(), guards.rend(),
                                   [owner](const Open& guard) { return guard.owner == owner; });
    if (last == guards.rend()) {
      throw std::runtime_error(
          "torch_ferry: this guard is not open on the thread that closes it; close it once, where "
          "it was opened");
    }
    const Open guard = *last;
    guards.erase(std::next(last).base());
    if (guards.empty() && std::exchange(late_writes, false)) {
      c10::impl::tls_set_dispatch_key_included(kLateWrites, false);
    }
    return guard;
  }
};

void open_guard(const void* owner, std::shared_ptr<Hooks<at::Tensor>> hooks,
                std::shared_ptr<const CheckpointContext> context, const OffloadSession* session) {
  install_late_writes();
  HookStack<at::Tensor> stack = TorchAutograd().hooks();
  if (context) stack.checkpoint = std::move(context);
  const auto push = [&stack](std::shared_ptr<Hooks<at::Tensor>> on_top) {
    stack.top = std::make_shared<const HookFrame<at::Tensor>>(
        HookFrame<at::Tensor>{std::move(on_top), std::move(stack.top)});
  };
  push(std::move(hooks));
  std::unique_ptr<PlannedSpans::Forward> spans =
      session ? session->spans(stack, &rethrow_to_python) : nullptr;
  if (spans) push(spans->hooks());
  PyObject* const pair = push_pair(std::move(stack));
  const bool traced = session && session->trace();
  OpenHere::now().add(
      {owner, pair, traced ? new OpTraceScope(session->trace()) : nullptr, spans.release()});
}

// Returns what was wrong, or null. Sets `failed` if the forward ended wrong; it may be set before.
const char* close_guard(const void* owner, bool& failed) {
  const Open guard = OpenHere::now().take(owner);
  delete guard.ops;
  if (guard.spans) {
    const GilReleased released;
    failed = failed || !guard.spans->end();
    delete guard.spans;
  }
  switch (remove_pair(guard.pair)) {
    case Removed::kFromTop:
      return nullptr;
    case Removed::kFromBelow:
      return "torch_ferry: a guard is closed while saved-tensor hooks that were opened after it "
             "are still open; close guards in the reverse order of their opening";
    case Removed::kWasGone:
      break;
  }
  return "torch_ferry: the hooks of a guard were closed by somebody else before it; close guards "
         "in the reverse order of their opening";
}

void throw_if(const char* wrong) {
  if (wrong) throw std::runtime_error(wrong);
}

struct Known {
  std::mutex mutex;
  std::vector<std::weak_ptr<OffloadSession>> sessions;
};
Known& known() {
  static auto* const known = new Known;
  return *known;
}

}  // namespace

PythonOffload::PythonOffload(const OffloadOptions& options, const Plan* plan, bool parameters)
    : session_(plan ? std::make_shared<OffloadSession>(*plan, options)
                    : std::make_shared<OffloadSession>(options)),
      hooks_(parameters ? std::make_shared<ExemptParameters>(session_) : session_->hooks()),
      generation_(process_generation()) {
  keep_over_fork(session_);
  const std::lock_guard lock(known().mutex);
  std::erase_if(known().sessions, [](const auto& other) { return other.expired(); });
  known().sessions.push_back(session_);
}

PythonOffload::~PythonOffload() {
  const GilReleased released;  // the last reference ends the workers
  hooks_.reset();
  session_.reset();
}

OffloadSession& PythonOffload::session() const {
  if (generation_ != process_generation()) {
    throw std::runtime_error(
        "torch_ferry: this Offload was made before a fork, by the parent process; make another");
  }
  return *session_;
}

void PythonOffload::open() {
  OffloadSession& mine = session();
  CheckpointContext around = checkpoint_context(TorchAutograd().hooks());
  std::shared_ptr<const CheckpointContext> context;
  {
    const GilReleased released;
    mine.begin_run();
    context = mine.context(std::move(around));
  }
  open_guard(this, hooks_, std::move(context), &mine);
}

void PythonOffload::close(bool failed) {
  const char* const wrong = close_guard(this, failed);
  {
    const GilReleased released;
    OffloadSession& mine = session();
    failed ? mine.abandon_run() : mine.end_run();
  }
  throw_if(wrong);
  const GilReleased released;
  session().require_whole();
}

void PythonNoOffload::open() { open_guard(this, nullptr, nullptr, nullptr); }
void PythonNoOffload::close() {
  bool failed = false;
  throw_if(close_guard(this, failed));
}

void finish_offloads() {
  const GilReleased released;
  std::vector<std::weak_ptr<OffloadSession>> sessions;
  {
    const std::lock_guard lock(known().mutex);
    sessions = known().sessions;
  }
  for (const auto& weak : sessions) {
    const auto session = weak.lock();
    if (session) session->flush();
  }
}

}  // namespace ferry::real::python
