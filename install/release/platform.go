package release

import (
	"fmt"
	"slices"
	"strings"
)

// Platform is a system and a processor that programs are built for.
type Platform struct{ OS, Arch string }

// systems are those that strait builds for; straitd needs Linux.
var systems = []string{"linux", "darwin", "windows"}

// Platforms reads a list: "linux/amd64 darwin/arm64".
func Platforms(list string) (out []Platform, err error) {
	for word := range strings.FieldsSeq(list) {
		system, arch, _ := strings.Cut(word, "/")
		if !slices.Contains(systems, system) || arch != "amd64" && arch != "arm64" {
			return nil, fmt.Errorf("RELEASE_PLATFORMS: %q: want linux, darwin or windows, a slash, and amd64 or arm64", word)
		}
		if p := (Platform{system, arch}); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	if !slices.ContainsFunc(out, Platform.hasDaemon) {
		return nil, fmt.Errorf("RELEASE_PLATFORMS: %q has no linux: the image needs one", list)
	}
	return out, nil
}

func (p Platform) hasDaemon() bool { return p.OS == "linux" }

// Programs are those that are built for the platform.
func (p Platform) Programs() []string {
	if p.hasDaemon() {
		return []string{"strait", "straitd"}
	}
	return []string{"strait"}
}

// Folder is where make has put the platform's programs.
func (p Platform) Folder() string { return p.OS + "-" + p.Arch }

// Executable is the file of a program.
func (p Platform) Executable(program string) string {
	if p.OS == "windows" {
		return program + ".exe"
	}
	return program
}

// Name is what the files about a program for a platform begin with: strait_v0.1.0_linux_amd64.
func (r Release) Name(program string, p Platform) string {
	return fmt.Sprintf("%s_%s_%s_%s", program, r.Version, p.OS, p.Arch)
}

// Archive is the file in which people get a program.
func (r Release) Archive(program string, p Platform) string {
	if p.OS == "windows" {
		return r.Name(program, p) + ".zip"
	}
	return r.Name(program, p) + ".tar.gz"
}
