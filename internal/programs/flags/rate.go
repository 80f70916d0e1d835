package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Rate limits the requests of a client. It does so only if one of its flags was
// given: API servers protect themselves, by priority and fairness, and know better
// than a client when they are busy.
type Rate struct {
	// QPS is the requests per second, Burst how many may exceed it at once.
	QPS   float32
	Burst int

	flags  *pflag.FlagSet
	prefix string
}

// DefaultRate is the limit once there is one.
func DefaultRate() Rate { return Rate{QPS: 40, Burst: 60} }

// AddFlags adds --prefix-qps and --prefix-burst, about requests to whom.
func (r *Rate) AddFlags(flags *pflag.FlagSet, prefix, whom string) {
	r.flags, r.prefix = flags, prefix
	const unlimited = "There is no limit unless this flag or --%s is given."
	flags.Float32Var(&r.QPS, prefix+"-qps", r.QPS, fmt.Sprintf("Requests per second to %s. "+unlimited, whom, prefix+"-burst"))
	flags.IntVar(&r.Burst, prefix+"-burst", r.Burst, fmt.Sprintf("Requests to %s that may exceed the rate at once. "+unlimited, whom, prefix+"-qps"))
}

// Given reports that a flag asks for a limit.
func (r *Rate) Given() bool {
	return r.flags != nil && (r.flags.Changed(r.prefix+"-qps") || r.flags.Changed(r.prefix+"-burst"))
}

// Limit is what a client configuration takes: a negative rate has no limit.
func (r *Rate) Limit() (qps float32, burst int) {
	if !r.Given() || r.QPS < 0 {
		return -1, 0
	}
	return r.QPS, r.Burst
}

// Validate returns the mistakes.
func (r *Rate) Validate() error {
	if !r.Given() || r.QPS < 0 {
		return nil
	}
	var errs []error
	if r.QPS == 0 {
		errs = append(errs, fmt.Errorf("--%s-qps 0: nothing could ever be asked; give a positive rate, or a negative one for no limit", r.prefix))
	}
	if r.Burst < 1 {
		errs = append(errs, fmt.Errorf("--%s-burst %d: must be at least 1", r.prefix, r.Burst))
	}
	return errors.Join(errs...)
}
