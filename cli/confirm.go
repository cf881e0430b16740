package cli

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
)

// Confirm asks a question, unless yes. Anything but y means no.
func (a *App) Confirm(question string, yes bool) error {
	if yes {
		return nil
	}
	fmt.Fprintf(a.Stdout, "%s [y/N] ", question)
	answer, err := bufio.NewReader(a.Stdin).ReadString('\n')
	switch answer = strings.ToLower(strings.TrimSpace(answer)); {
	case answer == "y" || answer == "yes":
		return nil
	case err != nil && answer == "":
		fmt.Fprintln(a.Stdout)
		return UsageError("no answer, so nothing was written; pass --yes in scripts")
	}
	return &ExitError{ExitProblem, errors.New("nothing was written")}
}
