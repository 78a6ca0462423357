# Helpers for the rooms' CMake files.
#
#   stepc_runtime_library(NAME sources... [LINK libs...] [FLAGS]) C++20 without LLVM
#   stepc_library(NAME sources... [LINK libs...] [DEPENDS])       C++20 on MLIR
#   stepc_executable(NAME sources... [LINK libs...])              a tool on MLIR
#   stepc_unit_test(NAME [MLIR] [OPTIMIZED] sources... [LINK] [FLAGS])  a GoogleTest binary, built into bin/unit

set(STEPC_WARNINGS -Wall -Wextra -Wno-unused-parameter -Wno-missing-field-initializers)

# What every MLIR source needs; SYSTEM silences warnings from LLVM's headers.
add_library(stepc_mlir INTERFACE)
target_include_directories(stepc_mlir INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_include_directories(stepc_mlir SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
separate_arguments(STEPC_LLVM_DEFINITIONS NATIVE_COMMAND ${LLVM_DEFINITIONS})
target_compile_definitions(stepc_mlir INTERFACE ${STEPC_LLVM_DEFINITIONS})
target_compile_options(stepc_mlir INTERFACE ${STEPC_WARNINGS} -fno-exceptions)

# Tests link LLVM's shared libraries. Tools have the property STEPC_STATIC: they link archives, and the linker takes from
# them what is reached. So they run where LLVM is not installed, and start in half of the time, because the shared libraries
# have 350,000 places to fill in at each start. LLVM's linker is there as archives only.
function(stepc_archives name)
  add_library(${name} INTERFACE)
  foreach(target ${ARGN})
    if(TARGET ${target})
      get_target_property(file ${target} LOCATION)
      # Some targets are tools or shared libraries, and some archives are another package's.
      if(file MATCHES "\\.a$" AND EXISTS ${file})
        target_link_libraries(${name} INTERFACE ${file})
      endif()
    endif()
  endforeach()
endfunction()
get_property(STEPC_MLIR_LIBRARIES GLOBAL PROPERTY MLIR_ALL_LIBS)
stepc_archives(stepc_llvm_archives ${STEPC_MLIR_LIBRARIES} ${LLVM_AVAILABLE_LIBS})
stepc_archives(stepc_lld lldELF lldCommon)
# LLVM compresses sections with them. Debian's development packages have both.
find_library(STEPC_ZLIB_ARCHIVE libz.a REQUIRED)
find_library(STEPC_ZSTD_ARCHIVE libzstd.a REQUIRED)
foreach(archives stepc_llvm_archives stepc_lld)
  target_link_libraries(${archives} INTERFACE ${STEPC_ZLIB_ARCHIVE} ${STEPC_ZSTD_ARCHIVE})
endforeach()
set(STEPC_IS_STATIC $<BOOL:$<TARGET_PROPERTY:STEPC_STATIC>>)
add_library(stepc_llvm INTERFACE)
target_link_libraries(stepc_llvm INTERFACE $<IF:${STEPC_IS_STATIC},stepc_llvm_archives,LLVM>)
target_link_libraries(stepc_mlir INTERFACE $<$<NOT:${STEPC_IS_STATIC}>:MLIR> stepc_llvm)

# stepc_use_pch(TARGET HEADER [FLAGS flags...] [LINK libs...] [DEPENDS targets...]): one precompiled header for all
# targets that name it. A source of MLIR costs 10 s without one, a unit test 3 s. What it is made with must be what
# its targets are made with, so each set of flags has a header of its own.
function(stepc_use_pch target header)
  cmake_parse_arguments(ARG "" "" "FLAGS;LINK;DEPENDS" ${ARGN})
  string(MD5 variant "${ARG_FLAGS}")
  string(SUBSTRING ${variant} 0 4 variant)
  set(holder stepc_pch_${header}_${variant})
  if(NOT TARGET ${holder})
    # Written once, because everything is compiled again after it.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch/${holder}.cpp CONTENT "")
    add_library(${holder} OBJECT ${CMAKE_BINARY_DIR}/pch/${holder}.cpp)
    target_include_directories(${holder} PRIVATE ${CMAKE_SOURCE_DIR})
    target_link_libraries(${holder} PRIVATE ${ARG_LINK})
    target_precompile_headers(${holder} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/${header}.h)
    target_compile_options(${holder} PRIVATE ${ARG_FLAGS} -Xclang -fno-pch-timestamp)
    if(ARG_DEPENDS)
      add_dependencies(${holder} ${ARG_DEPENDS})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${holder})
  target_compile_options(${target} PRIVATE -Xclang -fno-pch-timestamp)
endfunction()

# The precompiled header of a room on MLIR: MLIR's own for the dialects, with the dialects' for what lies above them, and with
# those of LLVM, GPUs and loops for the rooms that make kernels. A room waits only for what it uses.
function(stepc_use_mlir_pch target)
  set(dialects stepc_optim_inc stepc_comm_inc stepc_exec_inc)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${CMAKE_SOURCE_DIR} OUTPUT_VARIABLE room)
  if(room MATCHES "^dialects/")
    stepc_use_pch(${target} mlir_headers LINK stepc_mlir)
  elseif(room MATCHES "^(passes/(kernels|schedule)|test/unit/products)(/|$)")
    stepc_use_pch(${target} kernel_headers LINK stepc_mlir DEPENDS ${dialects})
  else()
    stepc_use_pch(${target} dialect_headers LINK stepc_mlir DEPENDS ${dialects})
  endif()
