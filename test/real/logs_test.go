package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLogsOutliveTheirPods removes a Pod, whose log must still grow until then.
func TestLogsOutliveTheirPods(t *testing.T) {
	pods, kept, copied := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "copied")
	directory := filepath.Join(pods, "ns_pod_uid", "container")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(directory, "0.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, line := range []string{"first\n", "second\n"} {
		if _, err := log.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if err := linkLogs(pods, kept); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(pods, "ns_pod_uid")); err != nil {
		t.Fatal(err)
	}
	if err := copyLogs(kept, copied); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(copied, "ns_pod_uid_container_0.log")); err != nil || string(got) != "first\nsecond\n" {
		t.Errorf("got %q, %v", got, err)
	}
}
