package execution

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
)

func TestLedgerKnowsTheVeryWorkThatWasLetGo(t *testing.T) {
	of := &workv1alpha1.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "karmada-es-m1", Name: "web", UID: "1"}}
	again := of.DeepCopy()
	again.UID = "2"
	l := newLedger()
	l.release(of)
	if !l.isReleased(of) {
		t.Error("a Work that was let go is not known")
	}
	if l.isReleased(again) {
		t.Error("a new Work of the same name is taken for the one that was let go")
	}
	l.forget(nameOf(of))
	if l.isReleased(of) {
		t.Error("a Work that is gone is still remembered")
	}
}
