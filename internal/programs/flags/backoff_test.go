package flags_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/programs/flags"
)

func TestBackoffForQueue(t *testing.T) {
	tests := map[string]struct {
		args []string
		want loop.Backoff
	}{
		"without flags the queue has its own maximum":  {want: loop.Backoff{Base: 5 * time.Millisecond, Max: time.Minute}},
		"a base delay alone":                           {args: []string{"--rate-limiter-base-delay=1s"}, want: loop.Backoff{Base: time.Second, Max: time.Minute}},
		"a base delay above the maximum of the queue":  {args: []string{"--rate-limiter-base-delay=2m"}, want: loop.Backoff{Base: 2 * time.Minute, Max: 2 * time.Minute}},
		"a smaller maximum":                            {args: []string{"--rate-limiter-max-delay=10s"}, want: loop.Backoff{Base: 5 * time.Millisecond, Max: 10 * time.Second}},
		"a larger maximum":                             {args: []string{"--rate-limiter-max-delay=1h"}, want: loop.Backoff{Base: 5 * time.Millisecond, Max: time.Hour}},
		"the default of the flag, if given explicitly": {args: []string{"--rate-limiter-max-delay=16m40s"}, want: loop.Backoff{Base: 5 * time.Millisecond, Max: 1000 * time.Second}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, backoff := pflag.NewFlagSet("test", pflag.ContinueOnError), flags.DefaultBackoff()
			backoff.AddFlags(set, "", "")
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, backoff.ForQueue(loop.DefaultBackoff(), set)); diff != "" {
				t.Errorf("backoff (-want +got):\n%s", diff)
			}
		})
	}
}
