package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/access/agentaddress"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/access/memberproxy"
)

// The indexes that queries can use.
const (
	// IndexDisk is a full-text index in files.
	IndexDisk = "disk"
	// IndexMemory searches the cached objects without an index.
	IndexMemory = "memory"
)

const (
	defaultMemberQPS   = 40
	defaultMemberBurst = 60
)

// Settings configure search and proxy. They are the same in every process that runs the server.
type Settings struct {
	// DisableSearch and DisableProxy omit the resources "search" and "proxying".
	DisableSearch, DisableProxy bool
	// Index is the index that queries use: IndexDisk or IndexMemory.
	Index string
	// IndexDirectory is the directory of an index on disk, which is used again after a restart. Empty means a
	// temporary directory, which is deleted when the server ends.
	IndexDirectory string
	// AuthorizeCallers shows a caller only objects that the caller may read in their cluster. Otherwise,
	// every caller who may use a resource of this API gets all objects.
	AuthorizeCallers bool
	// Budgets limit the concurrent requests to members.
	Budgets memberproxy.Budgets
	// AgentAddresses configure to which addresses agents may make the server connect.
	AgentAddresses agentaddress.Options
	// MemberThrottle limits the requests of the cache to each member. The zero value means no limit.
	MemberThrottle member.Throttle
}

// DefaultSettings returns the default settings.
func DefaultSettings() Settings {
	return Settings{
		Index: IndexDisk, AuthorizeCallers: true, Budgets: memberproxy.DefaultBudgets(), AgentAddresses: agentaddress.DefaultOptions(),
		MemberThrottle: member.Throttle{QPS: defaultMemberQPS, Burst: defaultMemberBurst},
	}
}

// NoThrottle returns the throttle that does not limit requests.
func NoThrottle() member.Throttle { return member.Throttle{} }

// AddFlags adds the flags that set the settings.
func (o *Settings) AddFlags(flags *pflag.FlagSet) {
	o.Budgets.AddFlags(flags)
	o.AgentAddresses.AddFlags(flags)
	flags.BoolVar(&o.DisableSearch, "disable-search", o.DisableSearch,
		"Leave out the API that searches the cached objects.")
	flags.BoolVar(&o.DisableProxy, "disable-proxy", o.DisableProxy,
		"Leave out the global proxy.")
	flags.StringVar(&o.Index, "search-index", o.Index,
		"Index that is used for queries: disk (a full-text index in files) or memory (no index: queries read all cached objects).")
	flags.StringVar(&o.IndexDirectory, "search-index-directory", o.IndexDirectory,
		"Directory of the index on disk. Replicas must not share it. The index is used again after a restart. By default a temporary directory that is removed at the end.")
	flags.BoolVar(&o.AuthorizeCallers, "authorize-callers", o.AuthorizeCallers,
		"Show a caller only the objects that the caller may read in their clusters. If false, everybody who may use the resource search or proxying reads all cached objects.")
	flags.Float32Var(&o.MemberThrottle.QPS, "cluster-api-qps", o.MemberThrottle.QPS,
		"Maximum requests per second of the cache to one cluster. There is no limit unless this flag or --cluster-api-burst is given.")
	flags.IntVar(&o.MemberThrottle.Burst, "cluster-api-burst", o.MemberThrottle.Burst,
		"Burst of requests of the cache to one cluster.")
}

// Validate returns all mistakes in the settings.
func (o *Settings) Validate() []error {
	var errs []error
	if err := o.Budgets.Validate(); err != nil {
		errs = append(errs, err)
	}
	if known := []string{IndexDisk, IndexMemory}; !slices.Contains(known, o.Index) {
		errs = append(errs, fmt.Errorf("--search-index %q: must be %s", o.Index, strings.Join(known, " or ")))
	}
	if o.Index == IndexMemory && o.IndexDirectory != "" {
		errs = append(errs, fmt.Errorf("--search-index-directory %s: has no effect with --search-index=memory: omit it", o.IndexDirectory))
	}
	return errs
}
