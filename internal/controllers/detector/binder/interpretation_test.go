package binder

import (
	"errors"
	"testing"

	"karmada.io/karmada/internal/domain/policy"
)

func TestInterpretationIsNotReportedOnTheBindingOfAnotherTemplate(t *testing.T) {
	b, writes := newBinder(t, nil)
	if _, err := b.Bind(t.Context(), claimedTemplate(), nil, propagationPolicy(), ""); err != nil {
		t.Fatal(err)
	}
	b.Rules = rules{err: errors.New("no number")}
	other := webRef.Stub(nil)
	other.SetUID("uid-recreated")
	policy.ClaimOf(propagationPolicy()).Apply(other)
	_, err := b.Bind(t.Context(), other, b.mustFind(t), propagationPolicy(), "")
	if *writes != 1 || len(b.mustFind(t).BindingStatus().Conditions) != 0 {
		t.Errorf("%d writes, conditions %v", *writes, b.mustFind(t).BindingStatus().Conditions)
	}
	var owner *policy.OwnerError
	if !errors.As(err, &owner) {
		t.Errorf("error %v, want an OwnerError", err)
	}
}
