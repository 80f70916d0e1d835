package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/loop"
)

// Backoff configures the delay after a failed reconciliation. The delay starts with BaseDelay and
// doubles with each consecutive failure up to MaxDelay.
type Backoff struct {
	BaseDelay, MaxDelay time.Duration
	// QPS is the maximum number of retries of a queue per second. BucketSize is the number of
	// retries that may exceed QPS at once. Priority queues ignore both fields.
	QPS, BucketSize int
}

// DefaultBackoff returns the default backoff of Kubernetes controllers.
func DefaultBackoff() Backoff {
	return Backoff{BaseDelay: 5 * time.Millisecond, MaxDelay: 1000 * time.Second, QPS: 10, BucketSize: 100}
}

// Names of the flags that some queues ignore.
const (
	backoffMaxDelay   = "rate-limiter-max-delay"
	BackoffQPS        = "rate-limiter-qps"
	BackoffBucketSize = "rate-limiter-bucket-size"
)

// AddFlags adds the flags of all components that have queues. delays and limits are appended to
// the help text, and name the queues that use these flags.
func (b *Backoff) AddFlags(flags *pflag.FlagSet, delays, limits string) {
	flags.DurationVar(&b.BaseDelay, "rate-limiter-base-delay", b.BaseDelay,
		"Delay before an object is retried after its first failure. The delay doubles with each consecutive failure. "+delays)
	flags.DurationVar(&b.MaxDelay, backoffMaxDelay, b.MaxDelay,
		"Maximum delay before an object is retried after consecutive failures. "+delays)
	flags.IntVar(&b.QPS, BackoffQPS, b.QPS, "Maximum number of retries per second in each queue. "+limits)
	flags.IntVar(&b.BucketSize, BackoffBucketSize, b.BucketSize,
		"Number of retries in each queue that may exceed --rate-limiter-qps at once. "+limits)
}

// ForQueue returns the backoff of a queue. queue is the default backoff of this queue. The base
// delay is the value of its flag. If the user set the flag for the maximum delay, the maximum is
// the value of this flag. Otherwise the maximum is the default of the flag or of the queue,
// whichever is smaller, but not less than the base delay.
func (b *Backoff) ForQueue(queue loop.Backoff, set *pflag.FlagSet) loop.Backoff {
	if set != nil && set.Changed(backoffMaxDelay) {
		return loop.Backoff{Base: b.BaseDelay, Max: b.MaxDelay}
	}
	return loop.Backoff{Base: b.BaseDelay, Max: max(b.BaseDelay, min(queue.Max, b.MaxDelay))}
}

// Validate returns the errors in the values of the flags.
func (b *Backoff) Validate() error {
	var errs []error
	if b.BaseDelay <= 0 {
		errs = append(errs, fmt.Errorf("--rate-limiter-base-delay %s: must be positive", b.BaseDelay))
	}
	if b.MaxDelay < b.BaseDelay {
		errs = append(errs, fmt.Errorf("--rate-limiter-max-delay %s: must not be less than the base delay of %s", b.MaxDelay, b.BaseDelay))
	}
	if b.QPS < 1 {
		errs = append(errs, fmt.Errorf("--%s %d: must be at least 1, otherwise no failure is ever retried", BackoffQPS, b.QPS))
	}
	if b.BucketSize < 1 {
		errs = append(errs, fmt.Errorf("--%s %d: must be at least 1, otherwise no failure is ever retried", BackoffBucketSize, b.BucketSize))
	}
	return errors.Join(errs...)
}
