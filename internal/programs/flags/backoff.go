package flags

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/queues"
)

// Backoff configures the delay after a failed reconcile. It starts with the base delay and
// doubles with each consecutive failure up to the maximum.
type Backoff struct {
	BaseDelay, MaxDelay time.Duration
	// QPS is the maximum of retries per second of a queue, after a burst of BucketSize.
	// Priority queues ignore both.
	QPS, BucketSize int
}

// DefaultBackoff is the backoff of Kubernetes controllers.
func DefaultBackoff() Backoff {
	return Backoff{BaseDelay: 5 * time.Millisecond, MaxDelay: 1000 * time.Second, QPS: 10, BucketSize: 100}
}

// Names of the flags that some queues ignore.
const (
	backoffMaxDelay   = "rate-limiter-max-delay"
	BackoffQPS        = "rate-limiter-qps"
	BackoffBucketSize = "rate-limiter-bucket-size"
)

// AddFlags adds the flags that all components with queues have. The texts delays and limits are
// appended to the help. They say which queues use these flags.
func (b *Backoff) AddFlags(flags *pflag.FlagSet, delays, limits string) {
	flags.DurationVar(&b.BaseDelay, "rate-limiter-base-delay", b.BaseDelay, "Delay of the retry after the first failure of an object. "+delays)
	flags.DurationVar(&b.MaxDelay, backoffMaxDelay, b.MaxDelay, "Maximum delay of a retry after consecutive failures of an object. "+delays)
	flags.IntVar(&b.QPS, BackoffQPS, b.QPS, "Maximum retries per second of a queue. "+limits)
	flags.IntVar(&b.BucketSize, BackoffBucketSize, b.BucketSize, "Burst of retries of a queue beyond --rate-limiter-qps. "+limits)
}

// ForQueue returns the backoff of a queue with the default backoff queue. The base delay is that of
// the flags. The maximum is the smaller one of both, or that of the flag if the user gave the
// flag.
func (b *Backoff) ForQueue(queue queues.Backoff, set *pflag.FlagSet) queues.Backoff {
	if set != nil && set.Changed(backoffMaxDelay) {
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
		errs = append(errs, fmt.Errorf("--%s %d: must be at least 1, otherwise no failure is ever retried", BackoffQPS, b.QPS))
	}
	if b.BucketSize < 1 {
		errs = append(errs, fmt.Errorf("--%s %d: must be at least 1, otherwise no failure is ever retried", BackoffBucketSize, b.BucketSize))
	}
	return errors.Join(errs...)
}
