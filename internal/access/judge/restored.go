package judge

import (
	"context"
	"fmt"
)

// Restored reports whether the control plane is restored from a backup and no user has
// confirmed that, and says so in a message. An error means that this is not known.
type Restored func(ctx context.Context) (message string, unconfirmed bool, err error)

// restore notes in the ruling whether deletions wait for the confirmation of a restore.
func (j *Judge) restore(ctx context.Context, ruling *Ruling) (err error) {
	if j.restored == nil {
		return nil
	}
	if ruling.message, ruling.Facts.Restored, err = j.restored(ctx); err != nil {
		return fmt.Errorf("reading whether the control plane was restored from a backup: %w", err)
	}
	return nil
}
