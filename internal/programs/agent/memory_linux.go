package agent

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// releaseProgramPages removes the executable's pages from this process's memory. The pages are read-only, so
// the next access loads them from the kernel's page cache.
func releaseProgramPages() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("finding the executable: %w", err)
	}
	regions, err := readOnlyRegions(program)
	if err != nil {
		return err
	}
	for _, r := range regions {
		if _, _, failed := syscall.Syscall(syscall.SYS_MADVISE, r.from, r.to-r.from, syscall.MADV_DONTNEED); failed != 0 {
			return fmt.Errorf("releasing the pages from %x to %x: %w", r.from, r.to, failed)
		}
	}
	return nil
}

// region is an address range of a process's memory.
type region struct{ from, to uintptr }

// readOnlyRegions returns the regions that map the file read-only. It skips regions with anonymous
// pages, because the linker may have written to these pages and their content would be lost.
func readOnlyRegions(file string) ([]region, error) {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return nil, fmt.Errorf("reading the memory regions: %w", err)
	}
	defer func() { _ = maps.Close() }()
	var (
		found   []region
		current *region
	)
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if r, ok := parseReadOnlyRegion(fields, file); ok {
			current = &r
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
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the memory regions: %w", err)
	}
	return found, nil
}

// parseReadOnlyRegion parses a region's first line in smaps, which contains its addresses, permissions and
// file. ok is false if the region is writable or maps another file.
func parseReadOnlyRegion(fields []string, file string) (r region, ok bool) {
	if len(fields) < 6 || fields[len(fields)-1] != file || strings.Contains(fields[1], "w") || !strings.HasPrefix(fields[1], "r") {
		return region{}, false
	}
	n, err := fmt.Sscanf(fields[0], "%x-%x", &r.from, &r.to)
	return r, err == nil && n == 2 && r.from < r.to
}
