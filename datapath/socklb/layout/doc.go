// Package layout is what the programs of ../../../bpf and all users of their maps agree on: keys
// and values, names of maps and hooks, and the places of the pins.
//
// Keys and values are generated from the C source of the programs, together with the compiled
// object. The package opens pins and reads maps, and decides nothing: it must not know what a
// frontend needs, how programs are loaded, or who opts out.
package layout

// The object is little endian only: no big-endian machine is supported (see bpf/README.md).
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" -type range socklb ../../../bpf/socklb.bpf.c -- -I../../../bpf/include
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" -type row records ../../../bpf/records.bpf.c -- -I../../../bpf/include
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -target bpfel -cflags "-mcpu=v3 -O2 -g -Wall -Wextra -Werror -fno-strict-aliasing" files ../../../bpf/files.bpf.c -- -I../../../bpf/include
