package processnode

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// newClock returns a clock that advances by one second with each call.
func newClock(start time.Time) func() time.Time {
	return func() time.Time {
		start = start.Add(time.Second)
		return start
	}
}

func TestReadAppliesQuery(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	long := strings.Repeat("x", maxLineBytes+10)
	tests := map[string]struct {
		written []string
		query   logQuery
		want    string
		fails   error
	}{
		"all lines":                      {[]string{"a\nb\n"}, logQuery{Tail: -1}, "a\nb\n", nil},
		"lines in several writes":        {[]string{"a", "b\nc", "\n"}, logQuery{Tail: -1}, "ab\nc\n", nil},
		"a last line without newline":    {[]string{"a\nb"}, logQuery{Tail: -1}, "a\nb", nil},
		"empty lines":                    {[]string{"\n\na\n"}, logQuery{Tail: -1}, "\n\na\n", nil},
		"a line longer than the maximum": {[]string{long + "\nb\n"}, logQuery{Tail: -1}, long + "\nb\n", nil},
		"a long line in several writes":  {[]string{long, long, "\nb\n"}, logQuery{Tail: -1}, long + long + "\nb\n", nil},
		"the last lines":                 {[]string{"a\nb\nc\n"}, logQuery{Tail: 2}, "b\nc\n", nil},
		"no lines":                       {[]string{"a\n"}, logQuery{Tail: 0}, "", nil},
		"lines since a time":             {[]string{"a\nb\nc\n"}, logQuery{Tail: -1, Since: began.Add(2 * time.Second)}, "b\nc\n", nil},
		"with timestamps":                {[]string{"a\n"}, logQuery{Tail: -1, Timestamps: true}, "2026-01-02T03:04:01.000000000Z a\n", nil},
		"a byte limit":                   {[]string{"abc\ndef\n"}, logQuery{Tail: -1, LimitBytes: 6}, "abc\nde", errLimitReached},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "0.log")
			log, err := createLog(path, newClock(began))
			if err != nil {
				t.Fatal(err)
			}
			out := log.Stream("stdout")
			for _, text := range test.written {
				if _, err := io.WriteString(out, text); err != nil {
					t.Fatal(err)
				}
			}
			out.Flush()
			log.Close()
			var got strings.Builder
			if err := readLog(t.Context(), path, log, test.query, &got); !errors.Is(err, test.fails) {
				t.Fatalf("error %v, want %v", err, test.fails)
			}
			if got.String() != test.want {
				t.Errorf("read %d bytes %.80q, want %d bytes %.80q", got.Len(), got.String(), len(test.want), test.want)
			}
		})
	}
}

func TestFollowContinuesOverRotations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := createLog(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	f := newLogFollower()
	go func() {
		defer f.End()
		if err := readLog(t.Context(), path, log, logQuery{Tail: -1, Follow: true}, f); err != nil {
			t.Error(err)
		}
	}()
	out, line := log.Stream("stdout"), strings.Repeat("x", 8<<10)
	const lines = 3 * maxFileBytes / (8 << 10)
	for n := range lines {
		if _, err := fmt.Fprintf(out, "%d %s\n", n, line); err != nil {
			t.Fatal(err)
		}
		if n%200 == 0 && !f.WaitFor(fmt.Sprintf("%d xxx", n)) {
			t.Fatalf("line %d is not received", n)
		}
	}
	log.Close()
	if !f.WaitFor(fmt.Sprintf("%d xxx", lines-1)) {
		t.Error("the last line is not received")
	}
	<-f.Ended()
	text := f.Text()
	for n := range lines {
		if strings.Count(text, fmt.Sprintf("\n%d xxx", n)) != 1 && n > 0 {
			t.Fatalf("line %d is not received exactly once", n)
		}
	}
	var kept strings.Builder
	if err := readLog(t.Context(), path, nil, logQuery{Tail: -1}, &kept); err != nil {
		t.Fatal(err)
	}
	if kept.Len() > 2*maxFileBytes+maxLineBytes || !strings.HasSuffix(text, kept.String()) {
		t.Errorf("%d of %d bytes are kept", kept.Len(), len(text))
	}
}

func TestWriteSucceedsWhenDiskFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := createLog(filepath.Join(dir, "0.log"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	out := log.Stream("stdout")
	// Simulate a full disk: the creation of a new file fails now, and succeeds later.
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	log.size = maxFileBytes
	write := func(text string) {
		t.Helper()
		if n, err := io.WriteString(out, text); n != len(text) || err != nil {
			t.Fatalf("writing %d bytes returned %d, %v", len(text), n, err)
		}
	}
	write("lost\n")
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	write("kept\n")
	log.Close()
	write("after the end\n")
	var got strings.Builder
	if err := readLog(t.Context(), log.path, nil, logQuery{Tail: -1}, &got); err != nil {
		t.Fatal(err)
	}
	if got.String() != "kept\n" {
		t.Errorf("the log has %q", got.String())
	}
}
