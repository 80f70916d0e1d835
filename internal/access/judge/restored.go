package judge

import (
	"context"
	"fmt"

	"karmada.io/karmada/internal/domain/epoch"
)

// ReadEpoch returns the epoch of the control plane. An error means that the epoch is not
// known.
type ReadEpoch func(ctx context.Context) (epoch.Epoch, error)

// noteEpoch notes the epoch in the ruling, and whether deletions wait for the
// confirmation of a restore.
func (j *Judge) noteEpoch(ctx context.Context, ruling *Ruling) (err error) {
	if j.epoch == nil {
		return nil
	}
	if ruling.epoch, err = j.epoch(ctx); err != nil {
		return fmt.Errorf("reading whether the control plane was restored from a backup: %w", err)
	}
	ruling.Facts.Restored = ruling.epoch.Unconfirmed()
	return nil
}
