package job

import (
	"reflect"
	"strings"
	"testing"
)

func TestJobRoundTrip(t *testing.T) {
	j := Job{Programs: []Program{{Name: "datapath/socklb", Path: "/tests/a", Dir: "/tests", Args: []string{"-test.v"}, Env: []string{"A=b"}}}}
	b, err := j.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(b); err != nil || !reflect.DeepEqual(got, j) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := Decode([]byte("{")); err == nil {
		t.Error("half a job was read")
	}
}

// script is what a guest writes when all goes well; serial ports end lines with \r\n.
func script() string {
	return strings.Join([]string{
		KernelLine("5.10.0-46"), StartLine("a"), "=== RUN TestA", "VMEXIT 0", "PASS", DoneLine("a", 0, 1.25),
		StartLine("b"), "panic: no", DoneLine("b", 2, 0.5), NoteLine("one\ntwo"), ExitLine(1), "",
	}, "\r\n")
}

func TestParse(t *testing.T) {
	r := Parse(script())
	want := Report{
		Kernel: "5.10.0-46", Notes: []string{"one; two"}, Ended: true, Exit: 1,
		Runs: []Run{
			// A test that prints a mark's words ends nothing.
			{Name: "a", Output: "=== RUN TestA\nVMEXIT 0\nPASS\n", Done: true, Seconds: 1.2},
			{Name: "b", Output: "panic: no\n", Done: true, Exit: 2, Seconds: 0.5},
		},
	}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("got  %+v\nwant %+v", r, want)
	}
}

// TestParseCutOff: a guest that stops anywhere never looks as if it had come to its end.
func TestParseCutOff(t *testing.T) {
	text := script()
	end := strings.LastIndex(text, "1")
	for i := range end {
		if Parse(text[:i]).Ended {
			t.Fatalf("ended after %q", text[:i])
		}
	}
	r := Parse(text[:strings.Index(text, "PASS")])
	if len(r.Runs) != 1 || r.Runs[0].Done {
		t.Errorf("%+v: the program did not end", r.Runs)
	}
}
