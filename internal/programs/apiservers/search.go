package apiservers

import (
	"context"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/search"
)

// NewSearch returns the component karmada-search. The option --feature-gates of its program accepts the gates of
// Karmada and the gates of the API server library.
func NewSearch(*gates.Set) programs.Component {
	inProcess := &SearchInProcess{Settings: search.DefaultSettings()}
	return programs.Component{
		Name: programs.Search, Help: "searches the objects of all member clusters and serves them as one cluster",
		Options:    inProcess,
		Server:     &programs.Server{New: inProcess.newServer, APIServices: []string{search.APIServiceName}, IsOptional: true},
		Metrics:    programs.CollectedMetrics(search.Metrics),
		NewProgram: func(_ programs.Component, set *gates.Set) command.Options { return newSearchProgram(set) }, OwnGates: true,
	}
}

func newSearchProgram(set *gates.Set) *Program[*search.Options] {
	options, err := search.NewOptions()
	if err == nil {
		options.Gates = set
	}
	return NewProgram(programs.Search, options, err, startSearch)
}

// gcPercent is the default of GOGC. Go's default of 100 would double the heap, which consists mostly of cached
// objects: while the index is built, 100 000 Pods of 3 KiB need 331 MiB with it, and 240 MiB with 40.
const gcPercent = 40

// startSearch creates the server of the program.
func startSearch(ctx context.Context, options *search.Options, set *pflag.FlagSet) (run func(context.Context) error, err error) {
	ctrllog.SetLogger(klog.Background())
	command.LowerGCTarget(gcPercent)
	options.Settings = withOptionalThrottle(options.Settings, set)
	options.Registerer = legacyregistry.Registerer()
	if options.Lock, err = newLock(options.Karmada); err != nil {
		return nil, err
	}
	server, err := search.New(ctx, options)
	if err != nil {
		return nil, err
	}
	return server.Run, nil
}

// newLock returns the Lease of the replicas. All replicas serve requests, but only one writes statuses and to
// OpenSearch.
func newLock(karmada *rest.Config) (resourcelock.Interface, error) {
	config := rest.AddUserAgent(rest.CopyConfig(karmada), "leader-election")
	// The replica must not lose the Lease because a request hangs.
	config.Timeout = lockTimeout
	return programs.NewLease(config, flags.DefaultElection(programs.Search))
}

const lockTimeout = 5 * time.Second

// withOptionalThrottle returns settings that limit the requests to members only if a flag sets a
// limit.
func withOptionalThrottle(settings search.Settings, set *pflag.FlagSet) search.Settings {
	if set == nil || len(flags.GivenFlags(set, "cluster-api-qps", "cluster-api-burst")) == 0 {
		settings.MemberThrottle = search.NoThrottle()
	}
	return settings
}
