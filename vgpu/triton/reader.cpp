#include "vgpu/triton/reader.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "vgpu/triton/cursor.h"
#include "vgpu/triton/locations.h"
#include "vgpu/triton/types.h"

namespace ferry::vgpu::triton {
namespace {

class ModuleReader {
 public:
  ModuleReader(std::string_view text, const std::string& name) : cursor_(text, name) {}

  Module read() {
    for (cursor_.skip_lines(); !cursor_.at_end(); cursor_.skip_lines()) top_level();
    if (is_open_) cursor_.fail("'}'");
    module_.locations = locations_.resolve();
    return std::move(module_);
  }

 private:
  void top_level() {
    if (cursor_.accept("#")) return alias();
    if (cursor_.accept("module")) {
      is_open_ = true;
      while (!cursor_.at("{") && !cursor_.at_line_end()) words(nullptr);
      if (cursor_.accept("{") &&
          !cursor_.at_line_end()) {  // attributes: "module attributes {...} {"
        static_cast<void>(cursor_.inside('{', '}'));
        cursor_.accept("{");
      }
      return;
    }
    if (is_open_ && cursor_.accept("}")) {
      is_open_ = false;
      return end_of_op(nullptr);
    }
    if (cursor_.accept("tt.func")) return function();
    cursor_.fail("a function, a module or a location");
  }

  void alias() {
    const std::string name = "#" + std::string(cursor_.word());
    cursor_.expect("=");
    if (cursor_.accept("loc(")) {
      locations_.define(name, std::string(cursor_.inside('(', ')')));
    } else {
      while (!cursor_.at_line_end()) cursor_.skip();  // a layout
    }
  }

  void function() {
    Function made;
    function_ = &made;
    scopes_.assign(1, {});
    made.is_public = cursor_.accept("public");
    cursor_.accept("private");
    cursor_.expect("@");
    made.name = cursor_.at("\"") ? cursor_.quoted() : std::string(cursor_.word());
    cursor_.expect("(");
    arguments(made.arguments);
    while (!cursor_.at_line_end() && !cursor_.at("{")) {  // results, attributes
      if (cursor_.accept("attributes")) {
        cursor_.expect("{");
        static_cast<void>(cursor_.inside('{', '}'));
      } else {
        words(nullptr);
      }
    }
    if (!cursor_.accept("{")) return;  // a declaration
    made.body = region();
    end_of_op(nullptr);
    module_.functions.push_back(std::move(made));
  }

  // Reads "%a: i32 loc(...), %b: f32)".
  void arguments(std::vector<ValueId>& into) {
    while (!cursor_.accept(")")) {
      const std::string_view name = cursor_.value_name();
      cursor_.expect(":");
      into.push_back(define(name, read_type(cursor_)));
      if (cursor_.accept("{")) static_cast<void>(cursor_.inside('{', '}'));
      if (cursor_.accept("loc(")) static_cast<void>(cursor_.inside('(', ')'));
      cursor_.accept(",");
    }
  }

  ValueId define(std::string_view name, Type type) {
    const auto id = static_cast<ValueId>(function_->types.size());
    function_->types.push_back(std::move(type));
    scopes_.back()[std::string(name)] = id;
    return id;
  }

  ValueId use() {
    const std::string name(cursor_.value_name());
    for (std::size_t i = scopes_.size(); i-- > 0;) {
      if (const auto found = scopes_[i].find(name); found != scopes_[i].end()) {
        return found->second;
      }
    }
    cursor_.fail("a value that is assigned before, not %" + name);
  }

  // Reads up to the brace that closes the region.
  Region region() {
    scopes_.emplace_back();
    Region made = region_in_scope();
    scopes_.pop_back();
    return made;
  }

  Region region_in_scope() {
    Region made;
    made.blocks.emplace_back();
    std::swap(made.blocks.back().arguments, pending_);
    for (cursor_.skip_lines(); !cursor_.accept("}"); cursor_.skip_lines()) {
      if (cursor_.at_end()) cursor_.fail("'}'");
      if (cursor_.accept("^")) {
        if (!made.blocks.back().ops.empty() || made.blocks.size() > 1) made.blocks.emplace_back();
        made.blocks.back().label = std::string(cursor_.word());
        if (cursor_.accept("(")) arguments(made.blocks.back().arguments);
        cursor_.expect(":");
      } else {
        made.blocks.back().ops.push_back(op());
      }
    }
    return made;
  }

