package judge

import (
	"context"
	"fmt"

	"karmada.io/karmada/internal/domain/epoch"
)

// ReadEpoch returns the epoch of the control plane. It returns an error if the epoch is
// unknown.
type ReadEpoch func(ctx context.Context) (epoch.Epoch, error)

// recordEpoch records the epoch in the decision, and whether deletions wait for the
// confirmation of a restore.
func (j *Judge) recordEpoch(ctx context.Context, decision *Ruling) (err error) {
	if j.readEpoch == nil {
		return nil
	}
	if decision.epoch, err = j.readEpoch(ctx); err != nil {
		return fmt.Errorf("reading whether the control plane was restored from a backup: %w", err)
	}
	decision.Facts.Restored = decision.epoch.Unconfirmed()
	return nil
}
