package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// processStat is a line of stat with 250 ticks of user and 50 of system time.
func processStat(name, parent string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("1 (" + name + ") S " + parent + " 1 1 0 -1 4194560 9 9 9 9 250 50 7 7 20 0 9 0 99 99 99\n")}
}

func processStatus(kibibytes string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte("Name:\tkarmada\nVmHWM:\t  999 kB\nVmRSS:\t  " + kibibytes + " kB\nThreads:\t9\n")}
}

func TestProcessUsage(t *testing.T) {
	proc := fstest.MapFS{
		"10/stat": processStat("karmada", "1"), "10/status": processStatus("1024"),
		"11/stat": processStat("a (odd) name", "10"), "11/status": processStatus("512"),
		"12/stat": processStat("grandchild", "11"), "12/status": processStatus("256"),
		"20/stat": processStat("stranger", "1"), "20/status": processStatus("9999"),
		"uptime": &fstest.MapFile{Data: []byte("1 2")},
	}
	tests := map[string]struct {
		children bool
		want     usage
	}{
		"without descendants": {false, usage{3 * time.Second, 1 << 20}},
		"with descendants":    {true, usage{9 * time.Second, 1<<20 + 1<<19 + 1<<18}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := processReader{proc: proc, children: test.children}.usageByName(map[string]int{"karmada": 10})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(map[string]usage{"karmada": test.want}, got, cmp.AllowUnexported(usage{})); diff != "" {
				t.Errorf("usageByName() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsageOfMissingProcess(t *testing.T) {
	var proc fs.FS = fstest.MapFS{}
	if got, err := (processReader{proc: proc}).usageByName(map[string]int{"karmada": 10}); err == nil {
		t.Errorf("usageByName() = %v, want an error", got)
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("1 (karmada) S 1 1 1 0 -1 4194560 9 9 9 9 250 50 7 7 20 0 9 0 99 99 99")
	f.Add("1 (a) b) S 1")
	f.Add("")
	f.Fuzz(func(t *testing.T, stat string) {
		cpu, parent, err := parseStat(stat)
		if err != nil && (cpu != 0 || parent != 0) {
			t.Errorf("parseStat(%q) = %v, %d with error %v", stat, cpu, parent, err)
		}
	})
}

func TestProcessesFileIsReadEachTime(t *testing.T) {
	o := options{processesFile: filepath.Join(t.TempDir(), "processes.json")}
	for _, pid := range []string{"1", "2"} {
		if err := os.WriteFile(o.processesFile, []byte(`[{"name":"karmada","pid":`+pid+`},{"name":"member1","pid":7}]`), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := o.pids()
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]int{"karmada": int(pid[0] - '0'), "member1": 7}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("pids() (-want +got):\n%s", diff)
		}
	}
}
