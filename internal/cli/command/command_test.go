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

func TestConcurrentMessages(t *testing.T) {
	const members = 20
	var output bytes.Buffer
	program := &Program{IOStreams: genericiooptions.IOStreams{ErrOut: &output}}
	var writers sync.WaitGroup
	for i := range members {
		writers.Go(func() {
			program.HandleWarningHeader(warningCode, "-", "this is old")
			program.HandleWarningHeader(warningCode, "-", "")
			program.HandleWarningHeader(199, "-", "for machines")
			program.Messagef("member %02d", i)
		})
	}
	writers.Wait()

	want := []string{"Warning: this is old"}
	for i := range members {
		want = append(want, fmt.Sprintf("member %02d", i))
	}
	got := strings.Split(strings.TrimSpace(output.String()), "\n")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}
