package kernels

import (
	"fmt"
	"strings"
	"testing"
)

const madison = `linux-image-cloud-amd64 | 7.2.12-1~bpo13+1 | http://m/debian trixie-backports/main amd64 Packages
linux-image-cloud-amd64 | 6.12.117-1 | http://m/debian-security trixie-security/main amd64 Packages
linux-image-cloud-amd64 |  6.1.176-1 | http://m/debian bookworm/main amd64 Packages
linux-image-cloud-amd64 |  6.1.192-2 | http://m/debian-security bookworm-security/main amd64 Packages
linux-image-cloud-amd64 | 9.9.9-1 | http://m/debian sid/main Sources
linux-image-cloud-amd64 | 5.10.262-1 | http://m/debian-security bullseye-security/main amd64 Packages
`

func TestPick(t *testing.T) {
	offered := parseMadison(madison)
	for series, want := range map[string]string{
		"5.10": "5.10.262-1", "6.1": "6.1.192-2", "6.12": "6.12.117-1", "newest": "7.2.12-1~bpo13+1", "6": "6.12.117-1", "5.1": "", "4.19": "",
	} {
		got, ok := pick(series, offered)
		if got.version != want || ok != (want != "") {
			t.Errorf("%s: %q %v, want %q", series, got.version, ok, want)
		}
	}
}

func TestNewer(t *testing.T) {
	for _, tc := range [][2]string{{"6.12.9-1", "6.2.100-1"}, {"7.2.13-1", "7.2.12-1~bpo13+1"}, {"6.1.192-2", "6.1.192-1"}, {"6.1.1-1+b1", "6.1.1-1"}} {
		if !newer(tc[0], tc[1]) || newer(tc[1], tc[0]) {
			t.Errorf("%s is newer than %s", tc[0], tc[1])
		}
	}
}

func TestPackages(t *testing.T) {
	release, ok := releaseOf("Package: linux-image-cloud-amd64\nDepends: linux-base-cloud-amd64 (= 7.2), linux-image-7.2.12+deb13-cloud-amd64 (= 7.2)\n")
	if !ok || release != "7.2.12+deb13-cloud-amd64" {
		t.Errorf("%q %v", release, ok)
	}
	if _, ok := releaseOf("Package: linux-image-6.1\nDescription: none\n"); ok {
		t.Error("a name outside of Depends was taken")
	}
	const r = "7.2-cloud"
	show := "Depends: dracut, linux-base-7.2-cloud (= 7.2), linux-binary-7.2-cloud (= 7.2), linux-modules-7.2-cloud (= 7.2)\n"
	if got := fmt.Sprint(parts(r, show)); got != "[linux-binary-7.2-cloud linux-modules-7.2-cloud linux-base-7.2-cloud]" {
		t.Error(got)
	}
	if got := fmt.Sprint(parts("6.1", "Depends: kmod, linux-base (>= 4.3~)\n")); got != "[linux-image-6.1]" {
		t.Error(got)
	}
}

func TestSources(t *testing.T) {
	repos := parseTargets("http://m/debian/|Debian|Debian\nhttp://m/security/|Debian|Debian-Security\nhttp://x/|Other|Debian\n")
	text := sources(repos, "/k.gpg")
	for _, want := range []string{
		"deb [arch=amd64 signed-by=/k.gpg] http://m/debian bullseye main\n",
		"deb [arch=amd64 signed-by=/k.gpg] http://m/security bookworm-security main\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "http://x") || strings.Count(text, "\n") != len(suites) {
		t.Errorf("%s", text)
	}
	if got := sources(repos[:1], "/k.gpg"); strings.Contains(got, "security") {
		t.Errorf("a suite from the wrong archive:\n%s", got)
	}
}
