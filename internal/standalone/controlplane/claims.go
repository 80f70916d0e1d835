package controlplane

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/programs"
)

// policyClaims looks up the policy that claims a new object, for the admission plugin in the API
// server. The components that know the claims start after the API server, so they set the lookup
// function later. If these components do not run, there is no lookup function.
type policyClaims struct {
	lookupFunc atomic.Pointer[programs.ClaimLookup]
}

// setLookup sets the function that looks up claims. nil removes it.
func (p *policyClaims) setLookup(lookup programs.ClaimLookup) {
	if lookup == nil {
		p.lookupFunc.Store(nil)
		return
	}
	p.lookupFunc.Store(&lookup)
}

// lookup returns the claim of an object for admission. Without a lookup function it reports
// that the claim is unknown.
func (p *policyClaims) lookup(ctx context.Context, kind schema.GroupVersionKind, object metav1.Object) (policy.Claim, bool) {
	lookupFunc := p.lookupFunc.Load()
	if lookupFunc == nil {
		return policy.Claim{}, false
	}
	return (*lookupFunc)(ctx, kind, object)
}
