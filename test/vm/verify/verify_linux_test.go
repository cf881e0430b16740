// Package verify loads each committed eBPF object program by program, on whatever kernel it runs,
// and logs how many instructions the verifier saw: `make test-vm` prints them for each kernel.
//
// Input are the objects beside the datapath's packages, or in the folder that STRAIT_VM_OBJECTS
// names. It must not know what the programs do.
package verify

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"

	"strait.io/strait/internal/testutil"
)

// TestPrograms: every program passes the verifier, or says that the kernel lacks what it is optional for.
func TestPrograms(t *testing.T) {
	testutil.NeedRoot(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	for _, file := range objects(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), "_bpfel.o"), func(t *testing.T) { testObject(t, file) })
	}
}

// objects finds the compiled objects.
func objects(t *testing.T) []string {
	t.Helper()
	dirs := []string{"../../../datapath/*", "../../../datapath/*/*"}
	if dir := os.Getenv("STRAIT_VM_OBJECTS"); dir != "" {
		dirs = []string{dir}
	}
	var files []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*_bpfel.o"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, must := range []string{"socklb_bpfel.o", "sockdestroy_bpfel.o", refused + "_bpfel.o", replacement + "_bpfel.o"} {
		if !slices.ContainsFunc(files, func(f string) bool { return filepath.Base(f) == must }) {
			t.Fatalf("no eBPF object %s in %v", must, dirs)
		}
	}
	return files
}

// Some kernels that are locked down refuse iterators over maps. Then those of another object take
// their place, which testObject wants to load.
const refused, replacement = "records", "files"

func testObject(t *testing.T, file string) {
	for _, program := range slices.Sorted(maps.Keys(load(t, file).Programs)) {
		t.Run(program, func(t *testing.T) {
			// Where the kernel has all that the object can use the programs are largest.
			on, err := verified(t, file, program, 1)
			if err != nil {
				t.Logf("with every feature: %v", err)
				on, err = verified(t, file, program, 0)
			}
			if object := strings.TrimSuffix(filepath.Base(file), "_bpfel.o"); errors.Is(err, fs.ErrPermission) && object == refused {
				t.Skipf("this kernel refuses it, and uses what %s has: %v", replacement, err)
			}
			if errors.Is(err, ebpf.ErrNotSupported) || lacksHelper(err) {
				// Not testutil.Missing: what is missing is a kernel's, and each is listed in
				// test/vm/skips.txt.
				t.Skipf("this kernel cannot: %v", err)
			}
			if err != nil {
				t.Fatalf("without optional features: %+v", err)
			}
			t.Logf("instructions: %s %s verified %d", strings.TrimSuffix(filepath.Base(file), "_bpfel.o"), program, on)
		})
	}
}

// lacksHelper reports whether the kernel's verifier refused a program that calls a helper which the
// kernel does not have. Only the whole log has that line, and of a wrapped error, %+v does not
// print it.
func lacksHelper(err error) bool {
	refused := (*ebpf.VerifierError)(nil)
	return errors.As(err, &refused) && strings.Contains(fmt.Sprintf("%+v", refused), "invalid func")
}

func load(t *testing.T, file string) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := ebpf.LoadCollectionSpec(file)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

var processed = regexp.MustCompile(`processed (\d+) insns`)

// verified loads one program, with the object's constants named has_… set to feature, and returns how many
// instructions the verifier walked through. The verifier's log says so on every kernel; the program's info
// only since 5.16.
func verified(t *testing.T, file, program string, feature uint8) (int, error) {
	t.Helper()
	spec := load(t, file)
	for name, v := range spec.Variables {
		if strings.HasPrefix(name, "has_") {
			if err := v.Set(feature); err != nil {
				t.Fatalf("constant %s: %v", name, err)
			}
		}
	}
	for name := range spec.Programs {
		if name != program {
			delete(spec.Programs, name)
		}
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	m := processed.FindStringSubmatch(c.Programs[program].VerifierLog)
	if m == nil {
		t.Fatalf("%s: no count in the verifier's log: %s", program, c.Programs[program].VerifierLog)
	}
	return strconv.Atoi(m[1])
}
