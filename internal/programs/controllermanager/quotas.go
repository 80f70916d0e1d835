package controllermanager

import (
	"time"

	"github.com/spf13/pflag"

	"karmada.io/karmada/internal/controllers/quotaenforcement"
	"karmada.io/karmada/internal/controllers/quotastatus"
	"karmada.io/karmada/internal/controllers/quotasync"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
)

const quotaSyncPeriodFlag = "federated-resource-quota-sync-period"

// Quotas contains the options of quotaenforcement that flags set.
type Quotas struct {
	// Period is the interval at which the usage of all quotas is computed again.
	Period time.Duration
}

// AddFlags implements programs.Options.
func (q *Quotas) AddFlags(set *pflag.FlagSet) {
	set.DurationVar(&q.Period, quotaSyncPeriodFlag, q.Period,
		"Interval at which the usage of each FederatedResourceQuota is computed again even if nothing has changed. Changes are reported at once. Requires the feature gate FederatedQuotaEnforcement.")
}

// Validate implements programs.Options.
func (q *Quotas) Validate() error {
	return flags.ValidatePositive(quotaSyncPeriodFlag, q.Period)
}

func (o *Options) addQuotaSync(h *programs.Host) error {
	own := quotasync.DefaultOptions()
	own.Backoff, own.Events = o.QueueBackoff(), o.Events
	return quotasync.Add(h.Manager, own)
}

func (o *Options) addQuotaStatus(h *programs.Host) error {
	own := quotastatus.DefaultOptions()
	own.Enforced, own.Backoff, own.Events = h.Gates.Enabled(gates.FederatedQuotaEnforcement), o.QueueBackoff(), o.Events
	return quotastatus.Add(h.Manager, own)
}

func (o *Options) addQuotaEnforcement(h *programs.Host) error {
	own := quotaenforcement.DefaultOptions()
	own.Period, own.Backoff, own.Events = o.Quotas.Period, o.QueueBackoff(), o.Events
	return quotaenforcement.Add(h.Manager, own)
}