  Op op() {
    Op made;
    made.line = cursor_.line();
    std::vector<std::pair<std::string, int>> results;
    while (cursor_.at("%")) {
      std::string name(cursor_.value_name());
      int count = 0;
      if (cursor_.accept(":")) count = std::atoi(std::string(cursor_.word()).c_str());
      results.emplace_back(std::move(name), count);
      cursor_.accept(",");
    }
    if (!results.empty()) cursor_.expect("=");
    made.name = cursor_.at("\"") ? cursor_.quoted() : std::string(cursor_.word());
    if (made.name.empty()) cursor_.fail("an operation");
    std::vector<Type> types = rest(made);
    for (const auto& [name, count] : results) {
      for (int i = 0; i < std::max(count, 1); ++i) {
        const std::size_t number = made.results.size();
        if (number >= types.size()) cursor_.fail("the type of %" + name);
        made.results.push_back(
            define(count == 0 ? name : name + "#" + std::to_string(i), types[number]));
      }
    }
    return made;
  }

  // Reads what follows the name, and returns the types of the results.
  std::vector<Type> rest(Op& op) {
    if (op.name == "scf.for") return loop(op);
    if (op.name == "scf.while") return while_loop(op);
    if (op.name == "scf.if") return branch(op);
    if (op.name == "arith.constant") return constant(op);
    std::vector<Type> before;
    std::optional<std::vector<Type>> after;
    while (!cursor_.at_line_end()) {
      if (cursor_.accept("loc(")) {
        location(op);
      } else if (cursor_.accept("({")) {
        do {
          op.regions.push_back(region());
        } while (cursor_.accept(", {"));
      } else if (cursor_.accept(":")) {
        after = types(op, before);
      } else {
        words(&op);
      }
    }
    if (after) return *after;
    return before.empty() ? before : std::vector<Type>{result_type(op, before)};
  }

  // The type of the result of an operation whose text has the types of its operands alone.
  static Type result_type(const Op& op, const std::vector<Type>& operands) {
    Type type = op.name == "arith.select" ? operands.back() : operands.front();
    if (op.name == "arith.cmpi" || op.name == "arith.cmpf") type.elem = Elem::kI1;
    if (op.name == "tt.load") type.elem = type.pointee;
    return type;
  }

  // Reads types up to the end of the line. Those before an arrow go to `before`.
  std::optional<std::vector<Type>> types(Op& op, std::vector<Type>& before) {
    std::optional<std::vector<Type>> after;
    while (!cursor_.at_line_end()) {
      if (cursor_.accept("loc(")) {
        location(op);
      } else if (cursor_.accept("->") || cursor_.accept("to ")) {
        after = read_types(cursor_);
      } else if (cursor_.at("%")) {
        op.operands.push_back(use());  // tt.print has its operands here
        cursor_.accept(":");
      } else if (!cursor_.accept(",") && !cursor_.accept("*") && !cursor_.accept(":")) {
        for (Type& type : read_types(cursor_)) before.push_back(std::move(type));
      }
    }
    return after;
  }

  // Reads one part of what stands before the types: an operand, a word, an attribute.
  void words(Op* op) {
    Op unused;
    if (op == nullptr) op = &unused;
    if (cursor_.at("%")) {
      op->operands.push_back(use());
    } else if (cursor_.accept("<{")) {
      attributes(*op);
      cursor_.expect(">");
    } else if (cursor_.accept("{")) {
      attributes(*op);
    } else if (cursor_.at("\"")) {
      op->words.push_back(cursor_.quoted());
    } else if (cursor_.accept("@")) {
      op->words.push_back("@" +
                          (cursor_.at("\"") ? cursor_.quoted() : std::string(cursor_.word())));
    } else if (cursor_.accept("^")) {
      op->successors.push_back(successor());
    } else if (const std::string word(cursor_.word()); !word.empty()) {
      if (cursor_.accept("<")) {
        static_cast<void>(cursor_.inside('<', '>'));  // "fastmath<fast>"
      } else if (cursor_.accept("=")) {
        op->attributes[word] = std::string(cursor_.word());
      } else {
        op->words.push_back(word);
      }
    } else {
      cursor_.skip();
    }
  }

  // Reads "axis = 0 : i32, order = array<i32: 1, 0>}".
  void attributes(Op& op) {
    while (!cursor_.accept("}")) {
      cursor_.skip_lines();
      const std::string key(cursor_.at("\"") ? cursor_.quoted() : std::string(cursor_.word()));
      if (key.empty()) cursor_.fail("an attribute");
      std::string value;
      if (cursor_.accept("=")) {
        if (cursor_.at("\"")) {
          value = cursor_.quoted();
        } else if (cursor_.accept("array<")) {
          value = std::string(cursor_.inside('<', '>'));
        } else if (cursor_.accept("[")) {
          value = std::string(cursor_.inside('[', ']'));
        } else if (cursor_.accept("#")) {
          value = "#" + std::string(cursor_.word());
        } else {
          value = std::string(cursor_.word());
        }
        if (cursor_.accept("<")) static_cast<void>(cursor_.inside('<', '>'));
        if (cursor_.accept(":")) static_cast<void>(read_type(cursor_));
      }
      op.attributes[key] = std::move(value);
      cursor_.accept(",");
    }
  }

