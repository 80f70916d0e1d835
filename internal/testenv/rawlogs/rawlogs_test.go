package rawlogs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	raw := []string{
		`E1128 14:44:30.123456   12345 memcache.go:265] "Unhandled Error" err="no answer"`,
		`2026/11/28 14:44:30 WARNING: [core] [Channel #1 SubChannel #2]grpc: addrConn.createTransport failed to connect`,
		`2026/11/28 14:44:30 http: superfluous response.WriteHeader call`,
		`{"level":"warn","ts":"2026-11-28T14:44:30.123Z","msg":"retrying of unary invoker failed"}`,
	}
	text := "error: there is no Cluster\nWarning: the field is deprecated\nE2E 1128 is no log line\n{\"items\": []}\n"
	for _, line := range raw {
		text += line + "\n"
	}
	if diff := cmp.Diff(raw, Find(text)); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
