package controlplane

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/programs"
)

// claims lets admission in the API server ask the components, which start later
// and may not be there, which policy claims a new object.
type claims struct {
	claimant atomic.Pointer[programs.ClaimLookup]
}

// offer makes the claimant the one to ask, nil none.
func (c *claims) offer(claimant programs.ClaimLookup) {
	if claimant == nil {
		c.claimant.Store(nil)
		return
	}
	c.claimant.Store(&claimant)
}

// ask is what admission asks; without a claimant nothing is known.
func (c *claims) ask(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
	claimant := c.claimant.Load()
	if claimant == nil {
		return policy.Claim{}, false
	}
	return (*claimant)(ctx, kind, object)
}
