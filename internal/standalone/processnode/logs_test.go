package processnode

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// clockAt is a clock that goes on by a second each time it is read.
func clockAt(start time.Time) func() time.Time {
	return func() time.Time {
		start = start.Add(time.Second)
		return start
	}
}

func TestLogsAreReadAsAsked(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	long := strings.Repeat("x", maxLogLine+10)
	tests := map[string]struct {
		written []string
		query   logQuery
		want    string
		fails   error
	}{
		"all of it":                      {[]string{"a\nb\n"}, logQuery{tail: -1}, "a\nb\n", nil},
		"lines that came in pieces":      {[]string{"a", "b\nc", "\n"}, logQuery{tail: -1}, "ab\nc\n", nil},
		"a last line without an end":     {[]string{"a\nb"}, logQuery{tail: -1}, "a\nb", nil},
		"empty lines":                    {[]string{"\n\na\n"}, logQuery{tail: -1}, "\n\na\n", nil},
		"a line that is very long":       {[]string{long + "\nb\n"}, logQuery{tail: -1}, long + "\nb\n", nil},
		"one that comes in large pieces": {[]string{long, long, "\nb\n"}, logQuery{tail: -1}, long + long + "\nb\n", nil},
		"the last lines":                 {[]string{"a\nb\nc\n"}, logQuery{tail: 2}, "b\nc\n", nil},
		"no lines":                       {[]string{"a\n"}, logQuery{tail: 0}, "", nil},
		"those since a time":             {[]string{"a\nb\nc\n"}, logQuery{tail: -1, since: began.Add(2 * time.Second)}, "b\nc\n", nil},
		"with their time":                {[]string{"a\n"}, logQuery{tail: -1, timestamps: true}, "2026-01-02T03:04:01.000000000Z a\n", nil},
		"so many bytes":                  {[]string{"abc\ndef\n"}, logQuery{tail: -1, limit: 6}, "abc\nde", errEnough},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "0.log")
			log, err := newLog(path, clockAt(began))
			if err != nil {
				t.Fatal(err)
			}
			out := log.stream("stdout")
			for _, text := range test.written {
				if _, err := io.WriteString(out, text); err != nil {
					t.Fatal(err)
				}
			}
			out.flush()
			log.close()
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

func TestALogIsBoundedAndFollowedOverItsTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "0.log")
	log, err := newLog(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	f := &follower{news: make(chan struct{}, 1), ended: make(chan struct{})}
	go func() {
		defer close(f.ended)
		if err := readLog(t.Context(), path, log, logQuery{tail: -1, follow: true}, f); err != nil {
			t.Error(err)
		}
	}()
	out, line := log.stream("stdout"), strings.Repeat("x", 8<<10)
	const lines = 3 * maxLogFile / (8 << 10)
	for n := range lines {
		if _, err := fmt.Fprintf(out, "%d %s\n", n, line); err != nil {
			t.Fatal(err)
		}
		if n%200 == 0 && !f.until(fmt.Sprintf("%d xxx", n)) {
			t.Fatalf("line %d does not come", n)
		}
	}
	log.close()
	if !f.until(fmt.Sprintf("%d xxx", lines-1)) {
		t.Error("the last line does not come")
	}
	<-f.ended
	text := f.text()
	for n := range lines {
		if strings.Count(text, fmt.Sprintf("\n%d xxx", n)) != 1 && n > 0 {
			t.Fatalf("line %d does not come once", n)
		}
	}
	var kept strings.Builder
	if err := readLog(t.Context(), path, nil, logQuery{tail: -1}, &kept); err != nil {
		t.Fatal(err)
	}
	if kept.Len() > 2*maxLogFile+maxLogLine || !strings.HasSuffix(text, kept.String()) {
		t.Errorf("%d bytes are kept of %d", kept.Len(), len(text))
	}
}
