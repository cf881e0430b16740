package enum_test

import (
	"testing"

	"strait.io/strait/internal/enum"
)

type colour string

func TestDecode(t *testing.T) {
	for _, tc := range []struct {
		text string
		want colour
		err  string
	}{
		{"red", "red", ""},
		{"blue", "blue", ""},
		{"", "", ""},
		{"Red", "before", `"Red" is none of red, blue`},
	} {
		got := colour("before")
		err := enum.Decode(&got, []byte(tc.text), "red", "blue")
		if text := errText(err); got != tc.want || text != tc.err {
			t.Errorf("%q: %q, %q; want %q, %q", tc.text, got, text, tc.want, tc.err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
