package agent

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// releaseProgram takes the pages of the program out of this process. They are those of
// its file, which nobody changes: the next access finds them in the cache of the system.
func releaseProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	regions, err := unchanged(program)
	if err != nil {
		return err
	}
	for _, each := range regions {
		if _, _, failed := syscall.Syscall(syscall.SYS_MADVISE, each.from, each.to-each.from, syscall.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("releasing the pages from %x to %x: %w", each.from, each.to, failed)
		}
	}
	return nil
}

// region is a part of the memory of a process.
type region struct{ from, to uintptr }

// unchanged are the regions that show a file and can only be read. One of which the
// process has pages of its own is left out, as the linker may have written there: those
// pages would be lost.
func unchanged(file string) ([]region, error) {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, fmt.Errorf("reading the regions of memory: %w", err)
	}
	defer func() { _ = maps.Close() }()
	var (
		found   []region
		current *region
	)
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if of, ok := readable(fields, file); ok {
			current = &of
			continue
		}
		if len(fields) > 1 && strings.Contains(fields[0], "-") {
			current = nil
			continue
		}
		if current != nil && len(fields) == 3 && fields[0] == "Anonymous:" {
			if fields[1] == "0" {
				found = append(found, *current)
			}
			current = nil
		}
	}
	return found, lines.Err()
}

// readable reads the first line about a region: its ends, what may be done with it, and
// the file. It is false for one that can be written, and for other files.
func readable(fields []string, file string) (of region, ok bool) {
	if len(fields) < 6 || fields[len(fields)-1] != file || strings.Contains(fields[1], "w") || !strings.HasPrefix(fields[1], "r") {
		return region{}, false
	}
	n, err := fmt.Sscanf(fields[0], "%x-%x", &of.from, &of.to)
	return of, err == nil && n == 2 && of.from < of.to
}
