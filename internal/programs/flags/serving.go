package flags

import (
	"errors"
	"fmt"
	"net"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/podenvironment"
)

// Serving contains the addresses on which a program serves health and metrics.
type Serving struct {
	// Health is the address of /healthz. Metrics is the address of /metrics. "0" or an empty
	// address disables the server. If both addresses are equal, one server serves both.
	Health, Metrics string
}

// DefaultServing returns the given health address and the default metrics address of all
// components.
func DefaultServing(health string) Serving {
	return Serving{Health: podenvironment.DefaultListenAddress(health), Metrics: podenvironment.DefaultListenAddress(":8080")}
}

// AddFlags adds the flags that all components have.
func (s *Serving) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.Health, "health-probe-bind-address", s.Health,
		"Address on which the program serves /healthz, such as 127.0.0.1:10357 or :10357. An empty address and 0 disable it.")
	flags.StringVar(&s.Metrics, "metrics-bind-address", s.Metrics,
		"Address on which the program serves /metrics. It may be the address of /healthz. An empty address and 0 disable it.")
}

// Validate returns the errors in the values of the flags.
func (s *Serving) Validate() error {
	return errors.Join(validateAddress("health-probe-bind-address", s.Health), validateAddress("metrics-bind-address", s.Metrics))
}

func validateAddress(flag, address string) error {
	if address == "" || address == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("--%s %q: must be an address with a port such as :8080, or 0 to disable it", flag, address)
	}
	return nil
}
