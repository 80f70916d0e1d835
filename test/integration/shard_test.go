package integration

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"
)

// listTimeout bounds the listing of the tests of this program.
const listTimeout = time.Minute

// selectShard restricts the flag -test.run to part i of n, given as "i/n", of the tests that the
// flag selects. n machines that each run a different part run all tests together. If part is empty,
// nothing is restricted.
func selectShard(part string) error {
	if part == "" {
		return nil
	}
	var i, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		return fmt.Errorf("-shard %q: want i/n with i from 1 to n, such as 1/2", part)
	}
	names, err := listTests(flag.Lookup("test.run").Value.String())
	if err != nil {
		return err
	}
	var chosen []string
	for at, name := range names {
		if at%n == i-1 {
			chosen = append(chosen, regexp.QuoteMeta(name))
		}
	}
	if err := flag.Set("test.run", "^("+strings.Join(chosen, "|")+")$"); err != nil {
		return fmt.Errorf("-shard %q: %w", part, err)
	}
	return nil
}

// listTests returns the names of the tests that match a pattern, sorted. It runs this program with
// -test.list, because the testing package has no function for this.
func listTests(pattern string) ([]string, error) {
	if pattern == "" {
		pattern = "."
	}
	ctx, cancel := context.WithTimeout(context.Background(), listTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, os.Args[0], "-test.list", pattern).Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	names := slices.DeleteFunc(strings.Fields(string(out)), func(word string) bool { return !strings.HasPrefix(word, "Test") })
	slices.Sort(names)
	return names, nil
}
