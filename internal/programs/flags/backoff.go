package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/queues"
)

// Backoff is how long an object that failed waits: the base delay, doubled with
// every failure in a row up to the limit.
type Backoff struct {
	BaseDelay, MaxDelay time.Duration
	// QPS is how many failed objects of a queue are tried again in a second, after
	// BucketSize that come at once. Queues that know what is urgent need no such
	// limit and heed neither.
	QPS, BucketSize int
}

// DefaultBackoff is that of Kubernetes controllers.
func DefaultBackoff() Backoff {
	return Backoff{BaseDelay: 5 * time.Millisecond, MaxDelay: 1000 * time.Second, QPS: 10, BucketSize: 100}
}

// Names of the flags that not every queue heeds.
const (
	maxDelay          = "rate-limiter-max-delay"
	BackoffQPS        = "rate-limiter-qps"
	BackoffBucketSize = "rate-limiter-bucket-size"
)

// AddFlags adds the flags that all components with queues have. delays says which
// queues heed the delays, and limits which heed the limits.
func (b *Backoff) AddFlags(flags *pflag.FlagSet, delays, limits string) {
	flags.DurationVar(&b.BaseDelay, "rate-limiter-base-delay", b.BaseDelay, "How long an object waits after its first failure. "+delays)
	flags.DurationVar(&b.MaxDelay, maxDelay, b.MaxDelay, "How long an object waits at most after failures in a row. "+delays)
	flags.IntVar(&b.QPS, BackoffQPS, b.QPS, "Failed objects of a queue that are tried again in a second. "+limits)
	flags.IntVar(&b.BucketSize, BackoffBucketSize, b.BucketSize, "Failed objects of a queue that may exceed that rate at once. "+limits)
}

// Of is the back-off of queues that wait that long when no flag was given: the base
// delay of the flags, and their limit where it is less. A limit that was given counts
// in any case.
func (b *Backoff) Of(queue queues.Backoff, set *pflag.FlagSet) queues.Backoff {
	if set != nil && set.Changed(maxDelay) {
		return queues.Backoff{Base: b.BaseDelay, Max: b.MaxDelay}
	}
	return queues.Backoff{Base: b.BaseDelay, Max: max(b.BaseDelay, min(queue.Max, b.MaxDelay))}
}

// Validate returns the mistakes.
func (b *Backoff) Validate() error {
	var errs []error
	if b.BaseDelay <= 0 {
		errs = append(errs, fmt.Errorf("--rate-limiter-base-delay %s: must be positive", b.BaseDelay))
	}
	if b.MaxDelay < b.BaseDelay {
		errs = append(errs, fmt.Errorf("--rate-limiter-max-delay %s: must not be less than the base delay of %s", b.MaxDelay, b.BaseDelay))
	}
	if b.QPS < 1 {
		errs = append(errs, fmt.Errorf("--%s %d: must be at least 1, else nothing is ever tried again", BackoffQPS, b.QPS))
	}
	if b.BucketSize < 1 {
		errs = append(errs, fmt.Errorf("--%s %d: must be at least 1, else nothing is ever tried again", BackoffBucketSize, b.BucketSize))
	}
	return errors.Join(errs...)
}
