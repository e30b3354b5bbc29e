#!/bin/bash -eu
# Build the native fuzz targets from tests/fuzz into $OUT, with their seeds, by the compiler that the environment names:
# CXX, CXXFLAGS and LIB_FUZZING_ENGINE are those of OSS-Fuzz. scripts/fuzz calls this script too.
# Usage, in the root of a clone: build.sh [TARGET…]     (default: all)
targets=("$@")
if [ $# = 0 ]; then
  for source in tests/fuzz/*.cpp; do
    targets+=("$(basename "$source" .cpp)")
  done
fi
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
for target in "${targets[@]}"; do
  # As the kernel's CMakeLists.txt: no fused multiplication. A target is one file, and does not use all of the kernel.
  compile=($CXX $CXXFLAGS -std=c++17 -ffp-contract=off -fno-trapping-math -Wno-unused-function -DGEVAL_WITHOUT_PYTHON)
  others=()
  if [ "$target" = numbers ]; then # its second half: the reader of compilers without std::from_chars
    others=("$objects/fallback.o")
    "${compile[@]}" -DGEVAL_WITHOUT_FROM_CHARS -c tests/fuzz/numbers.cpp -o "${others[0]}"
  fi
  "${compile[@]}" -c "tests/fuzz/$target.cpp" -o "$objects/$target.o"
  $CXX $CXXFLAGS "$objects/$target.o" ${others[@]+"${others[@]}"} $LIB_FUZZING_ENGINE -o "$objects/$target"
  mv "$objects/$target" "$OUT/$target" # at once, where an older one may be running
  cp "tests/fuzz/corpora/$target.zip" "$OUT/${target}_seed_corpus.zip"
done
