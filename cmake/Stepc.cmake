# Helpers for the rooms' CMake files.
#
#   stepc_runtime_library(NAME sources... [LINK libs...])   C++20 without LLVM
#   stepc_library(NAME sources... [LINK libs...] [DEPENDS]) C++20 on MLIR, precompiled headers
#   stepc_executable(NAME sources... [LINK libs...])        a tool on MLIR
#   stepc_unit_test(NAME sources... [LINK libs...])         a GoogleTest binary, built into bin/unit

set(STEPC_WARNINGS -Wall -Wextra -Wno-unused-parameter)

# What every MLIR source needs; SYSTEM silences warnings from LLVM's headers.
add_library(stepc_mlir INTERFACE)
target_include_directories(stepc_mlir INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_include_directories(stepc_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(STEPC_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_definitions(stepc_mlir INTERFACE ${STEPC_LLVM_DEFINITIONS})
target_link_libraries(stepc_mlir INTERFACE MLIR LLVM)
target_compile_options(stepc_mlir INTERFACE ${STEPC_WARNINGS} -fno-exceptions)

# One precompiled header, shared: an MLIR source costs seconds without it.
function(stepc_use_pch target)
  if(NOT TARGET stepc_pch)
    file(WRITE ${CMAKE_BINARY_DIR}/pch/stepc_pch.cpp "")
    add_library(stepc_pch OBJECT ${CMAKE_BINARY_DIR}/pch/stepc_pch.cpp)
    target_link_libraries(stepc_pch PRIVATE stepc_mlir)
    target_precompile_headers(stepc_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/pch.h)
    target_compile_options(stepc_pch PRIVATE -Xclang -fno-pch-timestamp)
  endif()
  target_precompile_headers(${target} REUSE_FROM stepc_pch)
  target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)
endfunction()

function(stepc_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/runtime/include)
  target_compile_options(${name} PRIVATE ${STEPC_WARNINGS} -fvisibility=hidden)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} Threads::Threads)
endfunction()

function(stepc_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC stepc_mlir ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  stepc_use_pch(${name})
endfunction()

function(stepc_executable name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  # Through an object library: executables compile as PIE, which the precompiled header is not.
  add_library(${name}_objects OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}_objects PRIVATE stepc_mlir ${ARG_LINK})
  stepc_use_pch(${name}_objects)
  add_executable(${name} $<TARGET_OBJECTS:${name}_objects>)
  target_link_libraries(${name} PRIVATE stepc_mlir ${ARG_LINK})
endfunction()

function(stepc_unit_test name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${STEPC_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/unit)
endfunction()

# stepc_tablegen(NAME file.td [-gen-x out]...): a target that runs mlir-tblgen in the
# current folder, with the repository root as the include root.
function(stepc_tablegen name td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  set(args ${ARGN})
  while(args)
    list(POP_FRONT args out)
    list(POP_FRONT args gen)
    string(REPLACE "|" ";" gen "${gen}")
    mlir_tablegen(${out} ${gen} EXTRA_INCLUDES ${CMAKE_SOURCE_DIR})
  endwhile()
  add_public_tablegen_target(${name})
endfunction()
