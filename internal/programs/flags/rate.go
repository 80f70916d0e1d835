package flags

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Rate limits the requests of a client if the user set one of its flags. By default there is no
// limit, because API servers protect themselves with API Priority and Fairness, and know their
// load better than a client.
type Rate struct {
	// QPS is the maximum number of requests per second. Burst is the number of requests that may
	// exceed QPS at once.
	QPS   float32
	Burst int

	flags  *pflag.FlagSet
	prefix string
}

// DefaultRate returns the default values of both flags. The default of a flag applies only if
// the user set the other flag.
func DefaultRate() Rate { return Rate{QPS: 40, Burst: 60} }

// AddFlags adds --prefix-qps and --prefix-burst. server names the server in the help.
func (r *Rate) AddFlags(flags *pflag.FlagSet, prefix, server string) {
	r.flags, r.prefix = flags, prefix
	const unlimited = "There is no limit unless this flag or --%s is given."
	flags.Float32Var(&r.QPS, prefix+"-qps", r.QPS,
		fmt.Sprintf("Maximum number of requests per second to %s. "+unlimited, server, prefix+"-burst"))
	flags.IntVar(&r.Burst, prefix+"-burst", r.Burst,
		fmt.Sprintf("Number of requests to %s that may exceed the maximum rate at once. "+unlimited, server, prefix+"-qps"))
}

// IsGiven reports whether the user set one of the flags.
func (r *Rate) IsGiven() bool {
	return r.flags != nil && (r.flags.Changed(r.prefix+"-qps") || r.flags.Changed(r.prefix+"-burst"))
}

// Limit returns the values for a client configuration. A negative QPS means no limit.
func (r *Rate) Limit() (qps float32, burst int) {
	if !r.IsGiven() || r.QPS < 0 {
		return -1, 0
	}
	return r.QPS, r.Burst
}

// Validate returns the errors in the values of the flags.
func (r *Rate) Validate() error {
	if !r.IsGiven() || r.QPS < 0 {
		return nil
	}
	var errs []error
	if r.QPS == 0 {
		errs = append(errs, fmt.Errorf("--%s-qps 0: no request could ever be sent; use a positive value, or a negative value for no limit",
			r.prefix))
	}
	if r.Burst < 1 {
		errs = append(errs, fmt.Errorf("--%s-burst %d: must be at least 1", r.prefix, r.Burst))
	}
	return errors.Join(errs...)
}
