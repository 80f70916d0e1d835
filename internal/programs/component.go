package programs

import (
	"context"
	"net"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

// Names of the components.
const (
	ControllerManager   = "karmada-controller-manager"
	Scheduler           = "karmada-scheduler"
	Descheduler         = "karmada-descheduler"
	Agent               = "karmada-agent"
	Webhook             = "karmada-webhook"
	AggregatedAPIServer = "karmada-aggregated-apiserver"
	SchedulerEstimator  = "karmada-scheduler-estimator"
	Search              = "karmada-search"
)

// Component is one row of the table of components: a program of Karmada that runs controllers or a
// server. The package of the component creates the row with the feature gates of a process. The
// gates may still change until Add or Server.New is called.
type Component struct {
	// Name is the name of the component and of its program.
	Name string
	// Help describes the component in one line.
	Help string
	// RequiredKinds are the kinds of Karmada that the component requires to start.
	RequiredKinds []client.Object
	// Interprets reports whether the component interprets objects. Its host then loads the
	// configuration of the interpreter before controllers start, and watches it. The kinds of this
	// configuration are required.
	Interprets bool
	// Options are the options that the component has in every process that runs it. nil means that
	// the component has no options.
	Options Options
	// IneffectiveFlags returns the flags that the user gave and that have no effect. nil means that
	// there are none.
	IneffectiveFlags func() []string
	// ConfigureHost sets the options of the host that depend on the options of the component. nil
	// means that no option of the host depends on them.
	ConfigureHost func(*HostOptions)
	// Add registers the component with a host. It is called each time a host starts. It is nil if
	// no host runs the component.
	Add func(*Host) error
	// Server is the server of the component. A control plane in one process starts it before its
	// host, because the kinds of Karmada depend on the server. nil means that the component has no
	// server.
	Server *Server
	// NewProgram returns the flags of the separate program that runs the component. Components that
	// a host runs use Process.
	NewProgram func(component Component, set *gates.Set) command.Options
	// Metrics describes the metrics of a component that is not hosted or that needs a special host. nil
	// means that the metrics are those that Add registers.
	Metrics func(context.Context) ([]Metric, error)
	// OwnGates means that the separate program adds its own flag --feature-gates, or has no such
	// flag.
	OwnGates bool
}

// Options are the options of a component or controller, with their defaults.
type Options interface {
	// AddFlags adds the flags that set the options.
	AddFlags(*pflag.FlagSet)
	// Validate returns every mistake. Each error names the flag, its value and the remedy.
	Validate() error
}

// Server describes how a component serves requests of a control plane in the same process.
type Server struct {
	// New creates the server. It does not serve before Run is called. The end of the context ends
	// only New, and not the server.
	New func(context.Context, ControlPlane) (*RunningServer, error)
	// APIServices are the names of the APIServices with which the server is aggregated. The chart
	// contains them. Empty means that the server serves no API.
	APIServices []string
	// IsOptional means that a user can exclude the server from a control plane in one process.
	IsOptional bool
}

// ControlPlane contains what a control plane provides to a server in the same process.
type ControlPlane struct {
	// Karmada is the client configuration of the API server.
	Karmada *rest.Config
	// EtcdFlags are the flags with which an API server connects to etcd.
	EtcdFlags []string
	// Listener is the listener on which the server serves.
	Listener net.Listener
	// CertFile and KeyFile are the files of the serving certificate. The files are replaced before
	// the certificate expires.
	CertFile, KeyFile string
	// Dir is a directory for the data of the component. It may not exist yet.
	Dir string
}

// RunningServer is a server with an open listener.
type RunningServer struct {
	// Run serves until its context ends.
	Run func(context.Context) error
	// Ready is closed when the server responds to requests. nil means that the server responds
	// immediately.
	Ready <-chan struct{}
}

// LogIneffectiveFlags logs the flags of the component that the user gave and that have no effect.
func (c *Component) LogIneffectiveFlags(ctx context.Context) {
	if c.IneffectiveFlags != nil {
		flags.LogIneffective(ctx, c.Name, c.IneffectiveFlags())
	}
}
