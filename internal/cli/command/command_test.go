package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestWhatMembersSayAtTheSameTimeStaysInLines(t *testing.T) {
	const members = 20
	var told bytes.Buffer
	program := &Program{IOStreams: genericiooptions.IOStreams{ErrOut: &told}}
	var speaking sync.WaitGroup
	for i := range members {
		speaking.Go(func() {
			program.HandleWarningHeader(warningCode, "-", "this is old")
			program.HandleWarningHeader(warningCode, "-", "")
			program.HandleWarningHeader(199, "-", "for machines")
			program.Tell("member %02d", i)
		})
	}
	speaking.Wait()

	want := []string{"Warning: this is old"}
	for i := range members {
		want = append(want, fmt.Sprintf("member %02d", i))
	}
	got := strings.Split(strings.TrimSpace(told.String()), "\n")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
