package supply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strait.io/strait/internal/testutil"
)

// needTool skips a test if a program of test/setup/tools cannot be built, for lack of its source.
func needTool(t *testing.T, name string) {
	t.Helper()
	if out, err := try(t, top, "test/setup/tool.sh "+name); err != nil {
		testutil.Missing(t, "cannot build "+name+": "+out)
	}
}

// database writes a database with one invented vulnerability of a module that strait uses.
func database(t *testing.T, symbol string) (url string) {
	t.Helper()
	dir := t.TempDir()
	entry := `{"schema_version": "1.3.1", "id": "GO-2099-0001", "modified": "2099-01-01T00:00:00Z", "summary": "invented",
		"database_specific": {"url": "https://vuln.invalid"}, "affected": [{
			"package": {"name": "github.com/spf13/cobra", "ecosystem": "Go"},
			"ranges": [{"type": "SEMVER", "events": [{"introduced": "0"}]}],
			"ecosystem_specific": {"imports": [{"path": "github.com/spf13/cobra", "symbols": ["` + symbol + `"]}]}}]}`
	if err := os.WriteFile(filepath.Join(dir, "GO-2099-0001.json"), []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + dir
}

// TestVulncheck: make vulncheck fails for a vulnerability that strait calls, for a mirror that it
// cannot read, and if Go's own database cannot be reached: then it says that nothing was checked.
func TestVulncheck(t *testing.T) {
	needTool(t, "govulncheck")
	for _, c := range []struct {
		name, env, says string
		unreachable     bool
	}{
		{"called", "GOVULNDB=" + database(t, "Command.ExecuteContext"), "GO-2099-0001", false},
		{"no such folder", "GOVULNDB=file:///no/such/folder", "no such file", false},
		{"no such mirror", "GOVULNDB=https://127.0.0.1:1", "creating client", false},
		{"unreachable", "HTTPS_PROXY=http://127.0.0.1:1", "NOT CHECKED: the database https://vuln.go.dev cannot be reached", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := try(t, top, "make vulncheck", c.env)
			if err == nil || !strings.Contains(out, c.says) || c.unreachable != strings.Contains(out, "NOT CHECKED") {
				t.Errorf("%v, want an error that says %q\n%s", err, c.says, out)
			}
		})
	}
}
