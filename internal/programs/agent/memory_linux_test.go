package agent

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// residentFileMemory returns the size, in kB, of the file mappings that are in the memory of this
// process.
func residentFileMemory(t *testing.T) (kilobytes int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte("RssFile:")); ok {
			if _, err := fmt.Sscan(string(rest), &kilobytes); err != nil {
				t.Fatal(err)
			}
			return kilobytes
		}
	}
	t.Fatal("/proc/self/status has no RssFile")
	return 0
}

func TestReleaseProgramPages(t *testing.T) {
	before := residentFileMemory(t)
	if err := releaseProgramPages(); err != nil {
		t.Fatal(err)
	}
	if after := residentFileMemory(t); after > before*2/3 {
		t.Errorf("%d kB of file mappings are in memory, %d kB before the release", after, before)
	}
}

func TestParseReadOnlyRegion(t *testing.T) {
	const program = "/bin/karmada-agent"
	tests := map[string]struct {
		line string
		want region
		ok   bool
	}{
		"code":             {"00400000-0143f000 r-xp 00000000 08:01 42 /bin/karmada-agent", region{0x400000, 0x143f000}, true},
		"constants":        {"0143f000-02517000 r--p 0103f000 08:01 42 /bin/karmada-agent", region{0x143f000, 0x2517000}, true},
		"variables":        {"02517000-025a2000 rw-p 02117000 08:01 42 /bin/karmada-agent", region{}, false},
		"another file":     {"7f0000000000-7f0000001000 r-xp 00000000 08:01 43 /lib/libc.so", region{}, false},
		"the heap":         {"c000000000-c000400000 rw-p 00000000 00:00 0", region{}, false},
		"an empty range":   {"00400000-00400000 r-xp 00000000 08:01 42 /bin/karmada-agent", region{}, false},
		"not readable":     {"00400000-0143f000 --xp 00000000 08:01 42 /bin/karmada-agent", region{}, false},
		"another line":     {"Rss: 13984 kB", region{}, false},
		"an empty line":    {"", region{}, false},
		"an invalid range": {"x-y r-xp 00000000 08:01 42 /bin/karmada-agent", region{}, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, ok := parseReadOnlyRegion(strings.Fields(test.line), program)
			if ok != test.ok || ok && got != test.want {
				t.Errorf("readable(%q) = %+v, %t", test.line, got, ok)
			}
		})
	}
}
