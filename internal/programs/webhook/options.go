package webhook

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

const maxPort = 65535

// Options are the flags of karmada-webhook.
type Options struct {
	// BindAddress and SecurePort are the listen address. Port 0 selects a free port.
	BindAddress string
	SecurePort  int
	// CertDir contains the serving certificate and its key. CertName and KeyName are the names of
	// these files.
	CertDir, CertName, KeyName string
	// MinTLSVersion is the minimum TLS version: 1.0, 1.1, 1.2 or 1.3.
	MinTLSVersion string
	Rules
	// Connection configures the client of the control plane. Serving configures health and
	// metrics.
	Connection flags.Connection
	Serving    flags.Serving
}

// NewOptions returns the default options. The feature gates determine which validation rules
// apply, and which fields cause a warning because they have no effect.
func NewOptions(set *gates.Set) *Options {
	return &Options{
		BindAddress:   podenvironment.DefaultListenAddress("0.0.0.0"),
		SecurePort:    8443,
		CertDir:       "/tmp/k8s-webhook-server/serving-certs",
		CertName:      "tls.crt",
		KeyName:       "tls.key",
		MinTLSVersion: "1.3",
		Connection:    flags.DefaultConnection(),
		Serving:       flags.DefaultServing(":8000"),
		Rules:         Rules{gates: set},
	}
}

// AddFlags adds the flags of the program.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.BindAddress, "bind-address", o.BindAddress, "IP address on which webhook requests are served.")
	set.IntVar(&o.SecurePort, "secure-port", o.SecurePort, "HTTPS port on which webhook requests are served. 0 selects a free port.")
	set.StringVar(&o.CertDir, "cert-dir", o.CertDir, "Directory of the serving certificate and its key. Changed files are reloaded.")
	set.StringVar(&o.CertName, "tls-cert-file-name", o.CertName, "File name of the serving certificate in --cert-dir.")
	set.StringVar(&o.KeyName, "tls-private-key-file-name", o.KeyName, "File name of the private key in --cert-dir.")
	set.StringVar(&o.MinTLSVersion, "tls-min-version", o.MinTLSVersion, "Minimum TLS version: 1.0, 1.1, 1.2 or 1.3.")
	o.Rules.AddFlags(set)
	o.Connection.AddFlags(set)
	o.Serving.AddFlags(set)
}

// Validate returns every error in the values of the flags.
func (o *Options) Validate() error {
	errs := []error{o.Connection.Validate(), o.Serving.Validate(), o.Rules.Validate()}
	if net.ParseIP(o.BindAddress) == nil {
		errs = append(errs, fmt.Errorf("--bind-address %q: must be an IP address, such as 0.0.0.0 for all", o.BindAddress))
	}
	if o.SecurePort < 0 || o.SecurePort > maxPort {
		errs = append(errs, fmt.Errorf("--secure-port %d: must be between 0 and %d", o.SecurePort, maxPort))
	}
	if _, known := tlsVersions()[o.MinTLSVersion]; !known {
		errs = append(errs, fmt.Errorf("--tls-min-version %q: must be one of %s", o.MinTLSVersion,
			strings.Join(slices.Sorted(maps.Keys(tlsVersions())), ", ")))
	}
	for _, file := range []struct{ flag, name string }{{"tls-cert-file-name", o.CertName}, {"tls-private-key-file-name", o.KeyName}} {
		if file.name == "" || file.name != filepath.Base(file.name) {
			errs = append(errs, fmt.Errorf("--%s %q: must be the name of a file in --cert-dir", file.flag, file.name))
		}
	}
	return errors.Join(errs...)
}

func tlsVersions() map[string]uint16 {
	return map[string]uint16{"1.0": tls.VersionTLS10, "1.1": tls.VersionTLS11, "1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}
}

func (o *Options) certFile() string { return filepath.Join(o.CertDir, o.CertName) }
func (o *Options) keyFile() string  { return filepath.Join(o.CertDir, o.KeyName) }
