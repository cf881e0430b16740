// Package job is the protocol between the driver and the guest of a test VM: the list of programs
// to run, and the marks between their outputs on the serial port.
//
// Pure. It must not know QEMU, nor what the programs test.
package job

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// File is where the guest finds its job. Modules is its folder of kernel modules, in load order.
const (
	File    = "/job.json"
	Modules = "/mods"
)

// Job is everything that one VM does.
type Job struct {
	Programs []Program `json:"programs"`
}

// Program is one test binary.
type Program struct {
	// Name is the tested package, relative to the module's path.
	Name string   `json:"name"`
	Path string   `json:"path"`
	Dir  string   `json:"dir"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
}

// Encode encodes a job for the guest.
func (j Job) Encode() ([]byte, error) { return json.MarshalIndent(j, "", "  ") }

// Decode decodes a job in the guest.
func Decode(b []byte) (Job, error) {
	var j Job
	if err := json.Unmarshal(b, &j); err != nil {
		return Job{}, fmt.Errorf("read %s: %w", File, err)
	}
	return j, nil
}

// Marks begin the guest's own lines. The first byte prevents a test's output from being mistaken
// for one.
const (
	mark       = "\x01VM"
	kernelMark = mark + "KERNEL "
	noteMark   = mark + "NOTE "
	startMark  = mark + "START "
	doneMark   = mark + "DONE "
	exitMark   = mark + "EXIT "
)

// KernelLine returns the line with the release of the guest's kernel.
func KernelLine(release string) string { return kernelMark + release }

// NoteLine returns the line with a note by the guest.
func NoteLine(text string) string { return noteMark + strings.ReplaceAll(text, "\n", "; ") }

// StartLine returns the line before a program's output.
func StartLine(name string) string { return startMark + name }

// DoneLine returns the line after a program's output.
func DoneLine(name string, exit int, seconds float64) string {
	return fmt.Sprintf("%s%s %d %.1f", doneMark, name, exit, seconds)
}

// ExitLine returns the last line. If it is missing, the guest hung, panicked or ran out of time.
func ExitLine(code int) string { return exitMark + strconv.Itoa(code) }

// Report is what a guest wrote.
type Report struct {
	Kernel string
	Notes  []string
	Runs   []Run
	// Ended is set if the guest finished. Exit is then its exit code.
	Ended bool
	Exit  int
}

// Run is one program's part of a Report.
type Run struct {
	Name   string
	Output string
	// Done is set if the program ended. Exit is then its exit status.
	Done    bool
	Exit    int
	Seconds float64
}

// Parse parses the serial port's text, which can be cut off anywhere.
func Parse(text string) Report {
	var r Report
	var run *Run
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, kernelMark):
			r.Kernel = line[len(kernelMark):]
		case strings.HasPrefix(line, noteMark):
			r.Notes = append(r.Notes, line[len(noteMark):])
		case strings.HasPrefix(line, startMark):
			r.Runs = append(r.Runs, Run{Name: line[len(startMark):]})
			run = &r.Runs[len(r.Runs)-1]
		case strings.HasPrefix(line, doneMark):
			if run != nil {
				run.done(line[len(doneMark):])
			}
			run = nil
		case strings.HasPrefix(line, exitMark):
			code, err := strconv.Atoi(line[len(exitMark):])
			r.Ended, r.Exit = err == nil, code
		case run != nil:
			run.Output += line + "\n"
		}
	}
	return r
}

// done parses the text after the mark of a DoneLine. If the line was cut off, Done stays false.
func (r *Run) done(text string) {
	var name string
	n, err := fmt.Sscan(text, &name, &r.Exit, &r.Seconds)
	r.Done = err == nil && n == 3 && name == r.Name
}
