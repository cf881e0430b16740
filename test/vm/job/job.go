// Package job is what the driver and the guest of a test VM agree on: the list of programs that goes in,
// and the marks between their outputs that come out of the serial port.
//
// Pure. It must not know QEMU, nor what the programs test.
package job

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// File is where the guest finds its job, Modules the folder of kernel modules in load order.
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
	// Name is the tested package, below the module's path.
	Name string   `json:"name"`
	Path string   `json:"path"`
	Dir  string   `json:"dir"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
}

// Encode writes a job for the guest.
func (j Job) Encode() ([]byte, error) { return json.MarshalIndent(j, "", "  ") }

// Decode reads it there.
func Decode(b []byte) (Job, error) {
	var j Job
	if err := json.Unmarshal(b, &j); err != nil {
		return Job{}, fmt.Errorf("read %s: %w", File, err)
	}
	return j, nil
}

// Marks are lines of the guest. The first byte keeps a test's own output from being taken for one.
const (
	mark       = "\x01VM"
	kernelMark = mark + "KERNEL "
	noteMark   = mark + "NOTE "
	startMark  = mark + "START "
	doneMark   = mark + "DONE "
	exitMark   = mark + "EXIT "
)

// KernelLine names the guest's kernel.
func KernelLine(release string) string { return kernelMark + release }

// NoteLine is one remark of the guest.
func NoteLine(text string) string { return noteMark + strings.ReplaceAll(text, "\n", "; ") }

// StartLine comes before a program's output.
func StartLine(name string) string { return startMark + name }

// DoneLine comes after it.
func DoneLine(name string, exit int, seconds float64) string {
	return fmt.Sprintf("%s%s %d %.1f", doneMark, name, exit, seconds)
}

// ExitLine is the last: without it the guest hung, panicked or ran out of time.
func ExitLine(code int) string { return exitMark + strconv.Itoa(code) }

// Report is what a guest wrote.
type Report struct {
	Kernel string
	Notes  []string
	Runs   []Run
	// Ended says that the guest came to its end; Exit is then its verdict.
	Ended bool
	Exit  int
}

// Run is one program's part of it.
type Run struct {
	Name   string
	Output string
	// Done says that the program ended, with status Exit.
	Done    bool
	Exit    int
	Seconds float64
}

// Parse reads the serial port's text, whole or cut off anywhere.
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

// done reads what DoneLine wrote; a line that was cut off leaves the run undone.
func (r *Run) done(text string) {
	var name string
	n, err := fmt.Sscan(text, &name, &r.Exit, &r.Seconds)
	r.Done = err == nil && n == 3 && name == r.Name
}
