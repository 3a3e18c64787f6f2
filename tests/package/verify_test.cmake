# Installs the build, then builds and runs a user's scheduler against what was installed.
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
                  ERROR_VARIABLE output)
  set(output "${output}" PARENT_SCOPE)
  set(status ${status} PARENT_SCOPE)
endfunction()
function(must)
  run(${ARGN})
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()
function(expect wanted_status wanted)
  if(NOT status EQUAL wanted_status OR NOT output MATCHES "${wanted}")
    message(FATAL_ERROR
            "expected status ${wanted_status} and `${wanted}`; got ${status}:\n${output}")
  endif()
endfunction()

must(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
set(settings -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${WORK}/prefix
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE} -DCMAKE_CXX_FLAGS=${FLAGS})

# Away from the tree: what is found there only by accident is not found.
file(COPY ${SOURCE}/examples/scheduler DESTINATION ${WORK})
must(${CMAKE_COMMAND} -S ${WORK}/scheduler -B ${WORK}/build ${settings})
must(${CMAKE_COMMAND} --build ${WORK}/build)
set(scheduler ${WORK}/build/scheduler)

# What a program links shows in its symbols: a user's hunt nothing that knows Ferry's offloader,
# `ferry` no RapidCheck, and `ferry-verify` both.
function(expect_symbols program name there)
  must(nm -C ${program})
  string(FIND "${output}" "${name}" at)
  if((there AND at EQUAL -1) OR (NOT there AND NOT at EQUAL -1))
    message(FATAL_ERROR "${program}: `${name}` in it should be ${there}")
  endif()
endfunction()
expect_symbols(${scheduler} "OffloadCore<" FALSE)
expect_symbols(${WORK}/prefix/bin/ferry "rc::" FALSE)
expect_symbols(${WORK}/prefix/bin/ferry-verify "OffloadCore<" TRUE)
expect_symbols(${WORK}/prefix/bin/ferry-verify "rc::" TRUE)

# The planted fault is found, and told so that its line replays it.
run(${scheduler} forgetful --seed 0)
expect(1 "`reload after offload` missing: .offload. .*program  1 layer: ")
if(NOT output MATCHES "again +[^ ]+ --replay '([^']+)'")
  message(FATAL_ERROR "no line to replay:\n${output}")
endif()
run(${scheduler} --replay ${CMAKE_MATCH_1})
expect(1 "`reload after offload` missing")
string(REGEX REPLACE "^forgetful" "mended" line ${CMAKE_MATCH_1})
run(${scheduler} --replay ${line})
expect(0 "no oracle objects")

# The page's example as well.
file(READ ${SOURCE}/docs/guides/your-scheduler.md page)
string(REGEX MATCH "--replay '([^']+)'" found "${page}")
run(${scheduler} --replay ${CMAKE_MATCH_1})
expect(1 "`reload after offload` missing: .offload. #29 .*16 device operations, 90 in all")

# It is kept as a file, which the program `ferry` judges.
run(${scheduler} forgetful --seed 0 --hazard ${WORK}/forgetful.jsonl)
run(${WORK}/prefix/bin/ferry check ${WORK}/forgetful.jsonl)
expect(1 "read after write .*reload on stream .h2d. .* not ordered after offload on stream .d2h.")
run(${scheduler} forgetful --seed 0 --hazard ${WORK}/none/forgetful.jsonl)
expect(7 "No such file or directory")

# Without it nothing is, in every way as well.
run(${scheduler} mended --seed 0 --programs 2000)
expect(0 "mended: no oracle objects: 2000 programs")
run(${scheduler} mended --seed 0 --programs 30 --small --every-way 1)
expect(0 "mended: no oracle objects: 30 programs, [1-9][0-9][0-9]+ runs")

# What is typed wrongly is named.
run(${scheduler} mende)
expect(2 "there is no 'mende', expected one of: forgetful, mended: did you mean 'mended'\\?")
run(${scheduler} --without side-stream)
expect(2 "there is no 'side-stream'.*did you mean 'side-streams'\\?")
run(${scheduler} --programs 0)
expect(2 "'0': expected a whole number from 1 to")

# ferry_user(NAME TEXT): configures and builds a program of one source.
function(ferry_user name component text)
  file(WRITE ${WORK}/${name}/main.cpp "${text}")
  file(WRITE ${WORK}/${name}/CMakeLists.txt "cmake_minimum_required(VERSION 3.25)
project(${name} LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
find_package(ferry REQUIRED COMPONENTS ${component})
add_executable(${name} main.cpp)
target_link_libraries(${name} PRIVATE ferry::verify)
")
  run(${CMAKE_COMMAND} -S ${WORK}/${name} -B ${WORK}/${name}/build ${settings})
  if(status EQUAL 0)
    run(${CMAKE_COMMAND} --build ${WORK}/${name}/build)
  endif()
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  set(status ${status} PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

# The compiler says in words what a scheduler lacks.
set(begin "#include <ferry/verify.h>\n#include <memory>
template <class D, class A> struct S { using Tensor = typename D::Tensor;\n")
set(end "\n};
int main(int c, char** v) {
  return ferry::verify::hunt_main(c, v, {ferry::verify::hunted<S>(\"s\")});
}\n")
set(pack "std::unique_ptr<ferry::Saved<Tensor>> pack(const Tensor&) { return nullptr; }")
ferry_user(no_pack verify "${begin} S(D, A) {} ${end}")
expect(1 "ferry: a scheduler has a public `std::unique_ptr<ferry::Saved<Tensor>> pack")
ferry_user(no_constructor verify "${begin} ${pack} ${end}")
expect(1 "ferry: a scheduler is made of a device and autograd, in this order")
ferry_user(begins_wrongly verify
           "${begin} S(D, A) {} ${pack} void begin_forward(int) {} ${end}")
expect(1 "ferry: a scheduler's `begin_forward` is public and takes nothing")

# The generators of RapidCheck.
ferry_user(generates verify "#include <ferry/verify.h>
#include <ferry/verify_rapidcheck.h>
#include <memory>
template <class D, class A> struct S {
  using Tensor = typename D::Tensor;
  S(D, A) {}
  ${pack}
};
int main() {
  const auto mine = ferry::verify::hunted<S>(\"mine\");
  return rc::check(\"no oracle objects\", [&mine] {
    RC_ASSERT(!ferry::verify::judge(mine, *ferry::verify::gen::step(mine)));
  }) ? 0 : 1;
}
")
run(${WORK}/generates/build/generates)
expect(0 "OK, passed 100 tests")

# A hunt in which nothing happened is told, too.
ferry_user(keeps verify "${begin} S(D, A) {} ${pack} ${end}")
run(${WORK}/keeps/build/keeps --seed 4 --programs 10)
expect(0 "it took no step: every tensor was left to autograd")

# A crash is told with its program.
ferry_user(crashes verify "${begin} S(D, A) {} ${pack} void finish() { std::abort(); } ${end}")
expect(0 "")
run(${WORK}/crashes/build/crashes --seed 4 --jobs 1)
if(status EQUAL 1 OR NOT output MATCHES
   "crashed in program 0; .*again    [^ ]*crashes s --seed 4 --only 0")
  message(FATAL_ERROR "a crash, status ${status}:\n${output}")
endif()

# What this build does not have is named.
if(NOT TORCH)
  ferry_user(no_torch real "")
  expect(1 "no component `real`: this Ferry was built without LibTorch")
endif()
