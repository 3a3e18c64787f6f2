// Implements the reading half of formats/program_file.h.
#include <algorithm>
#include <array>
#include <istream>
#include <map>
#include <optional>
#include <string_view>
#include <tuple>

#include "formats/file_kind.h"
#include "formats/json_fields.h"
#include "formats/layout.h"
#include "formats/limits.h"
#include "formats/line_source.h"
#include "formats/program_check.h"
#include "formats/program_file.h"
#include "formats/text_file.h"

namespace ferry {
namespace {

constexpr std::int64_t kSchema = 1;

// Gives equal layouts one number.
class Types {
 public:
  explicit Types(std::vector<Layout>& types) : types_(types) {}

  TypeId intern(Layout layout) {
    const Key key{layout.dtype, layout.shape, layout.strides, layout.offset};
    const auto [at, fresh] = ids_.try_emplace(key, static_cast<TypeId>(types_.size()));
    if (fresh) types_.push_back(std::move(layout));
    return at->second;
  }

 private:
  using Key = std::tuple<DType, std::vector<std::int64_t>, std::vector<std::int64_t>, std::int64_t>;
  std::vector<Layout>& types_;
  std::map<Key, TypeId> ids_;
};

MatrixProduct read_product(const Fields& line, const Json& sizes) {
  const auto in_range = [](const Json& size) {
    return size.is_number_integer() && size >= 1 && size <= limits::kMatrixSize;
  };
  if (!sizes.is_array() || sizes.size() != 4 ||
      !std::all_of(sizes.begin(), sizes.end(), in_range)) {
    line.expected("matmul", "[batch, m, n, k], or a list of two of these, each from 1 to " +
                                std::to_string(limits::kMatrixSize));
  }
  return {sizes[0], sizes[1], sizes[2], sizes[3]};
}

// Reads "matmul":[batch, m, n, k] or a list of two such products, and their common "aligned".
std::vector<MatrixProduct> read_products(Fields& line, std::int64_t flops) {
  const Json* const said = line.find("matmul");
  if (said == nullptr) return {};
  std::vector<MatrixProduct> products;
  const bool several = said->is_array() && !said->empty() && said->front().is_array();
  if (several && said->size() > limits::kMatrixProducts) {
    line.expected("matmul", "at most " + std::to_string(limits::kMatrixProducts) + " products");
  }
  if (several) {
    for (const Json& sizes : *said) products.push_back(read_product(line, sizes));
  } else {
    products.push_back(read_product(line, *said));
  }
  const std::int64_t aligned = line.integer_or("aligned", 16);
  if (aligned != 2 && aligned != 4 && aligned != 8 && aligned != 16) {
    line.expected("aligned", "2, 4, 8 or 16 bytes");
  }
  __extension__ typedef __int128 Wide;
  Wide counted = 0;
  for (MatrixProduct& each : products) {
    counted += Wide{2} * each.batch * each.m * each.n * each.k;
    each.aligned_bytes = aligned;
  }
  if (counted != flops) {
    line.expected("matmul", "products of as many FLOPs as \"flops\" says");
  }
  return products;
}

Action read_op(Fields& line, Types& types) {
  Op op{.name = line.text("op"),
        .in = line.slots("in"),
        .out = {},
        .types = {},
        .writes = line.numbers_or_none("writes"),
        .flops = line.integer_or("flops", 0, limits::kFlops),
        .read_bytes = line.integer_or("read", 0, limits::kBytes),
        .written_bytes = line.integer_or("written", 0, limits::kBytes),
        .measured_ns = line.integer_or("ns", 0, limits::kTimeNs),
        .once = line.flag("once", false),
        .random = line.flag("random", false),
        .kernels = line.has("kernels") ? line.integer("kernels", 1, limits::kKernels) : 1,
        .products = {}};
  op.products = read_products(line, op.flops);
  const Json& outputs = line.at("out");
  if (!outputs.is_array()) line.expected("out", "a list of outputs");
  for (const Json& output : outputs) {
    if (!output.is_object()) line.expected("out", "a list of outputs");
    Fields fields(output, line.file(), line.line());
    op.out.push_back(fields.slot("slot"));
    op.types.push_back(types.intern(fields.layout()));
  }
  return op;
}

Action read_view(Fields& line, Types& types) {
  return View{.out = line.slot("view"), .of = line.slot("of"), .type = types.intern(line.layout())};
}

Action read_node(Fields& line, Types&) {
  return MakeNode{.name = line.text("node"),
                  .id = line.number("id"),
                  .in = line.slots("in"),
                  .out = line.slots("out"),
                  .saved = line.slots_or_none("saved"),
                  .body = line.number("body")};
}

Action read_save(Fields& line, Types&) {
  return Save{.node = line.number("save"), .slots = line.slots("slots")};
}

Action read_free(Fields& line, Types&) { return Free{.slots = line.slots("free")}; }
Action read_enter(Fields& line, Types&) {
  Module module{.name = line.text("enter"), .enter = true};
  if (line.has("arguments")) {
    module.arguments = line.slots("arguments");
    module.called = line.flag("called", true);
  }
  return module;
}
Action read_leave(Fields& line, Types&) {
  return Module{.name = line.text("leave"), .enter = false};
}

Action read_exclude(Fields& line, Types&) {
  const std::string edge = line.text("exclude");
  if (edge != "begin" && edge != "end") line.expected("exclude", "\"begin\" or \"end\"");
  return Exclude{.begin = edge == "begin"};
}

Action read_call(Fields& line, Types&) {
  Call call{.code = line.number("call"), .in = line.slots("in"), .out = line.slots("out")};
  if (!line.has("recompute")) return call;  // without it, the options are not read
  const std::string how = line.text("recompute");
  if (how == "replay") {
    call.recompute = Recompute::kReplay;
    return call;
  }
  if (how != "checkpoint" && how != "reentrant") {
    line.expected("recompute", "\"checkpoint\", \"reentrant\" or \"replay\"");
  }
  call.recompute = how == "checkpoint" ? Recompute::kCheckpoint : Recompute::kReentrant;
  call.early_stop = line.flag("early_stop", true);
  call.preserve_rng = line.flag("preserve_rng", true);
  call.determinism_check = line.flag("determinism_check", true);
  if (line.has("captured")) call.captured = line.number("captured");
  return call;
}

Action read_backward(Fields& line, Types&) {
  return Backward{.roots = line.slots("backward"),
                  .inputs = line.slots_or_none("inputs"),
                  .out = line.slots_or_none("out"),
                  .retain_graph = line.flag("retain_graph", false),
                  .create_graph = line.flag("create_graph", false)};
}

Action read_record_use(Fields& line, Types&) {
  return RecordUse{.slot = line.slot("record_use"),
                   .stream = line.number("stream", limits::kStreams - 1)};
}

Action read_stream(Fields& line, Types&) {
  return SetStream{.stream = line.number("stream", limits::kStreams - 1)};
}

Action read_sync(Fields& line, Types&) {
  const std::vector<std::uint32_t> streams = line.numbers("sync");
  if (streams.size() != 2 || std::max(streams[0], streams[1]) >= limits::kStreams) {
    line.expected("sync", "[from, to], both below " + std::to_string(limits::kStreams));
  }
  return Sync{.from = streams[0], .to = streams[1]};
}

Action read_raise(Fields& line, Types&) { return Raise{.message = line.text("raise")}; }
Action read_move(Fields& line, Types&) { return Move{.global = line.slot("move")}; }

Action read_ambient(Fields& line, Types&) { return Ambient{.state = line.number("ambient")}; }

Action read_when(Fields& line, Types&) {
  const std::string run = line.text("when");
  if (run != "first" && run != "recomputing") {
    line.expected("when", "\"first\" or \"recomputing\"");
  }
  return When{.recomputing = run == "recomputing", .count = line.number("count")};
}

struct StatementKind {
  std::string_view key;
  Action (*read)(Fields&, Types&);
};

// The key that shows the kind of a line. record_use also has the key "stream", so it comes first.
constexpr std::array<StatementKind, 17> kStatements = {{{"op", read_op},
                                                        {"view", read_view},
                                                        {"node", read_node},
                                                        {"save", read_save},
                                                        {"free", read_free},
                                                        {"enter", read_enter},
                                                        {"leave", read_leave},
                                                        {"exclude", read_exclude},
                                                        {"call", read_call},
                                                        {"backward", read_backward},
                                                        {"record_use", read_record_use},
                                                        {"stream", read_stream},
                                                        {"sync", read_sync},
                                                        {"raise", read_raise},
                                                        {"move", read_move},
                                                        {"ambient", read_ambient},
                                                        {"when", read_when}}};

template <class Kind>
Kind read_kind(Fields& line, std::initializer_list<std::pair<std::string_view, Kind>> kinds) {
  const std::string text = line.text("kind");
  std::string names;
  for (const auto& [name, kind] : kinds) {
    if (text == name) return kind;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  line.expected("kind", "one of " + names);
}

Global read_global(Fields& line, Types& types) {
  Global global;
  global.kind = read_kind<GlobalKind>(line, {{"parameter", GlobalKind::kParameter},
                                             {"buffer", GlobalKind::kBuffer},
                                             {"input", GlobalKind::kInput}});
  global.name = line.text("name");
  global.type = types.intern(line.layout());
  global.requires_grad = line.flag("grad", false);
  if (line.has("alias")) global.alias = line.number("alias");
  global.line = static_cast<std::uint32_t>(line.line());
  return global;
}

Code read_code(Fields& line) {
  Code code;
  code.kind = read_kind<CodeKind>(
      line,
      {{"main", CodeKind::kMain}, {"segment", CodeKind::kSegment}, {"body", CodeKind::kBody}});
  if (line.has("name")) code.name = line.text("name");
  code.arguments = line.slots_or_none("arguments");
  code.saved = line.slots_or_none("saved");
  if (line.has("results")) code.results = line.slots("results", /*nulls=*/true);
  code.line = static_cast<std::uint32_t>(line.line());
  return code;
}

ProgramHeader read_header(Fields& line) {
  if (!line.has("ferry") || line.text("ferry") != "program") {
    line.fail("expected the header of a program: {\"ferry\":\"program\",\"schema\":1,\"name\":…}");
  }
  if (line.integer("schema") != kSchema) line.expected("schema", "1");
  ProgramHeader header;
  header.name = line.text("name");
  if (const Json* about = line.find("about")) {
    if (!about->is_object()) line.expected("about", "an object of strings");
    for (const auto& item : about->items()) {
      if (!item.value().is_string()) line.expected("about", "an object of strings");
      header.about.emplace_back(item.key(), item.value().get<std::string>());
    }
  }
  return header;
}

// Reads a program line by line.
class Reader {
 public:
  explicit Reader(const std::string& file) : file_(file) {}

  void take(std::string_view text, std::uint64_t number) {
    const Json json = parse_json(text, file_, number);
    Fields line(json, file_, number);
    if (!started_) {
      ProgramHeader header = read_header(line);
      program_.name = std::move(header.name);
      program_.about = std::move(header.about);
      started_ = true;
    } else if (line.has("global")) {
      if (!program_.codes.empty()) line.fail("expected the globals before the first code");
      expect_number(line, "global", program_.globals.size());
      if (program_.globals.size() == limits::kSlots) line.fail("expected fewer than 2^22 globals");
      program_.globals.push_back(read_global(line, types_));
    } else if (line.has("code")) {
      expect_number(line, "code", program_.codes.size());
      program_.codes.push_back(read_code(line));
      if (program_.codes.back().kind == CodeKind::kMain) take_main(line);
    } else {
      take_statement(line, number);
    }
  }

  Program result(std::uint64_t lines) {
    if (!started_) throw InputError(file_, 1, "expected the header of a program, found nothing");
    if (!has_main_) throw InputError(file_, lines, "expected a code of kind main before the end");
    return std::move(program_);
  }

 private:
  static void expect_number(Fields& line, std::string_view key, std::size_t number) {
    if (line.integer(key) != static_cast<std::int64_t>(number)) {
      line.expected(key, "the next number, " + std::to_string(number));
    }
  }

  void take_main(Fields& line) {
    if (has_main_) line.expected("kind", "segment or body: there is a main already");
    has_main_ = true;
    program_.main = static_cast<CodeId>(program_.codes.size() - 1);
  }

  void take_statement(Fields& line, std::uint64_t number) {
    if (program_.codes.empty()) line.fail("expected a global or a code before the first statement");
    for (const StatementKind& kind : kStatements) {
      if (!line.has(kind.key)) continue;
      program_.codes.back().statements.push_back(
          {.action = kind.read(line, types_), .line = static_cast<std::uint32_t>(number)});
      return;
    }
    line.fail("expected a global, a code or a statement");
  }

  const std::string& file_;
  Program program_;
  Types types_{program_.types};
  bool started_ = false;
  bool has_main_ = false;
};

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

}  // namespace

Program read_program(std::istream& in, const std::string& file) {
  Reader reader(file);
  LineSource lines(in, file);
  std::string_view text;
  while (lines.next(text)) {
    if (!is_blank(text)) reader.take(text, lines.number());
  }
  return reader.result(std::max<std::uint64_t>(lines.number(), 1));
}

Program read_program(const std::filesystem::path& path) {
  refuse_other_kinds(path, {FileKind::kProgram});
  std::ifstream in = open_file(path);
  return read_program(in, path.string());
}

Program load_program(const std::filesystem::path& path) {
  Program program = read_program(path);
  check_program(program, path.string());
  return program;
}

ProgramHeader read_program_header(const std::filesystem::path& path) {
  refuse_other_kinds(path, {FileKind::kProgram});
  std::ifstream in = open_file(path);
  const std::string file = path.string();
  LineSource lines(in, file);
  std::string_view text;
  while (lines.next(text) && is_blank(text)) {
  }
  const std::uint64_t number = std::max<std::uint64_t>(lines.number(), 1);
  const Json json = parse_json(text, file, number);
  Fields line(json, file, number);
  ProgramHeader header = read_header(line);
  return header;
}

}  // namespace ferry
