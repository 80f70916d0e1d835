package command

import (
	"bufio"
	"fmt"
	"strings"
)

// Confirm asks the user a question and reports whether the user agreed. It repeats the question until the user types y,
// yes, n or no. It returns an error if standard input ends before that. force is the flag that skips the question, for
// the error.
func (p *Program) Confirm(question, force string) (bool, error) {
	answers := bufio.NewScanner(p.In)
	for {
		fmt.Fprintf(p.ErrOut, "%s [y/n]: ", question)
		if !answers.Scan() {
			fmt.Fprintln(p.ErrOut)
			return false, fmt.Errorf("there is no answer on standard input: use %s to go on without a question", force)
		}
		switch strings.ToLower(strings.TrimSpace(answers.Text())) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}
