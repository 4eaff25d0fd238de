# What distributors ask of binaries: the same from the same sources, wherever they lie, and hardened. That costs
# some speed, so builds for oneself do without.
option(EMPLACE_DISTRIBUTION "Build binaries to be passed on: hardened, and the same wherever they are built" OFF)
if(NOT EMPLACE_DISTRIBUTION)
  return()
endif()
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=build
                    -frandom-seed=emplace -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2
                    -D_GLIBCXX_ASSERTIONS)
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,--build-id=sha1)
