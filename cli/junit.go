package cli

import (
	"encoding/xml"
	"io"
)

// JUnitCase is one test, in the form that CI systems read.
type JUnitCase struct {
	Class, Name string
	// Failure is why it failed, and Error why it could not be made; both are empty if it is fine.
	Failure, Error string
	// Text is the rest of what there is to say of a failure or an error, or the output of one that is fine.
	Text string
}

type (
	junitSuite struct {
		XMLName  xml.Name    `xml:"testsuite"`
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure"`
		Error   *junitFailure `xml:"error"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// WriteJUnit writes a suite of tests. The messages cannot control a terminal.
func WriteJUnit(w io.Writer, name string, cases []JUnitCase) error {
	suite := junitSuite{Name: name, Tests: len(cases)}
	for _, c := range cases {
		one := junitCase{Class: c.Class, Name: c.Name}
		switch {
		case c.Failure != "":
			suite.Failures++
			one.Failure = &junitFailure{Clean(c.Failure), c.Text}
		case c.Error != "":
			suite.Errors++
			one.Error = &junitFailure{Clean(c.Error), c.Text}
		default:
			one.Output = c.Text
		}
		suite.Cases = append(suite.Cases, one)
	}
	text, err := xml.MarshalIndent(suite, "", "  ")
	if err == nil {
		_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	}
	return err
}
