package binder

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/controllers/detector/templates"
	"karmada.io/karmada/internal/domain/policy"
)

func TestInterpretationIsNotReportedOnTheBindingOfAnotherTemplate(t *testing.T) {
	b, writes := newBinder(t, nil)
	if _, err := b.Bind(t.Context(), claimedTemplate(), nil, propagationPolicy(), ""); err != nil {
		t.Fatal(err)
	}
	b.Rules = rules{err: errors.New("no number")}
	other := templates.NewRef(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}, "shop", "web").Stub(nil)
	other.SetUID("uid-other")
	policy.ClaimOf(propagationPolicy()).Apply(other)
	_, err := b.Bind(t.Context(), other, b.mustFind(t), propagationPolicy(), "")
	if *writes != 1 || len(b.mustFind(t).BindingStatus().Conditions) != 0 {
		t.Errorf("%d writes, conditions %v", *writes, b.mustFind(t).BindingStatus().Conditions)
	}
	var collision *policy.CollisionError
	if !errors.As(err, &collision) {
		t.Errorf("error %v, want a collision", err)
	}
}
