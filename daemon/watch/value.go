package watch

import (
	"errors"
	"io/fs"
	"strings"

	"strait.io/strait/internal/problem"
)

// Absence is what a file means that is not there.
type Absence uint8

const (
	// Wrong: it is a Problem, and the last value stays in force.
	Wrong Absence = iota
	// Kept: the last value stays in force.
	Kept
	// Empty: the zero value is in force.
	Empty
)

// Value is the value in a file. The last good value stays in force while the file cannot be used. One
// goroutine owns it.
type Value[T any] struct {
	source *Source[string]
	rule   Rule[T]

	text  string
	value T
}

// Rule is how a text becomes a value in force.
type Rule[T any] struct {
	// Parse reads a text. The empty text is the zero value until another text was in force.
	Parse func(text string) (T, error)
	// Use puts a new value in force; nil if there is nothing to do. If it fails, the value before
	// stays in force, and Use is tried again.
	Use func(text string, value T) error
	// Absent is what a missing file means.
	Absent Absence
	// Problem is reported while the file cannot be used. Its Message begins the message, which ends
	// with the cause.
	Problem problem.Problem
}

// Follow makes a Value of a file.
func Follow[T any](source *Source[string], rule Rule[T]) *Value[T] {
	return &Value[T]{source: source, rule: rule}
}

// Source returns the file.
func (v *Value[T]) Source() *Source[string] { return v.source }

// Get returns the value in force.
func (v *Value[T]) Get() T { return v.value }

// Text returns the text that the value in force was read from.
func (v *Value[T]) Text() string { return v.text }

// Set puts a value in force that was read elsewhere, such as by an earlier life of the daemon.
func (v *Value[T]) Set(text string, value T) { v.text, v.value = text, value }

// Next puts the file's present value in force, if it is good. It returns the value in force, and what
// is wrong with the file.
func (v *Value[T]) Next() (T, []problem.Problem) {
	text, err := v.source.Now()
	switch {
	case errors.Is(err, fs.ErrNotExist) && v.rule.Absent == Empty:
		var zero T
		err = v.use("", zero)
	case errors.Is(err, fs.ErrNotExist) && v.rule.Absent == Kept:
		return v.value, nil
	case err == nil && text != v.text:
		var value T
		if value, err = v.rule.Parse(text); err == nil {
			err = v.use(text, value)
		}
	}
	if err == nil {
		return v.value, nil
	}
	p := v.rule.Problem
	p.Message += ": " + strings.ReplaceAll(err.Error(), "\n", ", ")
	return v.value, []problem.Problem{p}
}

func (v *Value[T]) use(text string, value T) error {
	if text == v.text {
		return nil
	}
	if v.rule.Use != nil {
		if err := v.rule.Use(text, value); err != nil {
			return err
		}
	}
	v.Set(text, value)
	return nil
}
