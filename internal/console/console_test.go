package console

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestStepLinesAreAligned(t *testing.T) {
	longest := "start the webhook and the API server of clusters"
	var lines []string
	for _, one := range []struct {
		name      string
		took      time.Duration
		hasFailed bool
	}{
		{"etcd", 4400 * time.Millisecond, false},
		{longest, 99940 * time.Millisecond, false},
		{"etcd", 99960 * time.Millisecond, false},
		{longest, 125400 * time.Millisecond, true},
		{"etcd", 10*time.Hour + 59*time.Minute, false},
	} {
		lines = append(lines, Style{}.StepLine(one.name, one.took, one.hasFailed))
	}
	gap := strings.Repeat(" ", len(longest)-len("etcd"))
	want := []string{
		"✔ etcd" + gap + "     4.4s",
		"✔ " + longest + "    99.9s",
		"✔ etcd" + gap + "    1m40s",
		"✖ " + longest + "     2m5s",
		"✔ etcd" + gap + " 10h59m0s",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	for _, line := range lines {
		if utf8.RuneCountInString(line) != utf8.RuneCountInString(lines[0]) {
			t.Errorf("%q is not aligned with %q", line, lines[0])
		}
	}
}
