package scheduler

import (
	"testing"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/loop"
)

func TestOwnWriteIsProcessedOnce(t *testing.T) {
	another := func(bound *workv1alpha2.ResourceBinding) { bound.UID = "b2" }
	cases := map[string]struct {
		observed         *workv1alpha2.ResourceBinding
		isWritten, isNew bool
	}{
		"an older state is replaced":                  {newBindingVersion("9"), true, false},
		"a state that is older by number is replaced": {newBindingVersion("8"), true, false},
		"the same state is an own write":              {newBindingVersion("10"), false, false},
		"a newer state is not an own write":           {newBindingVersion("11"), false, true},
		"another object with the same name":           {newBindingVersion("9", another), false, true},
		"an unknown version format":                   {newBindingVersion("v9"), false, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, wrote := requestFor("web-deployment"), newBindingVersion("10")
			writes := loop.NewWrites[request](nil)
			writes.RecordState(r, wrote)
			if got := !writes.IsOwn(r, tc.observed); got != tc.isNew {
				t.Errorf("not an own write: %v, want %v", got, tc.isNew)
			}
			writes.RecordState(r, wrote)
			if got := loop.Latest[request, binding.Object](writes, r, tc.observed) == wrote; got != tc.isWritten {
				t.Errorf("the written state is returned: %v, want %v", got, tc.isWritten)
			}
		})
	}
}

func TestObservedOwnWriteIsForgotten(t *testing.T) {
	writes, r := loop.NewWrites[request](nil), requestFor("web-deployment")
	writes.RecordState(r, newBindingVersion("10"))
	writes.IsOwn(r, newBindingVersion("10"))
	if writes.IsOwn(r, newBindingVersion("9")) {
		t.Error("an own write is reported without a write")
	}
}
