"""A tree with what looks wrong and is not: nothing may be found in it."""

from bad_case import Case

ROOMS = """# The rooms.

shared/a : ferry :
formats : ferry : shared/a
sim/a : ferry::sim : formats shared/a
verify/include : ferry::sim : sim/a
verify/b : ferry::sim : verify/include
real/include : ferry : formats
real/a : ferry::real : real/include
tests/shared/a : * : shared/a tests/support
tests/shared/a/shapes : * : shared/a
tests/real/gpu : * :
real/cuda : ferry::real :
tests/support : * : sim/a
"""

TRICKY = '''// A drawing, H100: a card. Types (BF16) and (FP8), a card (L4); the lists (i), (B) and f(A1, A2).
//
//   a ──● made            ┌── used        record e
//       └── copied ──┐    │                  │ wait
//   b                ▼ ───● done  ◀──────────┘
//
//            one       two       three
//   here     1         2         3
//   there    4         5
//            6         7         8         9
//   and      at        last      ten
//
// See shared/a/{a,shapes}.h, shared/*/a.h, shared/a/NAME.h, formats/ and `shared/a/a`, built in
// build/shared/none. BF16: a type. https://example.org/shared/none and "other/shared/none".
// BF16: a type, again.
// https://example.org/an/address/that/is/longer/than/a/line/may/be/and/cannot/be/broken/anywhere/at/all
#pragma once

#include <cstdint>
#include <vector>

#define FERRY_BEGIN {
#define FERRY_LINE(x) \\
  if (x) {            \\
  // }

namespace ferry {

struct A;  // what shared/a/a.h defines
enum class Kind : std::uint8_t { kA, kB };

inline constexpr char kText[] = R"x(} // )" {{
  a line of a table that is to come out as it is, and that has more columns than a line of code may )x";
inline constexpr char kBrace = '{', kQuote = '"', kEscaped = '\\'';
inline constexpr int kMillion = 1'000'000, kHex = 0xff'ff;
inline const char* const kQuoted = "\\"} // not a comment /*";  // "{

template <class T, class U = std::vector<T>>
concept Shape = requires(T t) {
  {t.size()};
};

/* }
   { */
template <Shape T>
class Shapes final : public std::vector<T> {
 public:
  struct A {};  // in a class, it is another
  Shapes() : std::vector<T>{}, kinds_{Kind::kA}, make_([] { return Kind::kA; }) {}
  explicit Shapes(int n = int{}) : kinds_(n) {}
  bool operator<(const Shapes& other) const { return kinds_ < other.kinds_; }
  auto begin() const -> decltype(auto) { return kinds_.begin(); }

 private:
  std::vector<Kind> kinds_{};
  Kind (*make_)() = [] { return Kind::kB; };
};

inline const auto kFirst = [](int x) { return x; };

}  // namespace ferry

template <>
struct std::hash<ferry::Kind> {};
'''

# As many lines as a screen has.
SEVENTY = "void f() {\n" + "  g();\n" * 68 + "}\n"

FORMATS_A = f"""#include "shared/a/a.h"

#include <nlohmann/json.hpp>

namespace ferry {{

{SEVENTY}
}}  // namespace ferry
"""

# Not a function: it lists what it asks for.
LONG_CONCEPT = """namespace ferry {

template <class T>
concept Long = requires(T t) {
  LINES};

}  // namespace ferry
""".replace("LINES", "t.size();\n  " * 69 + "t.size();\n")

SHARED_A = """#include <vector>

namespace ferry {
struct A {};
}  // namespace ferry
"""

MAIN = """#include <sys/mman.h>

#include "formats/a.h"
#include "shared/a/a.h"

int main() {}
"""

# It defines what users call.
REAL_A = """#include "ferry/a.h"

#include <torch/torch.h>

namespace ferry::a_impl {}
namespace ferry::real {}
"""

# A template's instance stands in the template's namespace.
INSTANCES = """#include "shared/a/a.h"

namespace ferry {
extern template class Shapes<A>;
}  // namespace ferry
"""

# A page: what is wide in it is a table, an example or a link's target.
PAGE = f"""# A page: `a.h`, and [more](../README.md)

[a](#a-page-ah-and-more), [on
two lines](../README.md), [a heading, twice](#a-1), {"x" * 40} [b](../{"docs/../" * 8}docs/page.md)
`[no link](none.md)`, [&](int i).

## A

| {"a | " * 40}
    not an example: no line is empty before it

    {"an example " * 20}
    {"of two lines " * 20}

    [no link](none.md) {"the same example " * 20}

```sh
{"a fence " * 20} [no link](none.md)
```

## A
"""

FILES = {
    "docs/page.md": PAGE,
    "docs/reference/page.md": "a b c d e f\n" * 400,
    "bench/results/page.md": "a b c d e f\n" * 400,
    "tests/shared/a/RESULTS.md": "a b c d e f\n" * 400,
    "cmake/rooms.txt": ROOMS,
    "cmake/torch_pch.cpp": "#include <torch/torch.h>\n",
    "README.md": "[a](shared/a/a.h), [b](https://a.b/c), [c](formats/#top); `formats/` (A15).\n",
    "dev": f"#!/usr/bin/env bash\n: {'é' * 98}\n",
    "data.jsonl": "{}\n" * 700,
    "tool.py": f'"""A table: shared/a."""\n\nX = """\n{"a b " * 40}\n"""\n',
    "sim/a/instances.h": INSTANCES,
    "shared/a/a.h": SHARED_A,
    "shared/a/shapes.h": TRICKY,
    "shared/a/long_concept.h": LONG_CONCEPT,
    "formats/a.cpp": FORMATS_A,
    "formats/a.h": "namespace ferry::deep {\nstruct A {};\n}  // namespace ferry::deep\n",
    "sim/a/main.cpp": MAIN,
    "sim/a/hash.h": "namespace ferry::sim::detail {}\nnamespace nlohmann {}\n",
    "real/include/ferry/a.h": '#include "formats/a.h"\n\nnamespace ferry {}\n',
    "verify/include/ferry/b.h": '#include "sim/a/hash.h"\n\nnamespace ferry::sim {}\n',
    "verify/b/b.cpp": '#include "ferry/b.h"\n\nnamespace ferry::sim {}\n',
    "real/a/a.cpp": REAL_A,
    "python/ferry/lower.py": "# As ferry/a.h and ferry/lower.py say.\n",
    "real/a/b.cpp": "#include <ferry/a.h>\n\nnamespace ferry::real {}\n",
    "real/cuda/device.h": "namespace ferry::real {}\n",
    "tests/shared/a/a_test.cpp": '#include "shared/a/a.h"\n',
    "tests/shared/a/shapes_sorted_prop.cpp": "",
    "tests/shared/a/shapes/moved_test.cpp": '#include "shared/a/shapes.h"\n',
    "tests/shared/a/double_test.cpp": '#include "tests/support/double.h"\n',
    "tests/support/double.h": '#include "sim/a/hash.h"\n',
    "tests/real/gpu/device_conformance_test.cpp": "",
}

CASE = Case("the good tree", FILES, [], True)
