package flags

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"
)

// Serving is where a program tells how it is.
type Serving struct {
	// Health is the address of /healthz, Metrics that of /metrics; "0" or empty
	// serves none. Equal addresses make one server.
	Health, Metrics string
}

// DefaultServing has metrics on the port that all components have.
func DefaultServing(health string) Serving {
	return Serving{Health: OwnAddress(health), Metrics: OwnAddress(":8080")}
}

// AddFlags adds the flags that all components have.
func (s *Serving) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Health, "health-probe-bind-address", s.Health,
		"Address on which /healthz is served, such as 127.0.0.1:10357 or :10357. 0 or empty serves none.")
	flags.StringVar(&s.Metrics, "metrics-bind-address", s.Metrics,
		"Address on which /metrics is served; it may be that of /healthz. 0 or empty serves none.")
}

// Validate returns the mistakes.
func (s *Serving) Validate() error {
	return errors.Join(validAddress("health-probe-bind-address", s.Health), validAddress("metrics-bind-address", s.Metrics))
}

func validAddress(flag, address string) error {
	if address == "" || address == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--%s %q: must be an address and a port such as :8080, or 0 for none", flag, address)
	}
	return nil
}