endfunction()

function(stepc_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LINK;FLAGS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE ${ARG_FLAGS})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/runtime/include)
  target_compile_options(${name} PRIVATE ${STEPC_WARNINGS} -fvisibility=hidden)
  target_link_libraries(${name} PUBLIC ${ARG_LINK} Threads::Threads)
  stepc_use_pch(${name} std_headers FLAGS ${ARG_FLAGS})
endfunction()

function(stepc_library name)
  cmake_parse_arguments(ARG "" "" "LINK;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC stepc_mlir ${ARG_LINK})
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  stepc_use_mlir_pch(${name})
endfunction()

function(stepc_executable name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  # Through an object library: executables compile as PIE, which the precompiled header is not.
  add_library(${name}_objects OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name}_objects PRIVATE stepc_mlir ${ARG_LINK})
  stepc_use_mlir_pch(${name}_objects)
  add_executable(${name} $<TARGET_OBJECTS:${name}_objects>)
  set_target_properties(${name} PROPERTIES STEPC_STATIC ON)
  target_link_libraries(${name} PRIVATE stepc_mlir ${ARG_LINK})
  target_link_options(${name} PRIVATE -Wl,--gc-sections)
endfunction()

# Tests run for seconds and would take minutes to optimize; OPTIMIZED are those that compute for longer.
function(stepc_unit_test name)
  cmake_parse_arguments(ARG "MLIR;OPTIMIZED" "" "LINK;FLAGS" ${ARGN})
  if(NOT ARG_OPTIMIZED)
    list(APPEND ARG_FLAGS -O0)
  endif()
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  # As libraries are compiled, so that it can share a precompiled header with them.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC ${ARG_FLAGS})
  if(ARG_MLIR AND ARG_OPTIMIZED) # the compiler's own, which is there
    target_link_libraries(${name} PRIVATE stepc_mlir)
    stepc_use_mlir_pch(${name})
  elseif(ARG_MLIR)
    stepc_use_pch(${name} mlir_test_headers FLAGS ${ARG_FLAGS} LINK stepc_mlir GTest::gtest GTest::gmock
                  DEPENDS stepc_optim_inc stepc_comm_inc stepc_exec_inc)
  else()
    stepc_use_pch(${name} test_headers FLAGS ${ARG_FLAGS} LINK GTest::gtest GTest::gmock)
  endif()
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE ${STEPC_WARNINGS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gmock GTest::gtest_main)
  # Tests name their cases and helpers alike: a source alone has room for that.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/unit UNITY_BUILD OFF)
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
