package release

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// given are archives whose checksums are known.
func given() Archives {
	return Archives{{Platform{"linux", "amd64"}, []byte("x\n")}, {Platform{"darwin", "arm64"}, nil}, {Platform{"windows", "amd64"}, []byte("x\n")}}
}

const (
	sumOfX    = "73cb3858a687a8494ca3323053016282f3dad39d42cf62ca4e79dda2aac7d9ac"
	sumOfNone = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// TestKrew: each platform has its archive, with its checksum, and the program in it.
func TestKrew(t *testing.T) {
	var m struct {
		Metadata struct{ Name string }
		Spec     struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
				URI, Sha256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(sample().Krew(given()), &m); err != nil {
		t.Fatal(err)
	}
	const base = "https://strait.example/v1.2.3-rc.1/strait_v1.2.3-rc.1_"
	want := "[{{{linux amd64}} " + base + "linux_amd64.tar.gz " + sumOfX + " strait} " +
		"{{{darwin arm64}} " + base + "darwin_arm64.tar.gz " + sumOfNone + " strait} " +
		"{{{windows amd64}} " + base + "windows_amd64.zip " + sumOfX + " strait.exe}]"
	if got := fmt.Sprint(m.Spec.Platforms); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if m.Metadata.Name != "strait" || m.Spec.Version != "v1.2.3-rc.1" {
		t.Errorf("%+v", m)
	}
}

// TestHomebrew: Homebrew gets the archives of its systems, each with its checksum; it has none of
// Windows.
func TestHomebrew(t *testing.T) {
	got := string(sample().Homebrew(given()))
	const base = "https://strait.example/v1.2.3-rc.1/strait_v1.2.3-rc.1_"
	for _, want := range []string{
		"  version \"1.2.3-rc.1\"\n",
		"  on_macos do\n    on_arm do\n      url \"" + base + "darwin_arm64.tar.gz\"\n      sha256 \"" + sumOfNone + "\"\n    end\n  end\n",
		"  on_linux do\n    on_intel do\n      url \"" + base + "linux_amd64.tar.gz\"\n      sha256 \"" + sumOfX + "\"\n    end\n  end\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "windows") {
		t.Errorf("Homebrew has no Windows:\n%s", got)
	}
}
