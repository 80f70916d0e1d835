package flags_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/queues"
	"karmada.io/karmada/internal/programs/flags"
)

func TestALimitHoldsForAQueueWhenItIsLessOrWasGiven(t *testing.T) {
	tests := map[string]struct {
		args []string
		want queues.Backoff
	}{
		"without flags the queue decides":     {want: queues.Backoff{Base: 5 * time.Millisecond, Max: time.Minute}},
		"a base delay alone":                  {args: []string{"--rate-limiter-base-delay=1s"}, want: queues.Backoff{Base: time.Second, Max: time.Minute}},
		"a base delay beyond what is usual":   {args: []string{"--rate-limiter-base-delay=2m"}, want: queues.Backoff{Base: 2 * time.Minute, Max: 2 * time.Minute}},
		"a shorter limit":                     {args: []string{"--rate-limiter-max-delay=10s"}, want: queues.Backoff{Base: 5 * time.Millisecond, Max: 10 * time.Second}},
		"a longer limit":                      {args: []string{"--rate-limiter-max-delay=1h"}, want: queues.Backoff{Base: 5 * time.Millisecond, Max: time.Hour}},
		"the default of the flag, when given": {args: []string{"--rate-limiter-max-delay=16m40s"}, want: queues.Backoff{Base: 5 * time.Millisecond, Max: 1000 * time.Second}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, of := pflag.NewFlagSet("test", pflag.ContinueOnError), flags.DefaultBackoff()
			of.AddFlags(set, "", "")
			if err := set.Parse(test.args); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, of.Of(queues.DefaultBackoff(), set)); diff != "" {
				t.Errorf("back-off (-want +got):\n%s", diff)
			}
		})
	}
}
