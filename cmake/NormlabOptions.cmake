# Compiler settings shared by every target, and the helpers that declare targets.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(NORMLAB_CCACHE ccache)
if(NORMLAB_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${NORMLAB_CCACHE})
endif()
find_program(NORMLAB_MOLD mold)
if(NORMLAB_MOLD)
  # Before 2.4 it may begin what is made read-only (RELRO) on a page that is not mapped, and then the
  # program does not start: "cannot apply additional memory protection" (its issue 1151). Not so when
  # code has pages of its own.
  add_link_options(-fuse-ld=mold -Wl,-z,separate-code)
endif()

# NORMLAB_SANITIZE: the first fault ends the program. Debian's gRPC, protobuf, Abseil and SQLite are
# not instrumented; what that hides, and what it makes look like a fault, is in docs/adr/0019*.
if(NORMLAB_SANITIZE)
  add_compile_options(-fsanitize=${NORMLAB_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${NORMLAB_SANITIZE})
  if(NORMLAB_SANITIZE MATCHES "undefined" AND NOT NORMLAB_FUZZ)
    # AddressSanitizer reports what is read or written at null as well, and this is a test at each
    # arrow, which takes long to compile.
    add_compile_options(-fno-sanitize=null)
  endif()
endif()
# GCC 12's ThreadSanitizer does not find its way in an address space that is laid out more randomly.
set(NORMLAB_TEST_LAUNCHER)
if(NORMLAB_SANITIZE MATCHES "thread" AND EXISTS /proc/sys/vm/mmap_rnd_bits)
  file(READ /proc/sys/vm/mmap_rnd_bits _random_bits)
  if(_random_bits GREATER 28)
    set(NORMLAB_TEST_LAUNCHER setarch -R)
  endif()
endif()
if(NORMLAB_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "NORMLAB_FUZZ needs clang: bash deploy/fuzz.sh finds one")
  endif()
  # Clang warns of what libstdc++ itself calls.
  add_compile_options(-fsanitize=fuzzer-no-link -Wno-deprecated-declarations)
endif()

add_library(normlab_warnings INTERFACE)
target_compile_options(normlab_warnings INTERFACE -Wall -Wextra -Werror)
if(NORMLAB_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC's documentation names the first as false with sanitizers. The second says that fences are not
  # understood: Asio's, which stand beside its locks.
  target_compile_options(normlab_warnings INTERFACE -Wno-maybe-uninitialized
    $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
endif()

# normlab_library(NAME SOURCES... [PUBLIC libs...] [PRIVATE libs...])
# One static library a folder; its own warnings are errors. Private links keep includes one-way.
function(normlab_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${arg_PUBLIC} PRIVATE normlab_warnings ${arg_PRIVATE})
endfunction()

# normlab_sanitized(TESTS...): what the sanitizers are told when these run. Nothing without them.
function(normlab_sanitized)
  if(NORMLAB_SANITIZE)
    set(suppressions ${CMAKE_SOURCE_DIR}/tests/sanitizers)
    set_tests_properties(${ARGN} PROPERTIES ENVIRONMENT
      "UBSAN_OPTIONS=print_stacktrace=1;TSAN_OPTIONS=suppressions=${suppressions}/tsan.txt")
  endif()
endfunction()

# normlab_files_apart(TARGETS...): builds with sanitizers compile some files of a target as one (unity
# builds), since most of the time goes into headers. These targets have files that say the same name
# for different things.
function(normlab_files_apart)
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD OFF)
endfunction()

# normlab_compile_fast(TARGET): most of a build with sanitizers is tests, which run once. Without
# UBSan GCC takes 0.7 of its time for them. What they test keeps all sanitizers.
function(normlab_compile_fast name)
  if(NORMLAB_SANITIZE MATCHES "undefined" AND NOT NORMLAB_FUZZ)
    target_compile_options(${name} PRIVATE -fno-sanitize=undefined,float-cast-overflow)
  endif()
endfunction()

# normlab_test(NAME SOURCES... [LIBS libs...] [LABELS labels...]): a GoogleTest binary, one ctest
# entry for each of its cases; with a sanitizer, which makes starting slow, one for all of them.
function(normlab_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBS;LABELS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  normlab_compile_fast(${name})
  target_link_libraries(${name} PRIVATE normlab_warnings ${arg_LIBS} GTest::gmock GTest::gtest_main)
  include(GoogleTest)
  if(NOT arg_LABELS)
    set(arg_LABELS unit)  # an empty value would take the next word for itself
  endif()
  if(NORMLAB_SANITIZE)
    add_test(NAME ${name} COMMAND ${NORMLAB_TEST_LAUNCHER} $<TARGET_FILE:${name}>)
    set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS "${arg_LABELS}")
    normlab_sanitized(${name})
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS "${arg_LABELS}")
endfunction()
