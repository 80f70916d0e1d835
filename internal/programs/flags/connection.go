// Package flags defines the flags that several programs share: the connection to the control
// plane, leader election, the addresses of health and metrics, and the backoff of retries. Each
// group of flags is a struct with the defaults, the flags and the validation of this group.
package flags

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"karmada.io/karmada/internal/access/podenvironment"
)

// Connection configures the client of one API server.
type Connection struct {
	// Kubeconfig is the path of a kubeconfig file. If it is empty, $KUBECONFIG is used, and if that
	// is empty too, the service account of the Pod.
	Kubeconfig string
	// Master is the server address that replaces the server address of the kubeconfig.
	Master string
	// Rate limits the rate of the requests.
	Rate Rate

	// server names the server in the help. Empty means the control plane.
	server string
}

// DefaultConnection returns a connection to the control plane without a kubeconfig.
func DefaultConnection() Connection { return Connection{Rate: DefaultRate()} }

// MemberConnection returns a connection to a member without a kubeconfig.
func MemberConnection(rate Rate) Connection {
	return Connection{Rate: rate, server: "the member cluster"}
}

func (c *Connection) serverName() string { return cmp.Or(c.server, "the control plane") }

// AddFlags adds the flags that all components have.
func (c *Connection) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&c.Kubeconfig, "kubeconfig", c.Kubeconfig,
		"Kubeconfig file of "+c.serverName()+". If it is empty, the program uses $KUBECONFIG, or else the service account of its Pod.")
	c.Rate.AddFlags(flags, "kube-api", "the API server of "+c.serverName())
}

// AddMasterFlag adds --master, which some components have.
func (c *Connection) AddMasterFlag(flags *pflag.FlagSet) {
	flags.StringVar(&c.Master, "master", c.Master, "URL of the API server of "+c.serverName()+". It overrides the URL in the kubeconfig.")
}

// Validate returns the errors in the values of the flags.
func (c *Connection) Validate() error { return c.Rate.Validate() }

// errNoKubeconfig is returned if the address of the API server is not configured.
var errNoKubeconfig = errors.New("the API server is not configured: set --kubeconfig or $KUBECONFIG to its kubeconfig")

// Config returns the client configuration. program is the user agent of the requests.
func (c *Connection) Config(program string) (*rest.Config, error) {
	config, err := c.load()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = c.Rate.Limit()
	return rest.AddUserAgent(config, program), nil
}

func (c *Connection) load() (*rest.Config, error) {
	from, path := "--kubeconfig", c.Kubeconfig
	if path == "" {
		from, path = "$KUBECONFIG", os.Getenv(clientcmd.RecommendedConfigPathEnvVar)
	}
	rules := &clientcmd.ClientConfigLoadingRules{}
	switch {
	case c.Kubeconfig != "":
		rules.ExplicitPath = path
	case path != "":
		rules.Precedence = filepath.SplitList(path)
	default:
		return c.inCluster()
	}
	overrides := &clientcmd.ConfigOverrides{}
	overrides.ClusterInfo.Server = c.Master
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig given by %s: %w", from, err)
	}
	return config, nil
}

func (c *Connection) inCluster() (*rest.Config, error) {
	config, err := podenvironment.InCluster()
	switch {
	case err == nil && c.Master != "":
		config.Host = c.Master
		return config, nil
	case err == nil:
		return config, nil
	case errors.Is(err, rest.ErrNotInCluster) && c.Master != "":
		return &rest.Config{Host: c.Master}, nil
	case errors.Is(err, rest.ErrNotInCluster):
		return nil, errNoKubeconfig
	default:
		return nil, fmt.Errorf("reading the service account of this Pod: %w", err)
	}
}
