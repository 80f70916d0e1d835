package controllermanager

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/domain/guard"
	"karmada.io/karmada/internal/programs"
)

// Keys of the flag --deletion-budget.
const (
	namespaceBudgetKey = "namespace"
	fleetBudgetKey     = "fleet"
)

// Deletions are the options for the protection against accidental deletion.
type Deletions struct {
	// Budget holds the number of templates that may lose their last copy within guard.Window: in one
	// namespace (key "namespace"), and in total (key "fleet"). A missing key and 0 mean no limit.
	Budget map[string]int
}

// DefaultDeletions returns options without a deletion budget.
func DefaultDeletions() Deletions { return Deletions{Budget: map[string]int{}} }

// AddFlags implements programs.Options.
func (d *Deletions) AddFlags(set *pflag.FlagSet) {
	set.StringToIntVar(&d.Budget, "deletion-budget", d.Budget, fmt.Sprintf(
		"Number of templates that may lose their last copy in member clusters within %s, as %s=NUMBER,%s=NUMBER for one namespace and for all namespaces. If more templates lose their last copy, all deletions that have not been executed yet are held until \"karmadactl held\" confirms or rejects them. With a budget, each of these deletions waits for 5 seconds. 0 means no limit.",
		guard.Window, namespaceBudgetKey, fleetBudgetKey))
}

// Validate implements programs.Options.
func (d *Deletions) Validate() error {
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(d.Budget)) {
		if key != namespaceBudgetKey && key != fleetBudgetKey {
			errs = append(errs, fmt.Errorf("--deletion-budget %s=%d: the key must be %s or %s", key, d.Budget[key], namespaceBudgetKey,
				fleetBudgetKey))
		}
		if d.Budget[key] < 0 {
			errs = append(errs, fmt.Errorf("--deletion-budget %s=%d: the number must not be negative", key, d.Budget[key]))
		}
	}
	return errors.Join(errs...)
}

func (d *Deletions) configureHost(o *programs.HostOptions) {
	o.DeletionLimits = guard.DefaultLimits()
	o.DeletionLimits.Namespace, o.DeletionLimits.Fleet = d.Budget[namespaceBudgetKey], d.Budget[fleetBudgetKey]
}
