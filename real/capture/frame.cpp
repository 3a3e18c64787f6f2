#include "real/capture/frame.h"

#include <utility>

#include "formats/layout.h"

namespace ferry::real::capture {

TypeId Types::id(const Layout& layout) {
  const auto [known, fresh] = ids_.try_emplace(Ref{0, layout}, static_cast<TypeId>(types_.size()));
  if (fresh) types_.push_back(layout);
  return known->second;
}

Layout whole(std::int64_t bytes, DType dtype) {
  const std::int64_t item = itemsize(dtype);
  return bytes % item == 0 ? contiguous_layout(dtype, {bytes / item})
                           : contiguous_layout(DType::kU8, {bytes});
}

bool reaches_end(const Layout& layout, std::int64_t bytes) {
  return hull(layout).end_bytes == bytes;
}

namespace {

bool covers(const Layout& window, const Layout& other) {
  const auto outer = hull(window);
  const auto inner = hull(other);
  return outer.begin_bytes <= inner.begin_bytes && inner.end_bytes <= outer.end_bytes;
}

}  // namespace

Globals::Globals(const Trace& trace, Types& types, std::vector<Global>& globals)
    : trace_(trace), types_(types), globals_(globals) {
  std::vector<Slot> given;
  for (const Given& each : trace.given) {
    given.push_back(add(each.kind, each.name, each.ref, each.requires_grad));
  }
  for (StorageNumber i = 0; i < trace.storages.size(); ++i) {
    const StorageInfo& info = trace.storages[i];
    if (info.birth != Birth::kMet || info.in_backward || info.died) continue;
    const Layout layout = whole(info.bytes, DType::kF32);
    add(GlobalKind::kInput, "constant." + std::to_string(i), {i, layout}, false);
  }
  // A leaf that the step made gets a global without bytes, for its edge and its gradient.
  for (std::size_t i = 0; i < trace.leaves.size(); ++i) {
    if (const auto number = trace.leaves[i].given) {
      leaves_.push_back(given[*number]);
      continue;
    }
    leaves_.push_back(count());
    Global& leaf = globals_.emplace_back();
    leaf.kind = GlobalKind::kInput;
    leaf.name = "leaf." + std::to_string(i);
    leaf.type = types_.id(contiguous_layout(DType::kF32, {0}));
    leaf.requires_grad = true;
  }
}

Slot Globals::add(GlobalKind kind, std::string name, const Ref& ref, bool requires_grad) {
  const Slot slot = count();
  Global global;
  global.kind = kind;
  global.name = std::move(name);
  global.requires_grad = requires_grad;
  Layout layout = ref.layout;
  const std::int64_t bytes = trace_.storages[ref.storage].bytes;
  const auto [base, first] = bases_.try_emplace(ref.storage, slot);
  if (first && !reaches_end(layout, bytes)) layout = whole(bytes, layout.dtype);
  if (!first) {
    global.alias = base->second;
    // An alias has the dtype of its global, so a window of another dtype is expressed in bytes.
    if (layout.dtype != types_.layout(globals_[base->second].type).dtype) {
      layout = types_.layout(globals_[base->second].type);
    }
  }
  global.type = types_.id(layout);
  globals_.push_back(std::move(global));
  slots_.try_emplace({ref.storage, layout}, slot);
  return slot;
}

const Slot* Globals::find(const Ref& ref) const {
  const auto found = slots_.find(ref);
  return found == slots_.end() ? nullptr : &found->second;
}

const Slot* Globals::base(StorageNumber storage) const {
  const auto found = bases_.find(storage);
  return found == bases_.end() ? nullptr : &found->second;
}

void Frame::emit(Action action) {
  flush();
  statements.push_back({std::move(action), 0});
}

void Frame::flush() {
  if (!dying_.empty()) statements.push_back({Free{std::exchange(dying_, {})}, 0});
}

void Frame::own(const Ref& ref, Slot slot) {
  slots_.try_emplace(ref, slot);
  bases_.try_emplace(ref.storage, slot);
  owned_[ref.storage].emplace_back(ref, slot);
}

bool Frame::knows(StorageNumber storage) const { return base(storage) != nullptr; }

const Slot* Frame::base(StorageNumber storage) const {
  const auto here = bases_.find(storage);
  return here == bases_.end() ? globals_.base(storage) : &here->second;
}

void Frame::enter(const std::vector<Ref>& arguments, const std::vector<Slot>& slots) {
  Inside& inside = inside_.emplace_back();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    inside.arguments.emplace_back(arguments[i], slots[i]);
    inside.slots.try_emplace(arguments[i], slots[i]);
  }
}

Slot Frame::slot(const Ref& ref) {
  for (auto inside = inside_.rbegin(); inside != inside_.rend(); ++inside) {
    if (const auto known = inside->slots.find(ref); known != inside->slots.end()) {
      return known->second;
    }
    for (const auto& [argument, of] : inside->arguments) {
      if (argument.storage != ref.storage || !covers(argument.layout, ref.layout)) continue;
      const Slot made = view(ref, of);
      owned_[ref.storage].emplace_back(ref, made);
      return inside->slots[ref] = made;
    }
  }
  if (const auto known = slots_.find(ref); known != slots_.end()) return known->second;
  const auto here = bases_.find(ref.storage);
  if (here == bases_.end()) {
    if (const Slot* const global = globals_.find(ref)) return *global;
  }
  const Slot of = here != bases_.end() ? here->second : *globals_.base(ref.storage);
  const Slot made = view(ref, of);
  own(ref, made);
  return made;
}

Slot Frame::view(const Ref& ref, Slot of) {
  const Slot made = fresh();
  emit(View{made, of, types_.id(ref.layout)});
  return made;
}

Slot Frame::output(const Ref& ref, Op& op) {
  const Slot made = fresh();
  const std::int64_t bytes = trace_.storages[ref.storage].bytes;
  const Layout layout =
      reaches_end(ref.layout, bytes) ? ref.layout : whole(bytes, ref.layout.dtype);
  op.types.push_back(types_.id(layout));
  own({ref.storage, layout}, made);
  return made;
}

void Frame::op(const OpEvent& event) {
  Op op;
  op.name = event.name;
  op.writes = event.writes;
  op.once = event.once;
  op.flops = event.flops;
  op.read_bytes = event.read_bytes;
  op.written_bytes = event.written_bytes;
  op.kernels = event.kernels;
  op.products = event.products;
  op.measured_ns = event.measured_ns;
  for (const Ref& ref : event.in) op.in.push_back(slot(ref));
  for (const Ref& ref : event.out) op.out.push_back(output(ref, op));
  emit(std::move(op));
}

void Frame::meet(const Ref& ref) {
  Op op;
  op.name = kGivenOp;
  op.once = true;
  op.out.push_back(output(ref, op));
  emit(std::move(op));
}

void Frame::death(StorageNumber storage) {
  const auto owned = owned_.find(storage);
  if (owned == owned_.end()) return;
  for (const auto& [ref, slot] : owned->second) {
    dying_.push_back(slot);
    slots_.erase(ref);
    for (Inside& inside : inside_) inside.slots.erase(ref);
  }
  for (Inside& inside : inside_) {
    std::erase_if(inside.arguments,
                  [storage](const auto& argument) { return argument.first.storage == storage; });
  }
  bases_.erase(storage);
  owned_.erase(owned);
}

}  // namespace ferry::real::capture
