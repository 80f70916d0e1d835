package controlplane

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/programs"
)

// policyClaims lets the admission plugin in the API server look up which policy claims a new
// object. The components that know the claims start later, or do not run at all.
type policyClaims struct {
	lookupFunc atomic.Pointer[programs.ClaimLookup]
}

// setLookup sets the function that looks up claims. nil removes it.
func (c *policyClaims) setLookup(lookup programs.ClaimLookup) {
	if lookup == nil {
		c.lookupFunc.Store(nil)
		return
	}
	c.lookupFunc.Store(&lookup)
}

// lookup returns the claim of an object for admission. Without a lookup function it reports
// that the claim is unknown.
func (c *policyClaims) lookup(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
	lookupFunc := c.lookupFunc.Load()
	if lookupFunc == nil {
		return policy.Claim{}, false
	}
	return (*lookupFunc)(ctx, kind, object)
}
