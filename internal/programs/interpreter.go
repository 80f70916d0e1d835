package programs

import (
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/programs/gates"
)

// interpreterOptions returns the options of the interpreter that the components of a process share.
func interpreterOptions(set *gates.Set) interpreters.Options {
	return interpreters.Options{ResourceQuotaEstimate: set.Enabled(gates.ResourceQuotaEstimate)}
}
