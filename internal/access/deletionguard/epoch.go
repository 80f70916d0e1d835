package deletionguard

import (
	"context"
	"fmt"

	"karmada.io/karmada/internal/domain/epoch"
)

// EpochReader returns the epoch of the control plane. It returns an error if the epoch is
// unknown.
type EpochReader func(ctx context.Context) (epoch.Epoch, error)

// recordEpoch records two facts in the decision: the epoch, and whether deletions wait until a user
// confirms a restore.
func (g *Guard) recordEpoch(ctx context.Context, decision *Decision) (err error) {
	if g.readEpoch == nil {
		return nil
	}
	if decision.epoch, err = g.readEpoch(ctx); err != nil {
		return fmt.Errorf("reading whether the control plane was restored from a backup: %w", err)
	}
	decision.Evidence.RestoreUnconfirmed = decision.epoch.NeedsConfirmation()
	return nil
}