  // Reads "bb1(%a, %b : i32, f32)".
  Successor successor() {
    Successor made{std::string(cursor_.word()), {}};
    if (!cursor_.accept("(")) return made;
    while (cursor_.at("%")) {
      made.values.push_back(use());
      cursor_.accept(",");
    }
    static_cast<void>(cursor_.inside('(', ')'));
    return made;
  }

  void location(Op& op) { op.location = locations_.add(std::string(cursor_.inside('(', ')'))); }

  void end_of_op(Op* op) {
    Op unused;
    if (op == nullptr) op = &unused;
    while (!cursor_.at_line_end()) cursor_.accept("loc(") ? location(*op) : words(op);
  }

  // Reads "%i = %a to %b step %c iter_args(%x = %y) -> (f32)  : i32 {". The operands are the
  // bounds, the step, and then the first values of what the loop carries.
  std::vector<Type> loop(Op& op) {
    if (cursor_.accept("unsigned ")) op.words.emplace_back("unsigned");
    std::vector<std::string> names{std::string(cursor_.value_name())};
    cursor_.expect("=");
    op.operands.push_back(use());
    cursor_.expect("to ");
    op.operands.push_back(use());
    cursor_.expect("step ");
    op.operands.push_back(use());
    std::vector<Type> results;
    if (cursor_.accept("iter_args(")) {
      carried(op, names);
      cursor_.expect("->");
      results = read_types(cursor_);
    }
    Type counter{.elem = Elem::kI64};
    if (cursor_.accept(":")) counter = read_type(cursor_);
    std::vector<Type> types{counter};
    types.insert(types.end(), results.begin(), results.end());
    cursor_.expect("{");
    op.regions.push_back(region_with(names, types));
    end_of_op(&op);
    return results;
  }

  // Reads "%x = %y, %z = %w)".
  void carried(Op& op, std::vector<std::string>& names) {
    while (!cursor_.accept(")")) {
      names.emplace_back(cursor_.value_name());
      cursor_.expect("=");
      op.operands.push_back(use());
      cursor_.accept(",");
    }
  }

  Region region_with(const std::vector<std::string>& names, const std::vector<Type>& types) {
    scopes_.emplace_back();
    if (names.size() != types.size()) cursor_.fail("a type for each carried value");
    for (std::size_t i = 0; i < names.size(); ++i) pending_.push_back(define(names[i], types[i]));
    Region made = region_in_scope();
    scopes_.pop_back();
    return made;
  }

  // Reads "(%x = %y) : (i32) -> i32 {", the region that decides, "do {", and the body.
  std::vector<Type> while_loop(Op& op) {
    std::vector<std::string> names;
    if (cursor_.accept("(")) carried(op, names);
    cursor_.expect(":");
    const std::vector<Type> types = read_types(cursor_);
    cursor_.expect("->");
    const std::vector<Type> results = read_types(cursor_);
    cursor_.expect("{");
    op.regions.push_back(region_with(names, types));
    cursor_.expect("do {");
    op.regions.push_back(region());
    end_of_op(&op);
    return results;
  }

  std::vector<Type> branch(Op& op) {
    op.operands.push_back(use());
    std::vector<Type> results;
    if (cursor_.accept("->")) results = read_types(cursor_);
    cursor_.expect("{");
    op.regions.push_back(region());
    if (cursor_.accept("else {")) op.regions.push_back(region());
    end_of_op(&op);
    return results;
  }

  // Reads "dense<1.0> : tensor<4xf32>", "7 : i32" or "true". The value is the attribute "value".
  std::vector<Type> constant(Op& op) {
    if (cursor_.accept("{")) attributes(op);
    std::string& value = op.attributes["value"];
    if (cursor_.accept("dense<")) {
      value = std::string(cursor_.inside('<', '>'));
    } else {
      value = std::string(cursor_.word());
    }
    Type type{.elem = Elem::kI1};
    if (cursor_.accept(":")) type = read_type(cursor_);
    end_of_op(&op);
    return {type};
  }

  Cursor cursor_;
  Module module_;
  bool is_open_ = false;  // the module's brace
  LocationTexts locations_;
  Function* function_ = nullptr;
  std::vector<std::map<std::string, ValueId>> scopes_;
  std::vector<ValueId> pending_;  // the arguments of the next region's first block
};

}  // namespace

Module read_module(std::string_view text, const std::string& name) {
  return ModuleReader(text, name).read();
}

}  // namespace ferry::vgpu::triton
