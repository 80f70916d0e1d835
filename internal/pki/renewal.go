package pki

import (
	"context"
	"time"
)

const (
	// maxRenewalInterval is the maximum time between two checks of the certificates. It is limited
	// because between two checks, the clock can be changed and the machine can be suspended.
	maxRenewalInterval = time.Hour
	// renewalRetryInterval is the time after which a failed renewal is retried.
	renewalRetryInterval = time.Minute
	// minRenewalInterval prevents a busy loop if the machine's clock does not advance.
	minRenewalInterval = time.Second
)

// Renewable is a leaf certificate to renew, with its name and the authority that signs it.
type Renewable struct {
	Authority *Authority
	Name      string
	Leaf      Leaf
}

// EnsureAll issues the leaf certificates that are missing or due for renewal, and returns the time of
// the next renewal.
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

// RenewAll renews each certificate before it expires, until ctx ends. Servers and clients must reload
// the files. RenewAll calls checked after each check with the check's error. If checked returns an
// error, the check is retried.
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
