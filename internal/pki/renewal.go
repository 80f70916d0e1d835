package pki

import (
	"context"
	"time"
)

const (
	// maxRenewalInterval limits the time between two checks of the certificates, because the clock
	// can be changed and the machine can be suspended between two checks.
	maxRenewalInterval = time.Hour
	// renewalRetryInterval is the time after which a failed renewal is retried.
	renewalRetryInterval = time.Minute
	// minRenewalInterval prevents a busy loop when the clock of the machine stands still.
	minRenewalInterval = time.Second
)

// Renewable is a leaf certificate with its name and the authority that signs it.
type Renewable struct {
	Authority *Authority
	Name      string
	Leaf      Leaf
}

// EnsureAll issues the leaf certificates that are missing or due for renewal, and returns the
// time of the next renewal.
func EnsureAll(certificates []Renewable) (next time.Time, err error) {
	for _, each := range certificates {
		if _, err := each.Authority.EnsureLeaf(each.Name, each.Leaf); err != nil {
			return time.Time{}, err
		}
		due, err := each.Authority.store.RenewalTime(each.Name)
		if err != nil {
			return time.Time{}, err
		}
		if next.IsZero() || due.Before(next) {
			next = due
		}
	}
	return next, nil
}

// RenewAll renews each certificate before it expires, until ctx ends. Servers and clients must
// reload the files. checked is called after each check with its error. If checked returns an error,
// the check is retried.
func RenewAll(ctx context.Context, certificates []Renewable, checked func(error) error) {
	for ctx.Err() == nil {
		next, err := EnsureAll(certificates)
		wait := min(max(time.Until(next), minRenewalInterval), maxRenewalInterval)
		if checked(err) != nil {
			wait = renewalRetryInterval
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}
